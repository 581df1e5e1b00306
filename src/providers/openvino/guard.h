#pragma once
#include <string>
#include <vector>

#include "graph/graph.h"

namespace epona::openvino {

/// What elements OpenVINO answers wrongly and without a word, where the graph cannot rule them out. A value that the group
/// reads is looked at before the run (check_inputs()); for one that it makes the model gets nodes that do (add_guards()).
/// Either way the run then fails, and the next provider gives the right value or the right error.
struct Guard {
  enum class Kind {
    finite,   ///< no NaN, no infinity: inputs only
    number,   ///< no NaN
    mask,     ///< a number in every row along the last dim, negative infinities beside it: inputs only
    nonzero,  ///< of integers and floats
    positive,
    not_negative,
    index,        ///< within [-n, n) with the dim n of `data` at `axis`
    position,     ///< within [0, n)
    coordinates,  ///< GatherND: the last dim of `value` indexes the dims of `data` from `axis` on
    filled,       ///< the dim of `value` at `axis` is not 0
  };
  Kind kind;
  NodeId node;  ///< the operator that would be wrong
  ValueId value;
  ValueId data = kNone;
  int64_t axis = 0;
  std::string text;  ///< what is wrong with such an element
};

/// Those of a group, or of the body of a node that OpenVINO would run as a whole.
std::vector<Guard> find_guards(const Graph& graph);

/// Whether the group reads all that the guard looks at, so that the host can.
bool is_for_inputs(const Graph& graph, const Guard& guard);
/// Whether the model needs nodes of its own for it.
bool is_inner(const Graph& graph, const Guard& guard);
std::vector<Guard> inner_guards(const Graph& graph);
constexpr int kGuardOpset = 10;  ///< of the operators that these are made of

/// "value 'x' holds 0, by which ..."
std::string describe(const Graph& graph, const Guard& guard);

/// Whether NaN may come out of the operator as a number (2026.4.1).
bool loses_nan(const Graph& graph, const Node& node);

/// The graph with one more output of int32, an element for each of `guards`: not 0 where it is violated.
Graph add_guards(const Graph& graph, const std::vector<Guard>& guards);

}  // namespace epona::openvino
