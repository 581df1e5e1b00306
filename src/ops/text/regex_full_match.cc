#include <optional>

#include "ops/registry.h"
#include "ops/text/regex_util.h"

namespace epona {
namespace {

/// RegexFullMatch: whether the whole of each string matches the pattern (RE2's syntax).
class RegexFullMatch final : public Kernel {
 public:
  explicit RegexFullMatch(const NodeInfo& info) {
    try {
      regex_.emplace(info.attr("pattern", ""));
    } catch (const Error& error) {
      info.refuse(Code::invalid_argument, error.what());
    }
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    const std::string* in = c.data<std::string>(0);
    bool* out = c.out_data<bool>(0);
    c.pool().parallel_for(c.in(0).size(), 500, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) out[i] = regex_->full_match(in[i]);
    });
  }

 private:
  std::optional<Regex> regex_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(regex_full_match) { r.add({.name = "RegexFullMatch", .since = 20, .make = make_kernel<RegexFullMatch>}); }
