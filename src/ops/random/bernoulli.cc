#include <algorithm>

#include "ops/convert.h"
#include "ops/random/random_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// 1 with the probability that the input gives, else 0.
class Bernoulli final : public Kernel {
 public:
  explicit Bernoulli(const NodeInfo& info) : source_(info) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "input type ", info.in_type(0));
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const RandomStream stream = source_.next();
    const int64_t size = x.size(), blocks = (size + kConvertBlock - 1) / kConvertBlock;
    c.pool().parallel_for(blocks, kConvertBlock * 3.0, [&](int64_t first, int64_t last) {
      double chances[kConvertBlock];
      bool results[kConvertBlock];
      for (int64_t block = first; block < last; ++block) {
        const int64_t begin = block * kConvertBlock, n = std::min(kConvertBlock, size - begin);
        const char* from = static_cast<const char*>(x.data) + static_cast<size_t>(begin) * type_bits(x.type) / 8;
        convert_elements(x.type, from, DataType::float64, chances, 0, n);
        for (int64_t i = 0; i < n; ++i) results[i] = stream.uniform(begin + i) < chances[i];
        char* to = static_cast<char*>(y.data) + static_cast<size_t>(begin) * type_bits(y.type) / 8;
        convert_elements(DataType::boolean, results, y.type, to, 0, n);
      }
    });
  }

 private:
  RandomSource source_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(bernoulli) { r.add({.name = "Bernoulli", .since = 15, .make = make_kernel<Bernoulli>, .random = true}); }
