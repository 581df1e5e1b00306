#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "ops/math/einsum_equation.h"

namespace epona {
namespace {

/// "" or a complaint.
std::string parse_term(const std::string& text, std::vector<int>& term) {
  bool ellipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c >= 'A' && c <= 'Z') {
      term.push_back(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      term.push_back(26 + c - 'a');
    } else if (text.compare(i, 3, "...") == 0 && !ellipsis) {
      ellipsis = true;
      term.push_back(kEinsumEllipsis);
      i += 2;
    } else {
      return cat("unexpected '", c, "' in term '", text, "'");
    }
  }
  return "";
}

}  // namespace

std::string EinsumEquation::parse(const std::string& equation) {
  std::string text;
  for (char c : equation)
    if (!std::isspace(static_cast<unsigned char>(c))) text += c;
  const size_t arrow = text.find("->");
  const std::string left = text.substr(0, arrow);
  bool any_ellipsis = false;
  int count[kEinsumLetters] = {};
  for (size_t start = 0; start <= left.size();) {
    size_t end = std::min(left.find(',', start), left.size());
    terms.emplace_back();
    if (auto problem = parse_term(left.substr(start, end - start), terms.back()); !problem.empty()) return problem;
    start = end + 1;
  }
  for (auto& term : terms)
    for (int label : term) {
      if (label == kEinsumEllipsis)
        any_ellipsis = true;
      else
        ++count[label];
    }
  if (arrow != std::string::npos) {
    if (auto problem = parse_term(text.substr(arrow + 2), output); !problem.empty()) return problem;
    for (size_t i = 0; i < output.size(); ++i) {
      if (output[i] != kEinsumEllipsis && count[output[i]] == 0) return "an output label is in no input term";
      if (std::find(output.begin(), output.begin() + static_cast<int64_t>(i), output[i]) !=
          output.begin() + static_cast<int64_t>(i))
        return "an output label is repeated";
    }
    return "";
  }
  if (any_ellipsis) output.push_back(kEinsumEllipsis);
  for (int label = 0; label < kEinsumLetters; ++label)
    if (count[label] == 1) output.push_back(label);
  return "";
}

std::string view_operand(const std::vector<int>& term, const Shape& shape, EinsumView& view) {
  const bool ellipsis = std::find(term.begin(), term.end(), kEinsumEllipsis) != term.end();
  const int letters = static_cast<int>(term.size()) - (ellipsis ? 1 : 0), spare = shape.rank() - letters;
  if (spare < 0 || (spare > 0 && !ellipsis))
    return cat("a term of ", letters, " labels", ellipsis ? " and an ellipsis" : "", " does not fit shape ", shape);
  if (spare > kEinsumLabels - kEinsumLetters) return cat("an ellipsis of ", spare, " dims is too long");
  view.labels = 0;
  int64_t stride = 1;
  int d = shape.rank() - 1;
  auto add = [&](int label) {
    const int64_t dim = shape[d];
    // A dim of one stands still, so that it broadcasts.
    const int64_t step = dim == 1 ? 0 : stride;
    if (!view.has(label)) {
      view.labels |= uint64_t{1} << label;
      view.dims[label] = dim;
      view.strides[label] = step;
    } else {
      if (view.dims[label] != dim && view.dims[label] != 1 && dim != 1) return false;
      view.dims[label] = view.dims[label] == 1 ? dim : view.dims[label];
      view.strides[label] += step;
    }
    stride *= dim;
    --d;
    return true;
  };
  for (size_t t = term.size(); t-- > 0;) {
    if (term[t] == kEinsumEllipsis) {
      for (int k = 0; k < spare; ++k) add(kEinsumLabels - 1 - k);
    } else if (!add(term[t])) {
      return cat("a repeated label has two sizes in shape ", shape);
    }
  }
  return "";
}

}  // namespace epona
