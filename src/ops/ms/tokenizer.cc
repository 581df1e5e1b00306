#include <optional>
#include <vector>

#include "ops/registry.h"
#include "ops/text/regex_util.h"
#include "ops/text/utf8_util.h"

namespace epona {
namespace {

constexpr char kStartMark[] = "\x02", kEndMark[] = "\x03";

/// Tokenizer: each string cut into characters, into the matches of a pattern, or at the matches of separators. A new
/// last dim holds the tokens, filled up with pad_value.
class Tokenizer final : public Kernel {
 public:
  explicit Tokenizer(const NodeInfo& info)
      : mark_(info.attr("mark", 0) != 0), least_(info.attr("mincharnum", 1)), pad_(info.attr("pad_value", "")) {
    std::string pattern = info.attr("tokenexp", "");
    std::vector<std::string> separators = info.strings("separators");
    if (pattern.empty() == separators.empty())
      info.refuse(Code::invalid_graph, "one of tokenexp and separators must be given");
    if (least_ < 1) info.refuse(Code::invalid_graph, "mincharnum must be positive, found ", least_);
    characters_ = pattern == "." || (separators.size() == 1 && separators[0].empty());
    if (characters_) return;
    try {
      if (!pattern.empty()) token_.emplace(pattern);
      for (const std::string& separator : separators) separators_.emplace_back(separator);
    } catch (const Error& error) {
      info.refuse(Code::invalid_argument, error.what());
    }
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    if (in.shape.rank() < 1 || in.shape.rank() > 2)
      c.refuse("the input must have shape [C] or [N,C], found ", in.shape);
    std::vector<std::vector<std::string_view>> rows;
    size_t widest = 0;
    for (const std::string& text : in.span<std::string>()) {
      rows.push_back(tokens_of(text));
      widest = std::max(widest, rows.back().size() + (mark_ ? 2 : 0));
    }
    Shape shape = in.shape;
    shape.push_back(static_cast<int64_t>(widest));
    std::string* out = c.allocate(0, shape, DataType::string).as<std::string>();
    for (const auto& row : rows) {
      std::string* end = out + widest;
      if (mark_) *out++ = kStartMark;
      for (std::string_view token : row) *out++ = token;
      if (mark_) *out++ = kEndMark;
      while (out < end) *out++ = pad_;
    }
  }

 private:
  std::vector<std::string_view> tokens_of(std::string_view text) const {
    std::vector<std::string_view> tokens;
    if (characters_) {
      for (std::string_view rest = text; !rest.empty();) {
        std::string_view from = rest;
        next_code_point(rest);
        tokens.push_back(from.substr(0, from.size() - rest.size()));
      }
    } else if (token_) {
      for (auto match = token_->find(text, 0); match; match = token_->find(text, match->second)) {
        keep(text.substr(match->first, match->second - match->first), tokens);
        if (match->first == match->second && !step(text, match->second)) break;
      }
    } else {
      tokens.push_back(text);
      for (const Regex& separator : separators_) {
        std::vector<std::string_view> parts;
        for (std::string_view token : tokens) cut(token, separator, parts);
        tokens.swap(parts);
      }
    }
    return tokens;
  }
  void cut(std::string_view text, const Regex& separator, std::vector<std::string_view>& parts) const {
    size_t begin = 0, at = 0;
    for (auto match = separator.find(text, 0); match; match = separator.find(text, at)) {
      at = match->second;
      if (match->first == match->second) {
        if (!step(text, at)) break;
        continue;
      }
      keep(text.substr(begin, match->first - begin), parts);
      begin = at;
    }
    keep(text.substr(begin), parts);
  }
  void keep(std::string_view token, std::vector<std::string_view>& tokens) const {
    int64_t length = 0;
    for (std::string_view rest = token; !rest.empty(); ++length) next_code_point(rest);
    if (length >= least_) tokens.push_back(token);
  }
  /// Moves past one character after an empty match; false at the end.
  static bool step(std::string_view text, size_t& at) {
    if (at >= text.size()) return false;
    std::string_view rest = text.substr(at);
    next_code_point(rest);
    at = text.size() - rest.size();
    return true;
  }

  bool mark_, characters_ = false;
  int64_t least_;
  std::string pad_;
  std::optional<Regex> token_;
  std::vector<Regex> separators_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(tokenizer) {
  r.add({.name = "Tokenizer", .domain = "com.microsoft", .make = make_kernel<Tokenizer>, .dynamic = true});
}
