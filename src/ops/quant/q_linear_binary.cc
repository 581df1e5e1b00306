#include "ops/broadcast.h"
#include "ops/quant/byte_table.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft QLinearAdd and QLinearMul: A, a_scale, a_zero, B, b_scale, b_zero, c_scale, c_zero.
class QLinearBinary final : public Kernel {
 public:
  explicit QLinearBinary(const NodeInfo& info) : product_(info.node().op == "QLinearMul") {
    check_byte_type(info, 0);
    check_byte_type(info, 3);
  }
  void shapes(ShapeContext& c) const override {
    for (int i : {1, 2, 4, 5, 6, 7}) check_scalar(c, i);
    Shape out = c.in(0);
    if (!broadcast_into(out, c.in(3))) c.refuse("shapes ", c.in(0), " and ", c.in(3), " do not broadcast");
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    const Tensor &a = c.in(0), &b = c.in(3);
    Tensor& y = c.out(0);
    const RealTable left(byte_scale(c, a.type, 1, 2)), right(byte_scale(c, b.type, 4, 5));
    const ByteScale to = byte_scale(c, y.type, 6, 7);
    const Broadcast<2> broadcast(y.shape, {&a.shape, &b.shape});
    const int step_a = broadcast.step(0), step_b = broadcast.step(1);
    c.pool().parallel_for(broadcast.size(), 3, [&](int64_t begin, int64_t end) {
      broadcast.walk(begin, end, [&](int64_t out, const int64_t* in, int64_t n) {
        const uint8_t *x = a.as<uint8_t>() + in[0], *z = b.as<uint8_t>() + in[1];
        uint8_t* result = y.as<uint8_t>() + out;
        for (int64_t i = 0; i < n; ++i) {
          const float u = left.real[x[i * step_a]], v = right.real[z[i * step_b]];
          result[i] = to.code(product_ ? u * v : u + v);
        }
      });
    });
  }

 private:
  bool product_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(q_linear_binary) {
  for (const char* name : {"QLinearAdd", "QLinearMul"})
    r.add({.name = name, .domain = "com.microsoft", .make = make_kernel<QLinearBinary>, .inplace = 0b1001});
}
