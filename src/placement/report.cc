#include "placement/report.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/json.h"

namespace epona {
namespace {

std::string percent(double share) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, "%.1f%%", 100 * share);
  return buffer;
}

std::string scaled(double number) {
  const char* units[] = {"", " k", " M", " G", " T"};
  int unit = 0;
  while (number >= 1000 && unit < 4) {
    number /= 1000;
    ++unit;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g%s", number, units[unit]);
  return buffer;
}

std::string padded(std::string text, size_t width) {
  if (text.size() > width && width > 3) text = text.substr(0, width - 3) + "...";
  text.append(width - std::min(width, text.size()), ' ');
  return text;
}

std::string full_op(const std::string& domain, const std::string& op) {
  return domain.empty() ? op : domain + ":" + op;
}

std::string note(const NodePlacement& node) {
  if (!node.vanished.empty()) return node.vanished;
  std::string text;
  for (const std::string& pass : node.fused_by) text += (text.empty() ? "by " : ", ") + pass;
  if (!node.runs_as.empty()) text = cat("as ", node.runs_as, text.empty() ? "" : " ", text);
  return text;
}

void add_rows(std::string& text, const Placement& placement, size_t rows) {
  size_t name = 4, op = 8, provider = 8;
  for (const NodePlacement& node : placement.nodes) {
    name = std::max(name, std::min<size_t>(40, node.name.size()));
    op = std::max(op, std::min<size_t>(32, full_op(node.domain, node.op).size()));
    provider = std::max(provider, node.provider.size());
  }
  text += cat("\n", padded("node", name), "  ", padded("operator", op), "  ", padded("provider", provider), "  note\n");
  std::string graph = placement.nodes.empty() ? "" : placement.nodes[0].graph;
  size_t shown = 0;
  for (const NodePlacement& node : placement.nodes) {
    if (shown++ == rows) {
      text += cat("... and ", placement.nodes.size() - rows, " more nodes: to_json() and to_html() have them all\n");
      return;
    }
    std::string row = cat(padded(node.name, name), "  ", padded(full_op(node.domain, node.op), op), "  ",
                          padded(node.provider.empty() ? "-" : node.provider, provider), "  ", note(node));
    if (node.graph != graph) row += cat(" (in subgraph '", node.graph, "')");
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + '\n';
    for (const auto& declined : node.declined)
      text += cat("    not ", declined.provider, ": ", declined.reason, ": ", declined.text, '\n');
  }
}

void write_nodes(JsonWriter& json, const Placement& placement) {
  json.key("nodes").begin_array();
  auto list = [&](const char* key, const std::vector<std::string>& texts) {
    json.key(key).begin_array();
    for (const std::string& text : texts) json.value(text);
    json.end_array();
  };
  for (const NodePlacement& node : placement.nodes) {
    json.begin_object().field("name", node.name).field("op_type", node.op).field("domain", node.domain);
    json.field("graph", node.graph).field("provider", node.provider).field("runs_as", node.runs_as);
    list("fused_by", node.fused_by);
    json.field("vanished", node.vanished).field("flops", node.flops);
    json.field("flops_assumed", node.flops_assumed);
    list("inputs", node.inputs);
    list("outputs", node.outputs);
    json.key("declined").begin_array();
    for (const auto& declined : node.declined)
      json.begin_object()
          .field("provider", declined.provider)
          .field("reason", declined.reason)
          .field("text", declined.text)
          .end_object();
    json.end_array().end_object();
  }
  json.end_array();
}

/// How far the FLOPs can be trusted; empty when all dims are known.
std::string assumption(const Placement& placement) {
  if (placement.assumed_dims.empty()) return "";
  std::string names;
  for (const std::string& name : placement.assumed_dims)
    if (name != "?") names += cat(names.empty() ? "" : ", ", name);
  auto rows = std::count_if(placement.nodes.begin(), placement.nodes.end(),
                            [](const NodePlacement& node) { return node.flops_assumed; });
  std::string where = cat("In the FLOPs of ", rows, rows == 1 ? " node, " : " nodes, ");
  if (names.empty()) return where + "dimensions known only in a run count as 1.";
  return cat(where, "unknown dimensions count as 1. Fix them for true shares: ", names,
             " (add_free_dimension_override_by_name, or --dim name=N).");
}

}  // namespace

std::string to_table(const PlacementReport& report, size_t rows) {
  const Placement& placement = report.placement;
  std::string text = cat("Placement of ", report.model, "\n\n", padded("provider", 28), padded("nodes", 16), "FLOPs\n");
  for (const ProviderShare& share : placement.shares())
    text += cat(padded(share.provider, 28), padded(cat(share.nodes, " (", percent(share.node_share), ")"), 16),
                percent(share.flop_share), " (", scaled(share.flops), ")\n");
  if (std::string assumed = assumption(placement); !assumed.empty()) text += assumed + '\n';
  std::map<std::string, int> vanished;
  for (const NodePlacement& node : placement.nodes)
    if (!node.vanished.empty()) ++vanished[node.vanished];
  for (auto& [how, count] : vanished) text += cat(padded("(nobody)", 28), padded(std::to_string(count), 16), how, '\n');
  for (const InactiveProvider& one : placement.inactive) text += cat("\nnot active: ", one.sentence(), '\n');
  std::map<std::string, int> inserted;
  for (const InsertedNode& node : placement.inserted)
    ++inserted[cat(full_op(node.domain, node.op), " on ", node.provider, node.by.empty() ? "" : ", by ", node.by)];
  for (auto& [what, count] : inserted) text += cat("inserted: ", count, " x ", what, '\n');
  size_t constants = 0;
  int64_t bytes = 0;
  for (const PlacedCopy& copy : placement.copies) {
    constants += copy.once;
    bytes += copy.once ? copy.bytes : 0;
  }
  if (!placement.copies.empty())
    text += cat("\ncopies: ", placement.copies.size() - constants, " in every run, ", constants, " of constants (",
                bytes, " bytes) once\n");
  for (const PlacedCopy& copy : placement.copies)
    if (!copy.once)
      text += cat("  ", copy.value, ": ", copy.from, " -> ", copy.to, ", ",
                  copy.bytes < 0 ? std::string("size known when it runs") : cat(copy.bytes, " bytes"), '\n');
  if (!report.phases.empty()) text += "\ncreation:";
  for (auto& [phase, ms] : report.phases) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, " %.1f ms", ms);
    text += cat(" ", phase, buffer, &phase == &report.phases.back().first ? "\n" : ",");
  }
  if (rows > 0) add_rows(text, placement, rows);
  return text;
}

std::string to_json(const PlacementReport& report) {
  const Placement& placement = report.placement;
  JsonWriter json;
  json.begin_object().field("model", report.model).key("providers").begin_array();
  for (const ProviderShare& share : placement.shares())
    json.begin_object()
        .field("name", share.provider)
        .field("nodes", share.nodes)
        .field("node_share", share.node_share)
        .field("flops", share.flops)
        .field("flop_share", share.flop_share)
        .end_object();
  json.end_array().field("flops_assumption", assumption(placement)).key("assumed_dims").begin_array();
  for (const std::string& name : placement.assumed_dims)
    if (name != "?") json.value(name);
  json.end_array().key("inactive").begin_array();
  for (const InactiveProvider& one : placement.inactive)
    json.begin_object()
        .field("provider", one.provider)
        .field("stage", one.stage)
        .field("cause", one.cause)
        .field("fix", one.fix)
        .end_object();
  json.end_array().key("copies").begin_array();
  for (const PlacedCopy& copy : placement.copies)
    json.begin_object()
        .field("graph", copy.graph)
        .field("value", copy.value)
        .field("from", copy.from)
        .field("to", copy.to)
        .field("bytes", copy.bytes)
        .field("once", copy.once)
        .end_object();
  json.end_array().key("inserted").begin_array();
  for (const InsertedNode& node : placement.inserted)
    json.begin_object()
        .field("op_type", node.op)
        .field("domain", node.domain)
        .field("graph", node.graph)
        .field("provider", node.provider)
        .field("by", node.by)
        .end_object();
  json.end_array().key("phases").begin_array();
  for (auto& [phase, ms] : report.phases) json.begin_object().field("name", phase).field("ms", ms).end_object();
  json.end_array().key("passes").begin_array();
  for (const PassRecord& pass : report.passes)
    json.begin_object()
        .field("name", pass.name)
        .field("rewrites", pass.rewrites)
        .field("ms", pass.milliseconds)
        .end_object();
  json.end_array();
  write_nodes(json, placement);
  return json.end_object().text();
}

}  // namespace epona
