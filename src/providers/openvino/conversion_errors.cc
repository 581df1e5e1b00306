#include "providers/openvino/conversion_errors.h"

#include <algorithm>
#include <set>

namespace epona::openvino {
namespace {

/// "Add-17" -> {"", "Add"}; "com.microsoft.QGemm" -> {"com.microsoft", "QGemm"}.
std::pair<std::string, std::string> parse_operator(std::string text) {
  size_t dash = text.find_last_of('-'), dot = text.find_last_of('.');
  if (dash != std::string::npos) text.resize(dash);
  if (dot != std::string::npos && dot < text.size()) return {text.substr(0, dot), text.substr(dot + 1)};
  return {"", text};
}

/// The operators of a line "<title> A-17, ai.onnx.ml.B, C-13".
std::set<std::pair<std::string, std::string>> listed(const std::string& message, const std::string& title) {
  std::set<std::pair<std::string, std::string>> operators;
  size_t at = message.find(title);
  if (at == std::string::npos) return operators;
  at += title.size();
  std::string line = message.substr(at, message.find('\n', at) - at);
  for (size_t from = 0; from < line.size();) {
    size_t comma = std::min(line.find(',', from), line.size());
    std::string item = line.substr(from, comma - from);
    item.erase(0, item.find_first_not_of(' '));
    if (size_t end = item.find_last_not_of(" \r"); end != std::string::npos) item.resize(end + 1);
    if (!item.empty()) operators.insert(parse_operator(item));
    from = comma + 1;
  }
  return operators;
}

bool uses(const Node& node, const std::set<std::pair<std::string, std::string>>& operators) {
  if (operators.contains({node.domain, node.op})) return true;
  bool inside = false;
  for_each_subgraph(node, [&](const Graph& body) {
    for (const Node& part : body.nodes) inside |= !part.removed && uses(part, operators);
  });
  return inside;
}

/// The lines of the message about one node, without those that say where in OpenVINO's source it happened.
std::string explanation(const std::string& message, size_t at) {
  size_t from = message.rfind("\n-- ", at), to = message.find("\n-- ", at);
  if (from == std::string::npos) from = 0;
  std::string part = message.substr(from, to == std::string::npos ? std::string::npos : to - from), text;
  for (size_t begin = 0; begin < part.size();) {
    size_t end = std::min(part.find('\n', begin), part.size());
    std::string line = part.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty() || line.starts_with("-- ") || line.find("FrontEnd API failed") != std::string::npos ||
        line.find("Summary") != std::string::npos || line.starts_with("While validating") ||
        line.find("' failed at ") != std::string::npos)
      continue;
    text += (text.empty() ? "" : "; ") + line;
  }
  return text.empty() ? "its conversion failed" : text;
}

std::string quoted_name(const Node& node) { return cat("(", node.op, "): "); }

}  // namespace

std::map<NodeId, Refusal> blamed_nodes(const Graph& graph, const std::vector<NodeId>& nodes,
                                       const std::string& message) {
  std::map<NodeId, Refusal> blamed;
  auto unknown = listed(message, "No conversion rule found for operations: ");
  for (NodeId id : nodes)
    if (!unknown.empty() && uses(graph.nodes[id], unknown))
      blamed[id] = {Reason::no_kernel,
                    cat("OpenVINO has no conversion for ", graph.nodes[id].op, " of opset ", graph.nodes[id].opset)};
  if (!blamed.empty()) return blamed;

  auto failed = listed(message, "Conversion is failed for: ");
  std::vector<char> follows(graph.values.size(), 0);
  for (NodeId id : nodes) {  // in topological order: the first of a chain is to blame
    const Node& node = graph.nodes[id];
    bool behind =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != kNone && follows[v]; });
    size_t at = std::string::npos;
    for (ValueId output : node.outputs)
      if (output != kNone && at == std::string::npos)
        at = message.find(quoted_name(node) + graph.values[output].name + ">");
    bool blame = at != std::string::npos;
    if (blame && !behind)
      blamed[id] = {Reason::attribute, cat("OpenVINO cannot convert it: ", explanation(message, at))};
    if (behind || blame)
      for (ValueId output : node.outputs)
        if (output != kNone) follows[output] = 1;
  }
  if (!blamed.empty() || failed.empty()) return blamed;
  for (NodeId id : nodes)
    if (uses(graph.nodes[id], failed)) {
      blamed[id] = {Reason::attribute, cat("OpenVINO cannot convert it: ", explanation(message, message.size()))};
      break;
    }
  return blamed;
}

std::map<NodeId, Refusal> unsupported_nodes(const Core& core, const ov_model& model, const Graph& graph,
                                            const std::vector<NodeId>& nodes) {
  std::map<NodeId, Refusal> unsupported;
  std::optional<DeviceSupport> support = core.query(model);
  if (!support) return unsupported;
  for (NodeId id : nodes) {
    // A node that was folded or converted into others has no operation of its name: nothing is known against it.
    for (ValueId output : graph.nodes[id].outputs) {
      if (output == kNone) continue;
      const std::string& name = graph.values[output].name;
      if (support->present.contains(name) && !support->supported.contains(name))
        unsupported[id] = {Reason::no_kernel, cat("OpenVINO's device ", core.device(), " does not support it")};
      break;
    }
  }
  return unsupported;
}

}  // namespace epona::openvino
