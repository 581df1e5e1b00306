#include <unordered_set>
#include <vector>

#include "ops/registry.h"
#include "ops/text/utf8_util.h"

namespace epona {
namespace {

/// StringNormalizer: drops stop words, then changes case. The locale attribute does not matter: case follows Unicode.
class StringNormalizer final : public Kernel {
 public:
  explicit StringNormalizer(const NodeInfo& info) : case_sensitive_(info.attr("is_case_sensitive", 0) != 0) {
    std::string action = info.attr("case_change_action", "NONE");
    if (action != "NONE" && action != "LOWER" && action != "UPPER")
      info.refuse(Code::invalid_graph, "unknown case_change_action '", action, "'");
    lower_ = action == "LOWER";
    upper_ = action == "UPPER";
    for (const std::string& word : info.strings("stopwords"))
      stopwords_.insert(case_sensitive_ ? word : to_lower(word));
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    bool matrix = in.shape.rank() == 2;
    if (!(in.shape.rank() == 1 || (matrix && in.shape[0] == 1)))
      c.refuse("the input must have shape [C] or [1,C], found ", in.shape);
    std::vector<std::string> kept;
    for (const std::string& word : in.span<std::string>()) {
      bool stop = !stopwords_.empty() && stopwords_.contains(case_sensitive_ ? word : to_lower(word));
      if (!stop) kept.push_back(lower_ ? to_lower(word) : upper_ ? to_upper(word) : word);
    }
    if (kept.empty()) kept.emplace_back();  // as the standard says: one empty string
    int64_t count = static_cast<int64_t>(kept.size());
    Tensor& out = c.allocate(0, matrix ? Shape{1, count} : Shape{count}, DataType::string);
    std::move(kept.begin(), kept.end(), out.as<std::string>());
  }

 private:
  bool case_sensitive_, lower_ = false, upper_ = false;
  std::unordered_set<std::string> stopwords_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(string_normalizer) {
  r.add({.name = "StringNormalizer", .since = 10, .make = make_kernel<StringNormalizer>, .dynamic = true});
}
