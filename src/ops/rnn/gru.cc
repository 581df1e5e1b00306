#include "ops/registry.h"
#include "ops/rnn/recurrent.h"

namespace epona {
namespace {

/// One step of a GRU; gates in the order z, r, h. Without linear_before_reset the hidden gate's product with R is of
/// r * h, so it comes in a second phase.
class GruCell {
 public:
  static constexpr int kGates = 3, kStates = 1;
  explicit GruCell(const NodeInfo& info) : linear_before_reset_(info.attr("linear_before_reset", 0) != 0) {}
  bool two_phases() const { return !linear_before_reset_; }
  bool recurrent_bias_apart() const { return linear_before_reset_; }

  template <class T>
  void first(const CellStep<T>& s) const {
    const int64_t n = s.hidden;
    T *z = s.gates, *r = z + n;
    for (int64_t k = 0; k < 2 * n; ++k) z[k] += s.x[k];
    s.f[0].apply(z, 2 * n);
    if (!linear_before_reset_) {
      for (int64_t k = 0; k < n; ++k) s.reset[k] = r[k] * s.h[k];
      return;
    }
    T* g = r + n;
    for (int64_t k = 0; k < n; ++k) {
      const T product = s.recurrent_bias ? g[k] + s.recurrent_bias[k] : g[k];
      g[k] = s.x[2 * n + k] + r[k] * product;
    }
    finish(s, z, g);
  }
  template <class T>
  void second(const CellStep<T>& s, T* g) const {
    for (int64_t k = 0; k < s.hidden; ++k) g[k] += s.x[2 * s.hidden + k];
    finish(s, s.gates, g);
  }

 private:
  template <class T>
  static void finish(const CellStep<T>& s, const T* z, T* g) {
    s.f[1].apply(g, s.hidden);
    for (int64_t k = 0; k < s.hidden; ++k) s.h[k] = (T(1) - z[k]) * g[k] + z[k] * s.h[k];
  }
  bool linear_before_reset_;
};

class Gru final : public Recurrent<GruCell> {
 public:
  explicit Gru(const NodeInfo& info) : Recurrent(info, {"Sigmoid", "Tanh"}) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    pack_constants(info);
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(gru) { r.add({.name = "GRU", .make = make_kernel<Gru>}); }
