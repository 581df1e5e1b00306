#include <string_view>
#include <vector>

#include "ops/registry.h"

namespace epona {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The parts of a text, as Python's str.split: at a delimiter, or at runs of white space when there is none. At most
/// `most` splits are made unless it is negative; the rest stays together.
std::vector<std::string_view> split(std::string_view text, std::string_view delimiter, int64_t most) {
  std::vector<std::string_view> parts;
  if (delimiter.empty()) {
    for (size_t at = 0;;) {
      while (at < text.size() && is_space(text[at])) ++at;
      if (at == text.size()) return parts;
      size_t end = at;
      if (most >= 0 && static_cast<int64_t>(parts.size()) == most)
        end = text.size();
      else
        while (end < text.size() && !is_space(text[end])) ++end;
      parts.push_back(text.substr(at, end - at));
      at = end;
    }
  }
  for (size_t at = 0;;) {
    bool last = most >= 0 && static_cast<int64_t>(parts.size()) == most;
    size_t end = last ? std::string_view::npos : text.find(delimiter, at);
    if (end == std::string_view::npos) {
      parts.push_back(text.substr(at));
      return parts;
    }
    parts.push_back(text.substr(at, end - at));
    at = end + delimiter.size();
  }
}

/// StringSplit: the parts of each string in a new last dim (filled up with empty strings) and their number.
class StringSplit final : public Kernel {
 public:
  explicit StringSplit(const NodeInfo& info)
      : delimiter_(info.attr("delimiter", "")), most_(info.attr("maxsplit", -1)) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    std::vector<std::vector<std::string_view>> all;
    size_t widest = 0;
    for (const std::string& text : in.span<std::string>()) {
      all.push_back(split(text, delimiter_, most_));
      widest = std::max(widest, all.back().size());
    }
    if (c.wants(0)) {
      Shape shape = in.shape;
      shape.push_back(static_cast<int64_t>(widest));
      std::string* out = c.allocate(0, shape, DataType::string).as<std::string>();
      for (size_t i = 0; i < all.size(); ++i)
        for (size_t j = 0; j < all[i].size(); ++j) out[i * widest + j] = all[i][j];
    }
    if (c.wants(1)) {
      int64_t* counts = c.allocate(1, in.shape, DataType::int64).as<int64_t>();
      for (size_t i = 0; i < all.size(); ++i) counts[i] = static_cast<int64_t>(all[i].size());
    }
  }

 private:
  std::string delimiter_;
  int64_t most_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(string_split) {
  r.add({.name = "StringSplit", .since = 20, .make = make_kernel<StringSplit>, .dynamic = true});
}
