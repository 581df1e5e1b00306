#include "ops/rnn/lstm.h"

#include "ops/registry.h"

namespace epona {
namespace {

class Lstm final : public Recurrent<LstmCell> {
 public:
  explicit Lstm(const NodeInfo& info) : Recurrent(info, {"Sigmoid", "Tanh", "Tanh"}) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    pack_constants(info);
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(lstm) { r.add({.name = "LSTM", .make = make_kernel<Lstm>}); }
