#include <complex>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {
namespace {

template <class T>
void select(const bool* pick, int step_pick, const T* x, int step_x, const T* y, int step_y, T* z, int64_t n) {
  if (!step_pick) {
    const T* from = *pick ? x : y;
    if (*pick ? step_x : step_y)
      std::copy_n(from, n, z);
    else
      std::fill_n(z, n, *from);
    return;
  }
  for (int64_t i = 0; i < n; ++i) z[i] = pick[i] ? x[i * step_x] : y[i * step_y];
}

/// Moves elements by their size; the type does not matter.
class Where final : public Kernel {
 public:
  explicit Where(const NodeInfo& info) {
    if (is_subbyte(info.in_type(1))) info.refuse(Code::not_implemented, "element type ", info.in_type(1));
  }
  void shapes(ShapeContext& c) const override { c.out(0, broadcast_inputs(c, 0, 3)); }
  void run(const RunContext& c) const override {
    if (c.out(0).type == DataType::string) return go<std::string>(c);
    switch (type_bits(c.out(0).type)) {
      case 8:
        return go<uint8_t>(c);
      case 16:
        return go<uint16_t>(c);
      case 32:
        return go<uint32_t>(c);
      case 64:
        return go<uint64_t>(c);
      default:
        return go<std::complex<double>>(c);
    }
  }

 private:
  template <class T>
  void go(const RunContext& c) const {
    const bool* pick = c.data<bool>(0);
    const T *x = c.data<T>(1), *y = c.data<T>(2);
    T* z = c.out_data<T>(0);
    const Broadcast<3> broadcast(c.out(0).shape, {&c.in(0).shape, &c.in(1).shape, &c.in(2).shape});
    const int step_pick = broadcast.step(0), step_x = broadcast.step(1), step_y = broadcast.step(2);
    c.pool().parallel_for(broadcast.size(), 1, [&](int64_t begin, int64_t end) {
      broadcast.walk(begin, end, [&](int64_t out, const int64_t* in, int64_t n) {
        select(pick + in[0], step_pick, x + in[1], step_x, y + in[2], step_y, z + out, n);
      });
    });
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(where) { r.add({.name = "Where", .since = 9, .make = make_kernel<Where>, .inplace = 6}); }
