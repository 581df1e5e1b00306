#pragma once
#include "kernels/lstm_cell.h"
#include "ops/rnn/recurrent.h"

namespace epona {

/// One step of an LSTM; gates in the order i, o, f, c.
class LstmCell {
 public:
  static constexpr int kGates = 4, kStates = 2;
  explicit LstmCell(const NodeInfo& info) : input_forget_(info.attr("input_forget", 0) != 0) {}
  bool two_phases() const { return false; }
  bool recurrent_bias_apart() const { return false; }

  template <class T>
  void first(const CellStep<T>& s) const {
    const int64_t n = s.hidden;
    if constexpr (std::is_same_v<T, float>)
      if (!input_forget_ && plain(s.f[0], RnnActivation::sigmoid) && plain(s.f[1], RnnActivation::tanh) &&
          s.f[2].kind == RnnActivation::tanh)
        return lstm_step({n, s.gates, s.x, s.peephole, s.h, s.c});
    T *i = s.gates, *o = i + n, *f = o + n, *g = f + n;
    for (int64_t k = 0; k < 4 * n; ++k) i[k] += s.x[k];
    if (s.peephole)
      for (int64_t k = 0; k < n; ++k) {
        i[k] += s.peephole[k] * s.c[k];
        f[k] += s.peephole[2 * n + k] * s.c[k];
      }
    s.f[0].apply(i, n);
    s.f[1].apply(g, n);
    if (input_forget_)
      for (int64_t k = 0; k < n; ++k) f[k] = T(1) - i[k];
    else
      s.f[0].apply(f, n);
    for (int64_t k = 0; k < n; ++k) s.c[k] = f[k] * s.c[k] + i[k] * g[k];
    if (s.peephole)
      for (int64_t k = 0; k < n; ++k) o[k] += s.peephole[n + k] * s.c[k];
    s.f[0].apply(o, n);
    for (int64_t k = 0; k < n; ++k) g[k] = s.c[k];
    // Clip is for the gates: peers agree that the cell state is not clipped here.
    RnnActivation h = s.f[2];
    h.clip = 0;
    h.apply(g, n);
    for (int64_t k = 0; k < n; ++k) s.h[k] = o[k] * g[k];
  }
  template <class T>
  void second(const CellStep<T>&, T*) const {}

 private:
  static bool plain(const RnnActivation& f, RnnActivation::Kind kind) { return f.kind == kind && f.clip == 0; }

  bool input_forget_;
};

}  // namespace epona
