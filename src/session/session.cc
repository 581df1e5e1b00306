#include "session/session.h"

#include <algorithm>
#include <chrono>

#include "kernels/isa.h"
#include "plan/plan.h"
#include "providers/cpu/cpu_provider.h"

namespace epona {
namespace {

class Stopwatch {
 public:
  double lap() {
    auto now = std::chrono::steady_clock::now();
    double ms = std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
    return ms;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

LoadOptions load_options(const SessionOptions& options) {
  return {options.dim_by_symbol, options.dim_by_denotation};
}

}  // namespace

Session::~Session() = default;

Session::Session(const std::filesystem::path& path, const SessionOptions& options) : options_(options) {
  Stopwatch watch;
  model_ = load_model(path, load_options(options));
  creation_times_.emplace_back("load", watch.lap());
  initialize();
}

Session::Session(std::span<const std::byte> model, const SessionOptions& options) : options_(options) {
  Stopwatch watch;
  model_ = load_model(model, load_options(options));
  creation_times_.emplace_back("load", watch.lap());
  initialize();
}

Severity Session::severity() const {
  return options_.log_severity < 0 ? default_severity() : static_cast<Severity>(options_.log_severity);
}

void Session::choose_providers() {
  for (const ProviderRequest& request : options_.providers) {
    if (request.name == "CPUExecutionProvider") continue;
    std::string text = cat("provider ", request.name, " was asked for and is not part of this build; its nodes run on "
                           "CPUExecutionProvider");
    placement_.inactive.emplace_back(request.name, text);
    log(Severity::warning, severity(), options_.log_id, text);
  }
  providers_.push_back(std::make_unique<cpu::CpuProvider>());
}

void Session::initialize() {
  Stopwatch watch;
  init_isa();
  if (options_.log_severity > 4)
    fail(Code::runtime_exception, "Invalid session log severity level. Not a valid severity value: ",
         options_.log_severity);
  for (const std::string& warning : model_.warnings) log(Severity::warning, severity(), options_.log_id, warning);
  Graph& graph = *model_.graph;
  for (ValueId id : graph.inputs) {
    const Value& value = graph.values[id];
    (value.constant ? overridable_ : inputs_).push_back({value.name, value.type});
  }
  int fed = 0, overridable = static_cast<int>(inputs_.size());
  for (ValueId id : graph.inputs) feed_order_.push_back(graph.values[id].constant ? overridable++ : fed++);
  for (ValueId id : graph.outputs) outputs_.push_back({graph.values[id].name, graph.values[id].type});
  choose_providers();
  PassContext context;
  context.level = options_.optimization_level;
  passes_ = run_passes(graph, context, options_.disabled_passes, options_.dump_after);
  creation_times_.emplace_back("passes", watch.lap());
  if (!options_.optimized_model_path.empty()) save_model(model_, graph, options_.optimized_model_path);

  ThreadPoolOptions pool;
  pool.threads = options_.intra_op_threads > 0 ? options_.intra_op_threads : 0;
  auto config = options_.config.find("session.intra_op.allow_spinning");
  pool.spin = config == options_.config.end() || config->second != "0";
  pool_ = std::make_unique<ThreadPool>(pool);

  std::vector<Provider*> order;
  for (auto& provider : providers_) order.push_back(provider.get());
  std::vector<std::vector<Provider*>> placed;  // per graph being planned, innermost last
  auto plan_graph = [&](auto& self, Graph& target) -> std::shared_ptr<const Plan> {
    placed.push_back(place(target, order, placement_));
    size_t depth = placed.size() - 1;
    PlanOptions nested;
    nested.provider_of = [&, depth](const Graph& of, const Node& node) -> Provider* {
      Provider* provider = placed[depth][static_cast<size_t>(&node - of.nodes.data())];
      if (!provider)
        fail(Code::not_implemented, "Could not find an implementation for ", node.op, "(", node.opset,
             ") node with name '", node.name, "'");
      return provider;
    };
    nested.make_subgraph = [&](const std::shared_ptr<Graph>& body) -> std::shared_ptr<Subgraph> {
      return std::make_shared<PlanSubgraph>(self(self, *body));
    };
    nested.release = [&](const Tensor& constant) {
      for (auto& mapping : model_.mappings) {
        auto bytes = mapping->bytes();
        auto* data = static_cast<const std::byte*>(constant.data);
        if (constant.type != DataType::string && data >= bytes.data() && data < bytes.data() + bytes.size())
          mapping->release_pages(data, constant.bytes());
      }
    };
    auto plan = build_plan(target, nested);
    placed.pop_back();
    return plan;
  };
  executor_ = std::make_unique<Executor>(plan_graph(plan_graph, graph));
  model_.graph.reset();
  creation_times_.emplace_back("plan", watch.lap());
}

std::vector<std::string> Session::providers() const {
  std::vector<std::string> names;
  for (auto& provider : providers_) names.push_back(provider->name());
  return names;
}

}  // namespace epona
