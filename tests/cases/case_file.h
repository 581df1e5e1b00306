#pragma once
#include <string>
#include <utility>
#include <vector>

#include "graph/tensor.h"

namespace epona::test {

/// One case of a .case file. A file is a list of
///   case NAME
///   model TEXT      ONNX text syntax, over as many lines as it takes
///   feed NAME = VALUE
///   want NAME = VALUE
/// and optionally `tolerance T`, `fails "part of the message"` (in place of want), `keep` (passes leave the nodes as they
/// are) and `becomes OP OP ...` (the operators of the main graph at the highest level, in any order).
/// A VALUE is TYPE[dims] {elements}, TYPE {element} for a scalar, seq(VALUE, ...), map(VALUE, VALUE) or none. Elements are
/// separated by commas; v*n stands for n times v; a want may end in `any` in place of {elements}. Text from # on is a
/// comment, except inside quotes.
struct Case {
  std::string file, name, model, fails;
  int line = 0;
  std::vector<std::pair<std::string, RuntimeValue>> feeds, wants;
  double tolerance = -1;  ///< -1: by type
  bool keep = false;
  std::vector<std::string> becomes;
};

/// Throws Error with file and line for text that is not in the format.
std::vector<Case> read_cases(const std::string& path);

/// A tensor of a want that may hold anything has this type of owner: its elements are not compared.
bool is_any(const Tensor& tensor);

/// Empty when `found` is what is wanted; otherwise what differs.
std::string compare(const RuntimeValue& wanted, const RuntimeValue& found, double tolerance);

}  // namespace epona::test
