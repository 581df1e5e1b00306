#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/shape.h"

namespace epona {

/// Labels of an Einsum: 0..25 are A..Z, 26..51 a..z, 52..63 the dims of the ellipsis, the last one innermost.
constexpr int kEinsumLabels = 64;
constexpr int kEinsumLetters = 52;
constexpr int kEinsumEllipsis = -1;  ///< stands for all ellipsis dims in a term

/// An equation taken apart. Terms hold labels and kEinsumEllipsis.
struct EinsumEquation {
  std::vector<std::vector<int>> terms;
  std::vector<int> output;

  /// Empty, or what is wrong with the text.
  std::string parse(const std::string& text);
};

/// An operand or intermediate: which labels it has, their dims and element strides.
struct EinsumView {
  uint64_t labels = 0;
  int64_t dims[kEinsumLabels], strides[kEinsumLabels];

  bool has(int label) const { return labels >> label & 1; }
};

/// The view of an operand: a repeated label walks the diagonal. Returns what does not fit, or an empty string.
std::string view_operand(const std::vector<int>& term, const Shape& shape, EinsumView& view);

}  // namespace epona
