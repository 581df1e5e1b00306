#include "ops/control/control_util.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// If: runs one of two subgraphs; both read outer values as captures only.
class If final : public Kernel {
 public:
  explicit If(const NodeInfo& info) : then_(info.subgraph("then_branch")), else_(info.subgraph("else_branch")) {
    for (auto& [branch, key] : {std::pair(then_.get(), "then_branch"), std::pair(else_.get(), "else_branch")})
      if (branch->outputs() != info.outputs() || branch->inputs() != 0)
        info.refuse(Code::invalid_graph, key, " has ", branch->inputs(), " inputs and ", branch->outputs(),
                    " outputs, the node has ", info.outputs(), " outputs and branches take no input");
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor& condition = c.in(0);
    if (condition.type != DataType::boolean || condition.size() != 1)
      c.refuse("the condition must be one bool, found ", condition.type, condition.shape);
    const Subgraph& branch = *condition.as<bool>() ? *then_ : *else_;
    ValueList results(c.outputs());
    branch.run(c, {}, results);
    for (int i = 0; i < c.outputs(); ++i)
      if (c.wants(i)) c.set(i, owned(std::move(results[i])));
  }

 private:
  std::shared_ptr<Subgraph> then_, else_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(if) { r.add({.name = "If", .since = 1, .make = make_kernel<If>, .dynamic = true}); }
