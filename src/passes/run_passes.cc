#include <chrono>
#include <iostream>

#include "passes/pass.h"
#include "passes/trace.h"

namespace epona {
namespace {

int apply_everywhere(const Pass& pass, Graph& graph, const PassContext& context, NodeTrace* trace) {
  int rewrites = 0;
  for (Node& node : graph.nodes)
    if (!node.removed)
      for_each_subgraph(node, [&](Graph& body) { rewrites += apply_everywhere(pass, body, context, trace); });
  if (trace) trace->before(graph, pass.rebuilds);
  int here = pass.apply(graph, context);
  if (here > 0 && trace) {
    trace->after(graph, pass.name);
    trace->tidy(graph);
  } else if (here > 0) {
    graph.compact();
    graph.sort();
  }
  return rewrites + here;
}

}  // namespace

std::vector<PassRecord> run_passes(Graph& graph, const PassContext& context, const std::set<std::string>& disabled,
                                   const std::string& dump_after, NodeTrace* trace) {
  std::vector<PassRecord> records;
  for (const Pass& pass : all_passes()) {
    if (context.level < pass.level || disabled.contains(pass.name) || (context.plain_only && !pass.plain)) continue;
    stop_if_cancelled(context.cancel);
    auto start = std::chrono::steady_clock::now();
    int rewrites = apply_everywhere(pass, graph, context, trace);
    if (rewrites > 0) {
      try {
        verify(graph);
      } catch (const Error& error) {
        fail(error.code(), "after pass ", pass.name, ": ", error.what());
      }
    }
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    records.push_back({pass.name, rewrites, elapsed.count()});
    if (dump_after == pass.name) std::cerr << to_text(graph) << '\n';
  }
  return records;
}

}  // namespace epona
