#include "session/executable.h"

#include <chrono>

#include "plan/plan.h"
#include "session/choose_providers.h"

namespace epona {
namespace {

class Builder {
 public:
  Builder(Model& model, const SessionOptions& options)
      : model_(model), options_(options), result_(std::make_shared<Executable>()) {}

  std::shared_ptr<const Executable> build() {
    result_->providers = choose_providers(options_, result_->placement);
    for (ActiveProvider& active : result_->providers) order_.push_back(active.provider.get());
    lap("providers");
    optimize();
    lap("passes");
    result_->executor = std::make_unique<Executor>(plan(*model_.graph));
    model_.graph.reset();
    lap("plan");
    return result_;
  }

 private:
  void lap(const char* phase) { result_->creation_times.emplace_back(phase, watch_.lap()); }

  void optimize() {
    PassContext context;
    context.level = options_.optimization_level;
    result_->passes = run_passes(*model_.graph, context, options_.disabled_passes, options_.dump_after);
    if (!options_.optimized_model_path.empty()) save_model(model_, *model_.graph, options_.optimized_model_path);
  }

  std::shared_ptr<const Plan> plan(Graph& graph) {
    size_t first = result_->placement.nodes.size();
    Candidates candidates = place(graph, order_, result_->placement);
    std::vector<size_t> rows(graph.nodes.size());  // of the placement record
    for (size_t id = 0; id < rows.size(); ++id) rows[id] = graph.nodes[id].removed ? first : first++;
    PlanOptions nested;
    nested.build = [&](const NodeInfo& info) {
      auto id = static_cast<size_t>(&info.node() - graph.nodes.data());
      return build_kernel(info, candidates[id], rows[id]);
    };
    nested.make_subgraph = [&](const std::shared_ptr<Graph>& body) -> std::shared_ptr<Subgraph> {
      return std::make_shared<PlanSubgraph>(plan(*body));
    };
    nested.release = [&](const Tensor& constant) { release_pages(constant); };
    return build_plan(graph, nested);
  }

  /// The kernel of the first candidate that can build one; what the others said is recorded.
  BuiltKernel build_kernel(const NodeInfo& info, const std::vector<Provider*>& candidates, size_t row) {
    const Node& node = info.node();
    if (candidates.empty())
      fail(Code::not_implemented, "Could not find an implementation for ", node.op, "(", node.opset,
           ") node with name '", node.name, "'");
    for (Provider* provider : candidates) {
      try {
        KernelPtr kernel = provider->build(info);
        result_->placement.nodes[row].provider = provider->name();
        return {std::move(kernel), provider};
      } catch (const std::exception& error) {
        if (provider == candidates.back()) throw;
        build_failed(*provider, node, row, error);
      }
    }
    return {};
  }

  void build_failed(const Provider& provider, const Node& node, size_t row, const std::exception& error) {
    std::string text = cat(provider.name(), " took ", describe(node), " and failed to build it: ", error.what());
    if (fallback_policy(options_) == FallbackPolicy::forbid)
      fail(Code::ep_fail, text, ". Falling back is forbidden (session.fallback=forbid or enable_fallback=0).");
    if (fallback_policy(options_) == FallbackPolicy::warn)
      log(Severity::warning, log_threshold(options_), options_.log_id, text + ". The next provider runs it.");
    result_->placement.nodes[row].declined.push_back({provider.name(), "build failed", error.what()});
  }

  void release_pages(const Tensor& constant) {
    for (auto& mapping : model_.mappings) {
      auto bytes = mapping->bytes();
      auto* data = static_cast<const std::byte*>(constant.data);
      if (constant.type != DataType::string && data >= bytes.data() && data < bytes.data() + bytes.size())
        mapping->release_pages(data, constant.bytes());
    }
  }

  Model& model_;
  const SessionOptions& options_;
  std::shared_ptr<Executable> result_;
  std::vector<Provider*> order_;
  Stopwatch watch_;
};

}  // namespace

std::shared_ptr<const Executable> build_executable(Model& model, const SessionOptions& options) {
  return Builder(model, options).build();
}

Severity log_threshold(const SessionOptions& options) {
  return options.log_severity < 0 ? default_severity() : static_cast<Severity>(options.log_severity);
}

std::string config_value(const SessionOptions& options, const std::string& key, const std::string& otherwise) {
  auto it = options.config.find(key);
  return it == options.config.end() ? otherwise : it->second;
}

int64_t Stopwatch::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Stopwatch::lap() {
  int64_t last = last_ns_;
  last_ns_ = now();
  return static_cast<double>(last_ns_ - last) * 1e-6;
}

}  // namespace epona
