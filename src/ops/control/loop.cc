#include "ops/control/control_util.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

bool truth(const RunContext& c, const RuntimeValue& value, const char* what) {
  const Tensor& tensor = value.tensor;
  if (value.kind != RuntimeValue::Kind::tensor || tensor.type != DataType::boolean || tensor.size() != 1)
    c.refuse(what, " must be one bool");
  return *tensor.as<bool>();
}

/// Loop: body(iteration, condition, states...) -> (condition, states..., rows...) until the trip count is reached or
/// the condition is false. The body's condition counts even when the `cond` input is absent, as in all runtimes.
class Loop final : public Kernel {
 public:
  explicit Loop(const NodeInfo& info) : body_(info.subgraph("body")), states_(body_->inputs() - 2) {
    if (states_ < 0 || info.inputs() > states_ + 2 || body_->outputs() < states_ + 1 ||
        info.outputs() > body_->outputs() - 1)
      info.refuse(Code::invalid_graph, "a body with ", body_->inputs(), " inputs and ", body_->outputs(),
                  " outputs does not fit a node with ", info.inputs(), " inputs and ", info.outputs(), " outputs");
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    int64_t trips = c.has(0) ? one_int(c, c.in(0), "the trip count M") : std::numeric_limits<int64_t>::max();
    bool condition = c.has(1) ? truth(c, c.value(1), "the condition") : true;
    int rows = body_->outputs() - 1 - states_;
    int64_t iteration = 0;
    ValueList in(states_ + 2), out(body_->outputs());
    for (int i = 0; i < states_; ++i)
      if (c.has(i + 2)) in[i + 2] = c.value(i + 2);
    std::vector<RowCollector> collectors(static_cast<size_t>(rows));
    for (; iteration < trips && condition; ++iteration) {
      check_terminate(c);
      // Views: a body that returns them gets them copied by owned().
      in[0] = view(DataType::int64, &iteration, body_->input_type(0));
      in[1] = view(DataType::boolean, &condition, body_->input_type(1));
      for (int i = 0; i < body_->outputs(); ++i) out[i] = {};  // a value with memory would be written in place
      body_->run(c, in, out);
      bool next = truth(c, out[0], "the condition that the body returns");
      for (int i = 0; i < rows; ++i) {
        const RuntimeValue& row = out[1 + states_ + i];
        if (row.kind != RuntimeValue::Kind::tensor)
          c.refuse("output ", 1 + states_ + i, " of the body is not a tensor");
        if (c.wants(states_ + i)) collectors[static_cast<size_t>(i)].add(c, 1 + states_ + i, row.tensor, trips);
      }
      for (int i = 0; i < states_; ++i) in[i + 2] = owned(std::move(out[i + 1]));
      condition = next;
    }
    for (int i = 0; i < states_; ++i)
      if (c.wants(i)) c.set(i, iteration ? std::move(in[i + 2]) : own_copy(in[i + 2]));
    for (int i = 0; i < rows; ++i)
      if (c.wants(states_ + i))
        c.set(states_ + i, collectors[static_cast<size_t>(i)].finish(body_->output_type(1 + states_ + i)));
  }

 private:
  /// A scalar, or [1] where the body declares its input so.
  static RuntimeValue view(DataType type, void* data, const Type& declared) {
    Tensor tensor;
    tensor.type = type;
    if (declared.shape && declared.shape->size() == 1) tensor.shape = {1};
    tensor.data = data;
    return tensor;
  }
  std::shared_ptr<Subgraph> body_;
  int states_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(loop) { r.add({.name = "Loop", .since = 1, .make = make_kernel<Loop>, .dynamic = true}); }
