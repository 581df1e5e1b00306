#include "providers/openvino/provider.h"

#include <epona/version.h>

#include <algorithm>

#include "graph/convex_groups.h"
#include "providers/openvino/conversion_errors.h"
#include "providers/openvino/find.h"
#include "providers/openvino/guard.h"
#include "providers/openvino/kernel.h"
#include "providers/openvino/known_wrong.h"
#include "providers/openvino/screen.h"

namespace epona::openvino {
namespace {

constexpr int kMaxConversions = 64;  // attempts to convert a graph, each without the nodes blamed for the last failure
// Groups that do not cover their graph are islands below these sizes: a call of its own costs more than it gains. Bodies
// of If, Loop and Scan run often and their groups are compiled one by one.
constexpr size_t kCheapIsland = 8, kBodyIsland = 12;

std::vector<NodeId> chosen(const std::vector<char>& flags) {
  std::vector<NodeId> ids;
  for (size_t id = 0; id < flags.size(); ++id)
    if (flags[id]) ids.push_back(static_cast<NodeId>(id));
  return ids;
}

bool same_values(const Graph& a, const std::vector<ValueId>& left, const Graph& b, const std::vector<ValueId>& right) {
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if ((left[i] == kNone) != (right[i] == kNone)) return false;
    if (left[i] != kNone && a.values[left[i]].name != b.values[right[i]].name) return false;
  }
  return true;
}

/// Whether two groups of the same graph are the same group.
bool same_group(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size() || !same_values(a, a.inputs, b, b.inputs) ||
      !same_values(a, a.outputs, b, b.outputs))
    return false;
  for (size_t n = 0; n < a.nodes.size(); ++n)
    if (a.nodes[n].op != b.nodes[n].op || !same_values(a, a.nodes[n].outputs, b, b.nodes[n].outputs)) return false;
  return true;
}

/// OpenVINO's inputs need a rank. Refuses the nodes that read a value of unknown rank which their group does not make.
template <class Refuse>
bool refuse_unknown_ranks(const Graph& graph, const std::vector<std::vector<NodeId>>& groups, Refuse&& refuse) {
  bool refused = false;
  for (auto& group : groups)
    for (NodeId id : group) {
      const Node& node = graph.nodes[id];
      const Value* unknown = nullptr;
      for (const auto* list : {&node.inputs, &node.captures})
        for (ValueId value : *list) {
          if (value == kNone || graph.values[value].type.shape || graph.values[value].constant) continue;
          NodeId producer = graph.values[value].producer;
          if (producer == kNone || !std::binary_search(group.begin(), group.end(), producer))
            unknown = &graph.values[value];
        }
      if (!unknown) continue;
      refuse(id, {Reason::dynamic_shape, cat("the rank of its input '", unknown->name, "' is not known")});
      refused = true;
    }
  return refused;
}

}  // namespace

OpenVinoProvider::OpenVinoProvider(const OptionValues& options, const ProviderContext& context)
    : config_(make_config(options, context)) {
  Installation found = find_installation();
  if (found.library.empty()) fail(Code::ep_fail, "OpenVINO's library libopenvino_c is not there");
  core_ = std::make_shared<Core>(Api::open(found.library), config_.device, config_.properties, config_.exact_bytes,
                                 config_.keep_nan);
  if (!config_.cache_dir.empty())
    cache_ = std::make_shared<Cache>(config_.cache_dir,
                                     cat(version(), " ", EPONA_OPENVINO_SOURCES, " ", core_->api().version, " ",
                                         core_->device_name(), " ", to_text(config_)),
                                     context.severity, context.log_id);
}

void OpenVinoProvider::align_constants(Graph& graph) {
  for (Value& value : graph.values) {
    if (!value.constant || value.constant.type == DataType::string) continue;
    size_t unit = std::max<size_t>(1, std::min<size_t>(8, type_bits(value.constant.type) / 8));
    const void* data = value.constant.data;
    if (reinterpret_cast<uintptr_t>(data) % unit == 0) continue;
    Tensor& copy = aligned_[data];
    if (!copy) copy = value.constant.clone();
    value.constant.data = copy.data;
    value.constant.owner = copy.owner;
  }
}

Graph OpenVinoProvider::prepared(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<ValueId> inputs, outputs;
  Graph group = extract_group(graph, nodes, inputs, outputs);
  for (Node& node : group.nodes)
    for (auto it = node.outputs.rbegin(); it != node.outputs.rend(); ++it)
      if (*it != kNone) node.name = group.values[*it].name;
  align_constants(group);
  return group;
}

void OpenVinoProvider::check_reshape(const Graph& graph) {
  if (reshape_checked_) return;
  reshape_checked_ = true;
  for (auto& [name, dims] : config_.reshape) {
    std::string known;
    bool found = false;
    for (ValueId id : graph.inputs) {
      known += (known.empty() ? "" : ", ") + graph.values[id].name;
      found |= graph.values[id].name == name;
    }
    if (!found)
      fail(Code::invalid_argument, this->name(), ": option reshape_input names '", name,
           "', which is no input of the model; its inputs are: ", known);
  }
}

Claim OpenVinoProvider::claim(const Graph& graph) {
  in_body_ = reshape_checked_;  // the model itself is asked about first
  check_reshape(graph);
  aligned_.clear();
  if (cache_) cache_->forget_weights();
  // The CPU's plugin has an implementation of everything that can be converted, and asking costs as much as compiling.
  bool ask_device = config_.device != "CPU";
  return remembered(graph, ask_device);
}

Claim OpenVinoProvider::reclaim(const Graph& group) { return remembered(group, true); }

Claim OpenVinoProvider::remembered(const Graph& graph, bool ask_device) {
  if (!cache_) return choose(graph, ask_device);
  Digest key = cache_->key(graph, cat("claim", ask_device, in_body_));
  if (auto known = cache_->find_claim(key, graph, *core_)) {
    converted_.reset();
    return std::move(*known);
  }
  Claim claim = choose(graph, ask_device);
  cache_->keep_claim(key, graph, claim, *core_);
  return claim;
}

Claim OpenVinoProvider::choose(const Graph& graph, bool ask_device) {
  Claim claim;
  converted_.reset();
  std::vector<char> candidate(graph.nodes.size(), 0);
  size_t count = 0;
  Refusal whole = screen_graph(graph, *core_);
  std::vector<char> user_int = user_integers(graph);
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    const Node& node = graph.nodes[id];
    if (node.removed) continue;
    ++count;
    Refusal refusal = whole.reason == Reason::none ? screen(graph, node, *core_, user_int) : whole;
    if (refusal.reason == Reason::none)
      candidate[id] = 1;
    else
      claim.refused[id] = std::move(refusal);
  }
  auto refuse = [&](NodeId id, Refusal refusal) {
    candidate[id] = 0;
    claim.refused[id] = std::move(refusal);
  };
  if (core_->may_use_cpu())
    for (const Guard& guard : find_guards(graph))
      if (candidate[guard.node] && graph.nodes[guard.node].opset < kGuardOpset && !is_for_inputs(graph, guard))
        refuse(guard.node, {Reason::better_on_cpu, cat(describe(graph, guard), ", for all that is known")});
  for (int attempt = 0;; ++attempt) {
    std::vector<NodeId> ids = chosen(candidate);
    if (ids.empty()) return claim;
    auto converted = std::make_unique<Converted>();
    converted->graph = prepared(graph, ids);
    std::map<NodeId, Refusal> blamed;
    std::string message;
    try {
      converted->model = core_->read(converted->graph);
      if (ask_device) blamed = unsupported_nodes(*core_, *converted->model, graph, ids);
    } catch (const std::exception& error) {
      message = error.what();
      blamed = blamed_nodes(graph, ids, message);
      if (blamed.empty() && attempt < kMaxConversions) blamed = first_failing(graph, ids, message);
    }
    if (blamed.empty() && message.empty()) {
      converted_ = std::move(converted);
      break;
    }
    if (blamed.empty() || attempt >= kMaxConversions) {
      for (NodeId id : ids) refuse(id, {Reason::no_kernel, message});
      return claim;
    }
    for (auto& [id, refusal] : blamed) refuse(id, std::move(refusal));
  }
  std::vector<std::vector<NodeId>> groups = convex_groups(graph, candidate);
  while (refuse_unknown_ranks(graph, groups, refuse)) groups = convex_groups(graph, candidate);
  for (std::vector<NodeId>& group : groups) {
    if (!is_island(graph, group, count)) {
      claim.groups.push_back(std::move(group));
      continue;
    }
    std::string text = cat("only ", group.size(), group.size() == 1 ? " node is" : " nodes are",
                           " connected here that OpenVINO could take");
    for (NodeId id : group) refuse(id, {Reason::island, text});
  }
  return claim;
}

bool OpenVinoProvider::is_island(const Graph& graph, const std::vector<NodeId>& group, size_t nodes) const {
  bool heavy = std::any_of(group.begin(), group.end(), [&](NodeId id) { return is_heavy(graph.nodes[id]); });
  if (in_body_) return !heavy || group.size() < kBodyIsland;
  return group.size() < nodes && group.size() < kCheapIsland && !heavy;
}

/// The message blames nobody: the shortest beginning of the nodes that fails ends with the one at fault.
std::map<NodeId, Refusal> OpenVinoProvider::first_failing(const Graph& graph, const std::vector<NodeId>& ids,
                                                          const std::string& message) {
  auto converts = [&](size_t count) {
    try {
      core_->read(prepared(graph, {ids.begin(), ids.begin() + static_cast<long>(count)}));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  };
  size_t good = 0, bad = ids.size();
  while (bad - good > 1) {
    size_t middle = good + (bad - good) / 2;
    (converts(middle) ? good : bad) = middle;
  }
  return {{ids[bad - 1], {Reason::attribute, cat("OpenVINO cannot convert it: ", message)}}};
}

Compiled OpenVinoProvider::compile(const Graph& group) {
  auto read = [this](const Graph& from) -> OpenVinoKernel::Source {
    if (converted_ && same_group(converted_->graph, from)) {
      std::unique_ptr<Converted> used = std::move(converted_);
      return {std::move(used->graph), std::move(used->model)};
    }
    std::vector<NodeId> all(from.nodes.size());
    for (size_t n = 0; n < all.size(); ++n) all[n] = static_cast<NodeId>(n);
    Graph graph = prepared(from, all);
    Owned<ov_model> model = core_->read(graph);
    return {std::move(graph), std::move(model)};
  };
  Digest key;
  if (cache_) key = cache_->key(group, "group");
  Compiled compiled;
  auto kernel = std::make_unique<OpenVinoKernel>(core_, cache_, key, group, read, config_);
  compiled.traits.name = "Group";
  compiled.traits.domain = "epona";
  compiled.traits.dynamic = kernel->dynamic();
  compiled.kernel = std::move(kernel);
  return compiled;
}

KernelPtr OpenVinoProvider::build(const NodeInfo& info) {
  info.refuse(Code::not_implemented, "OpenVINO takes groups of nodes");
}

}  // namespace epona::openvino
