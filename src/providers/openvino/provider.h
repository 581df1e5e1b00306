#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "providers/openvino/cache.h"
#include "providers/openvino/config.h"
#include "providers/openvino/core.h"
#include "providers/provider.h"

namespace epona::openvino {

/// A compiling provider: groups of nodes go to OpenVINO as ONNX and come back as compiled models.
class OpenVinoProvider final : public Provider {
 public:
  OpenVinoProvider(const OptionValues& options, const ProviderContext& context);

  const char* name() const override { return "OpenVINOExecutionProvider"; }
  bool compiles() const override { return true; }
  Claim claim(const Graph& graph) override;
  Claim reclaim(const Graph& group) override;
  Compiled compile(const Graph& group) override;
  KernelPtr build(const NodeInfo& info) override;
  const OpDef* traits(const Node&) const override { return nullptr; }

 private:
  /// What the last claim read, for the case that the group compiled next is just that.
  struct Converted {
    Graph graph;
    Owned<ov_model> model{nullptr, {nullptr}};
  };

  Claim choose(const Graph& graph, bool ask_device);
  Claim remembered(const Graph& graph, bool ask_device);
  bool is_island(const Graph& graph, const std::vector<NodeId>& group, size_t nodes) const;
  void check_reshape(const Graph& graph);
  /// A group with node names that OpenVINO repeats in messages, and weights aligned.
  Graph prepared(const Graph& graph, const std::vector<NodeId>& nodes);
  void align_constants(Graph& graph);
  std::map<NodeId, Refusal> first_failing(const Graph& graph, const std::vector<NodeId>& ids,
                                          const std::string& message);

  Config config_;
  std::shared_ptr<const Core> core_;
  std::shared_ptr<Cache> cache_;  ///< null without cache_dir
  std::unique_ptr<Converted> converted_;
  std::map<const void*, Tensor> aligned_;  ///< copies of weights that lie unaligned in their file
  bool reshape_checked_ = false, in_body_ = false;
};

}  // namespace epona::openvino
