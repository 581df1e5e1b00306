#pragma once
#include <limits>
#include <vector>

#include "graph/graph.h"

namespace epona::openvino {

/// Bounds of all elements of a value, as far as the graph gives them away. Overflow of a type is not considered.
struct Range {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();

  bool positive() const { return low > 0; }
  bool not_negative() const { return low >= 0; }
  bool has_zero() const { return low <= 0 && high >= 0; }
};

/// For every value of a graph. Inputs may be anything.
std::vector<Range> value_ranges(const Graph& graph);

}  // namespace epona::openvino
