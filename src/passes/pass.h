#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "graph/graph.h"

namespace epona {

/// Graph optimisation levels, numbered as in onnxruntime's API.
enum class OptLevel : int { none = 0, basic = 1, extended = 2, layout = 3, all = 99 };

/// What a pass may know of the session.
struct PassContext {
  OptLevel level = OptLevel::all;
  bool intermediate_outputs = false;
  CancelFlag cancel = nullptr;
  bool plain_only = false;  ///< Pass::plain only: the others may follow
};

/// One graph rewrite. apply() works on one graph (the runner also visits subgraphs) and returns how many times it
/// rewrote something. It never changes a result.
struct Pass {
  const char* name;  ///< as users name it to switch it off: "constant_folding"
  OptLevel level;    ///< runs at this level and above
  int (*apply)(Graph& graph, const PassContext& context);
  bool plain = false;     ///< leaves operators of ONNX only: also runs before compiling providers are asked for groups
  bool rebuilds = false;  ///< replaces the list of nodes, keeping names
};

/// All passes in the order in which they run (src/passes/pass_list.cc: the one list).
const std::vector<Pass>& all_passes();

/// What one pass did.
struct PassRecord {
  std::string name;
  int rewrites = 0;
  double milliseconds = 0;
};

class NodeTrace;

/// Runs every pass that the level allows and `disabled` does not name, verifies the graph after each and says what
/// happened. `dump_after` prints the graph after the pass of that name (stderr). `trace` follows the nodes.
std::vector<PassRecord> run_passes(Graph& graph, const PassContext& context, const std::set<std::string>& disabled = {},
                                   const std::string& dump_after = "", NodeTrace* trace = nullptr);

}  // namespace epona
