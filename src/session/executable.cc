#include "session/executable.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "placement/marks.h"
#include "placement/partition.h"
#include "placement/placement_recorder.h"
#include "placement/report.h"
#include "plan/plan.h"
#include "session/choose_providers.h"

namespace epona {
namespace {

class Builder {
 public:
  Builder(Model& model, const SessionOptions& options)
      : model_(model), options_(options), result_(std::make_shared<Executable>()) {}

  std::shared_ptr<Executable> build() {
    result_->providers = choose_providers(options_, result_->placement);
    for (ActiveProvider& active : result_->providers) order_.push_back(active.provider.get());
    lap("providers");
    recorder_.emplace(*model_.graph, result_->placement);
    lap("trace");
    assign_nodes();
    optimize();
    lap("passes");
    result_->executor = std::make_unique<Executor>(plan(*model_.graph));
    stop_if_cancelled(options_.cancel_load.get());
    recorder_->finish();
    model_.graph.reset();
    model_.mappings.clear();
    lap("plan");
    retire_idle();
    check_placement();
    return result_;
  }

 private:
  void lap(const char* phase) { result_->creation_times.emplace_back(phase, watch_.lap()); }
  Provider* cpu() const { return order_.back(); }  // choose_providers sees to it

  void apply_passes(bool plain_only) {
    PassContext context;
    context.level = options_.optimization_level;
    context.cancel = options_.cancel_load.get();
    context.plain_only = plain_only;
    for (PassRecord& record :
         run_passes(*model_.graph, context, options_.disabled_passes, options_.dump_after, &recorder_->trace()))
      result_->passes.push_back(std::move(record));
  }

  /// Providers other than the CPU see the model after the passes that keep it ONNX, and what they take is marked.
  void assign_nodes() {
    if (order_.size() < 2) return;
    apply_passes(true);
    std::vector<Provider*> kernel_makers;
    auto ask_kernel_makers = [&] {
      if (!kernel_makers.empty()) assign(*model_.graph, kernel_makers);
      kernel_makers.clear();
    };
    for (Provider* provider : order_) {
      if (provider == cpu()) break;
      if (!provider->compiles()) {
        kernel_makers.push_back(provider);
        continue;
      }
      ask_kernel_makers();
      compile_groups(*provider);
    }
    ask_kernel_makers();
    lap("claims");
  }

  void compile_groups(Provider& provider) {
    PartitionOptions cut;
    cut.declined = [&](const Graph& graph, NodeId id, const Refusal& refusal) {
      recorder_->declined(graph, id, {provider.name(), reason_name(refusal.reason), refusal.text});
    };
    cut.compile_failed = [&](const Graph& group, const std::exception& error) {
      std::string text = cat(provider.name(), " took a group of ", group.nodes.size(), " nodes beginning with ",
                             describe(group.nodes.front()), " and failed to compile it: ", error.what());
      report_failure(text);
      failures_.try_emplace(provider.name(), text);
    };
    cut.release = [&](const Tensor& constant) { model_.release(constant); };
    cut.trace = &recorder_->trace();
    cut.cancel = options_.cancel_load.get();
    partition(*model_.graph, provider, groups_, cut);
  }

  /// What happens when a provider fails with what it took.
  void report_failure(const std::string& text) const {
    if (fallback_policy(options_) == FallbackPolicy::forbid)
      fail(Code::ep_fail, text, ". Falling back is forbidden (session.fallback=forbid or enable_fallback=0).");
    if (fallback_policy(options_) == FallbackPolicy::warn)
      log(Severity::warning, log_threshold(options_), options_.log_id, text + ". The next provider runs it.");
  }

  void assign(Graph& graph, const std::vector<Provider*>& others) {
    Asked asked = ask_providers(graph, others);
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
      Node& node = graph.nodes[id];
      for (const auto& declined : asked.declined[id]) recorder_->declined(graph, id, declined);
      std::vector<int> numbers;
      for (Provider* taker : asked.candidates[id])
        numbers.push_back(static_cast<int>(std::find(order_.begin(), order_.end(), taker) - order_.begin()));
      if (!numbers.empty()) mark_node(node, numbers);
      for_each_subgraph(node, [&](Graph& body) { assign(body, others); });
    }
  }

  void optimize() {
    apply_passes(false);
    model_.release_pages();
    if (options_.optimized_model_path.empty()) return;
    for (Node& node : model_.graph->nodes)
      if (is_marked(node) || node.is("Group", "epona"))
        fail(Code::invalid_argument,
             "an optimized model can be written only when every node runs on CPUExecutionProvider; ", describe(node),
             " does not");
    save_model(model_, *model_.graph, options_.optimized_model_path);
  }

  std::shared_ptr<const Plan> plan(Graph& graph) {
    std::vector<std::vector<Provider*>> candidates(graph.nodes.size());
    for (size_t id = 0; id < graph.nodes.size(); ++id)
      for (int number : unmark_node(graph.nodes[id])) candidates[id].push_back(order_[static_cast<size_t>(number)]);
    Asked asked = ask_providers(graph, {cpu()});
    for (size_t id = 0; id < candidates.size(); ++id) {
      for (Provider* taker : asked.candidates[id]) candidates[id].push_back(taker);
      if (candidates[id].empty())
        for (const auto& declined : asked.declined[id]) recorder_->declined(graph, static_cast<NodeId>(id), declined);
    }
    PlanOptions nested;
    nested.build = [&](const NodeInfo& info) {
      stop_if_cancelled(options_.cancel_load.get());
      auto id = static_cast<NodeId>(&info.node() - graph.nodes.data());
      return build_kernel(info, candidates[static_cast<size_t>(id)], id);
    };
    nested.make_subgraph = [&](const std::shared_ptr<Graph>& body) -> std::shared_ptr<Subgraph> {
      return std::make_shared<PlanSubgraph>(plan(*body));
    };
    nested.release = [&](const Tensor& constant) { model_.release(constant); };
    nested.keep = [&](Tensor& constant) { model_.keep(constant); };
    std::shared_ptr<const Plan> plan = build_plan(graph, nested);
    for (const PlanCopy& copy : plan->copies)
      result_->placement.copies.push_back({graph.name, plan->slots[static_cast<size_t>(copy.slot)].name,
                                           plan->memories[static_cast<size_t>(copy.from)].name(),
                                           plan->memories[static_cast<size_t>(copy.to)].name(), copy.bytes, copy.once});
    warn_of_copies(*plan);
    return plan;
  }

  /// Copies at the edges of a graph cannot be helped; those inside are what splits a graph between memories.
  void warn_of_copies(const Plan& plan) const {
    size_t inside = 0;
    for (const StepPlan& step : plan.steps) {
      if (!step.copy || plan.slots[static_cast<size_t>(step.inputs[0])].is_input) continue;
      inside += std::find(plan.outputs.begin(), plan.outputs.end(), step.outputs[0]) == plan.outputs.end();
    }
    if (inside > 0)
      log(Severity::warning, log_threshold(options_), options_.log_id,
          cat(inside, " Memcpy nodes are added to the graph ", plan.name,
              ": it is split between memories, and these values are "
              "copied in every run. The placement report names them."));
  }

  /// The kernel of the first candidate that can build one; what the others said is recorded.
  BuiltKernel build_kernel(const NodeInfo& info, const std::vector<Provider*>& candidates, NodeId id) {
    const Node& node = info.node();
    if (node.is("Group", "epona")) {
      CompiledGroup& group = groups_[static_cast<size_t>(info.attr("index", 0))];
      recorder_->placed(info.graph(), id, group.provider->name());
      return {std::move(group.compiled.kernel), group.provider, &group.compiled.traits};
    }
    if (candidates.empty())
      fail(Code::not_implemented, "Could not find an implementation for ", node.op, "(", node.opset,
           ") node with name '", node.name, "'");
    for (Provider* provider : candidates) {
      try {
        KernelPtr kernel = provider->build(info);
        recorder_->placed(info.graph(), id, provider->name());
        return {std::move(kernel), provider, nullptr};
      } catch (const std::exception& error) {
        stop_if_cancelled(options_.cancel_load.get());  // it may have asked, too
        if (provider == candidates.back()) throw;
        build_failed(*provider, info, id, error);
      }
    }
    return {};
  }

  void build_failed(const Provider& provider, const NodeInfo& info, NodeId id, const std::exception& error) {
    std::string text = cat(provider.name(), " took ", describe(info.node()), " and failed to build it: ", error.what());
    report_failure(text);
    recorder_->declined(info.graph(), id, {provider.name(), "build failed", error.what()});
    failures_.try_emplace(provider.name(), text);
  }

  /// A provider that failed to build all that it took is not active.
  void retire_idle() {
    for (const auto& failure : failures_) {
      const auto& name = failure.first;  // clang 14 does not capture structured bindings
      bool runs = false;
      for (const NodePlacement& node : result_->placement.nodes) runs |= node.provider == name;
      if (runs) continue;
      auto idle = std::find_if(result_->providers.begin(), result_->providers.end(),
                               [&](const ActiveProvider& active) { return name == active.def->name; });
      result_->retired.push_back(std::move(*idle));
      result_->providers.erase(idle);
      report_inactive(options_, result_->placement, {name, "build", failure.second, ""});
    }
  }

  /// session.disable_cpu_ep_fallback and session.require_placement.
  void check_placement() const {
    PlacementReport report{"the model", result_->placement, result_->passes, result_->creation_times};
    if (config_value(options_, "session.disable_cpu_ep_fallback") == "1")
      for (const NodePlacement& node : result_->placement.nodes)
        if (node.provider == cpu()->name())
          fail(Code::fail,
               "This session contains graph nodes that are assigned to the default CPU EP, but fallback to CPU "
               "EP has been explicitly disabled by the user.\n",
               to_table(report));
    check_required(report);
  }

  void check_required(const PlacementReport& report) const {
    const std::string text = config_value(options_, "session.require_placement");
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), one.size() + 1));
      size_t colon = one.find(':');
      const std::string name(one.substr(0, colon));
      double least = 1;
      if (colon != std::string_view::npos) {
        const char* end = one.data() + one.size();
        auto [at, error] = std::from_chars(one.data() + colon + 1, end, least);
        if (error != std::errc() || at != end || !(least >= 0 && least <= 1)) colon = 0;
      }
      if (!find_provider(name) || colon == 0)
        fail(Code::invalid_argument, "session.require_placement is '", one,
             "'; expected PROVIDER:SHARE with a share of "
             "FLOPs from 0 to 1.",
             find_provider(name) ? "" : suggest_provider(name));
      double share = 0;
      for (const ProviderShare& each : result_->placement.shares())
        if (each.provider == name) share = each.flop_share;
      if (share < least)
        fail(Code::fail, "session.require_placement asks for at least ", least * 100, "% of the FLOPs on ", name,
             "; it has ", share * 100, "%.\n", to_table(report));
    }
  }

  Model& model_;
  const SessionOptions& options_;
  std::shared_ptr<Executable> result_;
  std::vector<Provider*> order_;  ///< the CPU is the last
  std::vector<CompiledGroup> groups_;
  std::optional<PlacementRecorder> recorder_;
  std::map<std::string, std::string> failures_;  ///< provider -> its first failure to build a node
  Stopwatch watch_;
};

}  // namespace

std::shared_ptr<const Executable> build_executable(Model& model, const SessionOptions& options) {
  SessionOptions left = options;
  Placement failed;
  for (;;) {
    try {
      auto executable = Builder(model, left).build();
      executable->placement.inactive.insert(executable->placement.inactive.end(), failed.inactive.begin(),
                                            failed.inactive.end());
      return executable;
    } catch (const ProviderFailure& failure) {
      size_t erased = std::erase_if(left.providers, [&](const ProviderRequest& request) {
        return request.name == failure.provider() && request.name != cpu_provider_def().name;
      });
      if (erased == 0 || model.source.bytes.empty()) throw;
      report_inactive(options, failed, {failure.provider(), "build", failure.what(), ""});
      ModelSource source = model.source;
      model = load_again(source, load_options(options));
    }
  }
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
