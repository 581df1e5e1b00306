#pragma once
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "graph/output_pool.h"
#include "providers/openvino/cache.h"
#include "providers/openvino/config.h"
#include "providers/openvino/core.h"
#include "providers/openvino/guard_inputs.h"
#include "providers/provider.h"

namespace epona::openvino {

/// One infer request and the memory that it was last given, so that a run with the same memory sets nothing.
struct Request {
  struct Port {
    const void* data = nullptr;
    Shape shape;
    Owned<ov_tensor> tensor{nullptr, {nullptr}};
  };
  Owned<ov_infer_request> request{nullptr, {nullptr}};
  std::vector<Port> inputs, outputs;
};

/// Requests that wait for a run, and those whose outputs callers still hold: an output whose dims OpenVINO finds out lies
/// in memory of the request, which handing over a tensor would make it copy. One output keeps the memory of all, so few
/// requests are lent at a time.
class Requests : public std::enable_shared_from_this<Requests> {
 public:
  /// Gives its request back when the last output is gone. The memory stays even if the requests do not.
  class Loan {
   public:
    Loan(std::weak_ptr<Requests> from, const Request* request) : from_(std::move(from)), request_(request) {}
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ~Loan();

   private:
    std::weak_ptr<Requests> from_;
    const Request* request_;
  };

  std::unique_ptr<Request> take();  ///< null when none waits
  void give(std::unique_ptr<Request> request);
  /// Null when enough are lent: the request stays the caller's.
  std::shared_ptr<Loan> lend(std::unique_ptr<Request>& request);

 private:
  void end_loan(const Request* request);

  std::mutex mutex_;
  std::vector<std::unique_ptr<Request>> idle_, lent_;
};

/// A compiled model with its infer requests. Concurrent runs take one each.
class CompiledModel {
 public:
  /// `memory`: what the model reads and does not own.
  CompiledModel(std::shared_ptr<const Core> core, Owned<ov_compiled_model> model, const Graph& graph,
                std::shared_ptr<const void> memory = nullptr);

  bool dynamic() const { return dynamic_; }  ///< some output's dims are known only after running
  const std::optional<Shape>& output_shape(size_t o) const { return shapes_[o]; }
  void run(const RunContext& c) const;

 private:
  std::unique_ptr<Request> take() const;
  void bind(Request::Port& port, const Tensor& tensor, ov_infer_request& request, size_t index, bool input) const;
  Owned<ov_tensor> output(const ov_infer_request& request, size_t index) const;
  void copy_out(const ov_infer_request& request, const RunContext& c, int o) const;
  void lend(const ov_infer_request& request, std::shared_ptr<Requests::Loan> loan, const RunContext& c, int o) const;
  void check_integers(const RunContext& c) const;
  void check_flags(const ov_infer_request& request) const;

  std::shared_ptr<const Core> core_;
  std::shared_ptr<const void> memory_;
  Owned<ov_compiled_model> model_;
  std::vector<DataType> output_types_;
  std::vector<std::optional<Shape>> shapes_;  ///< of the outputs
  std::vector<char> may_be_input_;            ///< output o may be an input passed on, see find_passed_on()
  bool lends_ = false;                        ///< some output is left in the request's memory
  int64_t int_limit_ = 0;
  std::optional<GuardSet> guards_;
  size_t guard_port_ = 0;
  std::vector<size_t> input_port_, output_port_;  ///< position in the graph -> OpenVINO's
  bool dynamic_ = false;
  std::shared_ptr<Requests> requests_ = std::make_shared<Requests>();
  std::shared_ptr<OutputPool> copies_ = std::make_shared<OutputPool>();  ///< of outputs that are not lent
};

/// A group of nodes: one compiled model, or (disable_dynamic_shapes) one for each set of input shapes lately seen.
class OpenVinoKernel final : public Kernel {
 public:
  /// How the group becomes OpenVINO's model: called unless its compiled model is in the cache.
  struct Source {
    Graph graph;  ///< kept: compiled models may read its weights, and other shapes need it again
    Owned<ov_model> model;
  };
  using Read = std::function<Source(const Graph& group)>;

  OpenVinoKernel(std::shared_ptr<const Core> core, std::shared_ptr<const Cache> cache, const Digest& key,
                 const Graph& group, const Read& read, const Config& config);

  bool dynamic() const { return !model_ || model_->dynamic(); }
  void shapes(ShapeContext& c) const override;
  void run(const RunContext& c) const override;

 private:
  struct Variant {
    std::vector<Shape> shapes;
    std::shared_ptr<const CompiledModel> model;
  };
  std::shared_ptr<const CompiledModel> variant(const RunContext& c) const;
  std::shared_ptr<const CompiledModel> cached(const Digest& key, const Graph& group) const;
  std::shared_ptr<const CompiledModel> compiled(const Digest& key, const ov_model& model) const;

  std::shared_ptr<const Core> core_;
  std::shared_ptr<const Cache> cache_;  ///< null without cache_dir
  Digest key_;
  Graph graph_;
  std::shared_ptr<const CompiledModel> model_;  ///< null when compiled per shape
  mutable std::mutex mutex_;
  mutable std::list<Variant> variants_;  ///< lately used first
};

/// Gives inputs other dims: "?" and ranges stay dynamic.
void reshape_model(const Core& core, const ov_model& model, const std::map<std::string, ReshapeDims>& inputs);

}  // namespace epona::openvino
