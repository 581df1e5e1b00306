#include "ops/registry.h"
#include "ops/rnn/recurrent.h"

namespace epona {
namespace {

/// One step of a plain recurrent network: h = f(x W + h R + biases).
class RnnCell {
 public:
  static constexpr int kGates = 1, kStates = 1;
  explicit RnnCell(const NodeInfo&) {}
  bool two_phases() const { return false; }
  bool recurrent_bias_apart() const { return false; }

  template <class T>
  void first(const CellStep<T>& s) const {
    for (int64_t k = 0; k < s.hidden; ++k) s.h[k] = s.gates[k] + s.x[k];
    s.f[0].apply(s.h, s.hidden);
  }
  template <class T>
  void second(const CellStep<T>&, T*) const {}
};

class Rnn final : public Recurrent<RnnCell> {
 public:
  explicit Rnn(const NodeInfo& info) : Recurrent(info, {"Tanh"}) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    pack_constants(info);
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(rnn) { r.add({.name = "RNN", .make = make_kernel<Rnn>}); }
