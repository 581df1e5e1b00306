#include "ops/registry.h"

namespace epona {
namespace {

/// StringConcat: strings joined element by element, with broadcasting.
class StringConcat final : public Kernel {
 public:
  explicit StringConcat(const NodeInfo&) {}
  void shapes(ShapeContext& c) const override {
    const Shape &a = c.in(0), &b = c.in(1);
    Shape out(std::max(a.rank(), b.rank()), 1);
    for (int i = 1; i <= out.rank(); ++i) {
      int64_t x = dim_from_back(a, i), y = dim_from_back(b, i);
      if (x != y && x != 1 && y != 1) c.refuse("shapes ", a, " and ", b, " do not broadcast");
      out[out.rank() - i] = x == 1 ? y : x;
    }
    c.out(0, out);
  }
  void run(const RunContext& c) const override {
    const Tensor &a = c.in(0), &b = c.in(1);
    Tensor& out = c.out(0);
    int rank = out.shape.rank();
    for (int64_t i = 0, n = out.size(); i < n; ++i) {
      int64_t at_a = 0, at_b = 0, step_a = 1, step_b = 1, rest = i;
      for (int d = 1; d <= rank; ++d) {
        int64_t at = rest % out.shape[rank - d], x = dim_from_back(a.shape, d), y = dim_from_back(b.shape, d);
        rest /= out.shape[rank - d];
        if (x != 1) at_a += at * step_a;
        if (y != 1) at_b += at * step_b;
        step_a *= x, step_b *= y;
      }
      out.as<std::string>()[i] = a.as<std::string>()[at_a] + b.as<std::string>()[at_b];
    }
  }

 private:
  static int64_t dim_from_back(const Shape& shape, int i) { return i <= shape.rank() ? shape[shape.rank() - i] : 1; }
};

}  // namespace
}  // namespace epona

EPONA_OPS(string_concat) { r.add({.name = "StringConcat", .since = 20, .make = make_kernel<StringConcat>}); }
