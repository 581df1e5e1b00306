#include "ops/broadcast.h"
#include "ops/quant/byte_table.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft QLinearWhere: condition, X, x_scale, x_zero, Y, y_scale, y_zero, z_scale, z_zero.
class QLinearWhere final : public Kernel {
 public:
  explicit QLinearWhere(const NodeInfo& info) {
    check_byte_type(info, 1);
    check_byte_type(info, 4);
  }
  void shapes(ShapeContext& c) const override {
    for (int i : {2, 3, 5, 6, 7, 8}) check_scalar(c, i);
    Shape out = c.in(0);
    if (!broadcast_into(out, c.in(1)) || !broadcast_into(out, c.in(4)))
      c.refuse("shapes ", c.in(0), ", ", c.in(1), " and ", c.in(4), " do not broadcast");
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    const Tensor &x = c.in(1), &y = c.in(4);
    Tensor& z = c.out(0);
    const ByteScale to = byte_scale(c, z.type, 7, 8);
    auto same = [](float value) { return value; };
    const CodeTable left(byte_scale(c, x.type, 2, 3), to, same), right(byte_scale(c, y.type, 5, 6), to, same);
    const Broadcast<3> broadcast(z.shape, {&c.in(0).shape, &x.shape, &y.shape});
    const int step_c = broadcast.step(0), step_x = broadcast.step(1), step_y = broadcast.step(2);
    c.pool().parallel_for(broadcast.size(), 1.5, [&](int64_t begin, int64_t end) {
      broadcast.walk(begin, end, [&](int64_t out, const int64_t* in, int64_t n) {
        const bool* pick = c.data<bool>(0) + in[0];
        const uint8_t *a = x.as<uint8_t>() + in[1], *b = y.as<uint8_t>() + in[2];
        uint8_t* result = z.as<uint8_t>() + out;
        for (int64_t i = 0; i < n; ++i)
          result[i] = pick[i * step_c] ? left.code[a[i * step_x]] : right.code[b[i * step_y]];
      });
    });
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_linear_where) {
  r.add({.name = "QLinearWhere", .domain = "com.microsoft", .make = make_kernel<QLinearWhere>});
}
