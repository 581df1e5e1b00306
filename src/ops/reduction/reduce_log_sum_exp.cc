#include <cmath>
#include <limits>

#include "ops/convert.h"
#include "ops/reduction/reduce_common.h"

namespace epona {
namespace {

/// log(sum(exp(x))), with the maximum taken out of the exponentials. Computed in double for all types.
class ReduceLogSumExp final : public ReduceKernel {
 public:
  explicit ReduceLogSumExp(const NodeInfo& info) : ReduceKernel(info) {
    if (!contains(NumericTypes{}, info.in_type(0)))
      info.refuse(Code::not_implemented, "element type ", info.in_type(0));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    tiles(c, 8, [&](const ReducePlan& p, int64_t first, int64_t count, int64_t start) {
      double top[kTile], sum[kTile];
      std::fill_n(top, count, -std::numeric_limits<double>::infinity());
      std::fill_n(sum, count, 0.0);
      each_element(x, p, start, count, [&](int64_t i, double value) {
        if (value > top[i]) top[i] = value;
      });
      for (int64_t i = 0; i < count; ++i)
        if (!std::isfinite(top[i])) top[i] = 0;
      each_element(x, p, start, count, [&](int64_t i, double value) { sum[i] += std::exp(value - top[i]); });
      for (int64_t i = 0; i < count; ++i) sum[i] = top[i] + std::log(sum[i]);
      const size_t bytes = type_bits(y.type) / 8;
      convert_elements(DataType::float64, sum, y.type, static_cast<char*>(y.data) + static_cast<size_t>(first) * bytes,
                       0, count);
    });
  }

 private:
  template <class Fn>
  static void each_element(const Tensor& x, const ReducePlan& p, int64_t start, int64_t count, Fn&& fn) {
    const size_t bytes = type_bits(x.type) / 8;
    p.each_reduced(start, [&](int64_t at) {
      double block[kConvertBlock];
      for (int64_t done = 0, n, all = p.inner_kept ? count : p.inner; done < all; done += n) {
        n = std::min(kConvertBlock, all - done);
        convert_elements(x.type, static_cast<const char*>(x.data) + static_cast<size_t>(at + done) * bytes,
                         DataType::float64, block, 0, n);
        for (int64_t i = 0; i < n; ++i) fn(p.inner_kept ? done + i : 0, block[i]);
      }
    });
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(reduce_log_sum_exp) { r.add(reduction<ReduceLogSumExp>("ReduceLogSumExp")); }
