#include "kernels/norm.h"

#include <cmath>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct Same {
  HWY_INLINE V operator()(V x) const { return x; }
};
struct Square {
  HWY_INLINE V operator()(V x) const { return hn::Mul(x, x); }
};
struct SquareFrom {
  V mean;
  HWY_INLINE V operator()(V x) const {
    const V c = hn::Sub(x, mean);
    return hn::Mul(c, c);
  }
};

/// Sum of f(x[i]), in four partial sums so that additions overlap.
template <class F>
HWY_INLINE float sum_of(const float* x, int64_t n, F f) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = hn::Add(s0, f(hn::LoadU(d, x + i)));
    s1 = hn::Add(s1, f(hn::LoadU(d, x + i + lanes)));
    s2 = hn::Add(s2, f(hn::LoadU(d, x + i + 2 * lanes)));
    s3 = hn::Add(s3, f(hn::LoadU(d, x + i + 3 * lanes)));
  }
  for_vectors(d, n - i,
              [&](int64_t k, auto part) HWY_ATTR { s0 = hn::Add(s0, keep(f(load(d, x + i + k, part)), d, part)); });
  return hn::ReduceSum(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)));
}

struct Statistics {
  float mean, inv_std;
};

HWY_INLINE Statistics statistics(const float* x, int64_t n, float epsilon, bool rms) {
  const float inv_n = 1.0f / static_cast<float>(n);
  float mean = 0, variance;
  if (rms) {
    variance = sum_of(x, n, Square()) * inv_n;
  } else {
    mean = sum_of(x, n, Same()) * inv_n;
    variance = sum_of(x, n, SquareFrom{hn::Set(D(), mean)}) * inv_n;
  }
  return {mean, 1.0f / std::sqrt(variance + epsilon)};
}

HWY_INLINE void add_row(const float* x, const float* residual, const float* bias, float* sum, int64_t n) {
  const D d;
  for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR {
    V v = load(d, x + i, part);
    if (residual) v = hn::Add(v, load(d, residual + i, part));
    if (bias) v = hn::Add(v, load(d, bias + i, part));
    store(v, d, sum + i, part);
  });
}

void layer_norm_rows(const LayerNorm& p, const float* x, float* y, int64_t begin, int64_t end) {
  const D d;
  const int64_t n = p.size;
  for (int64_t row = begin; row < end; ++row) {
    const float* in = x + row * n;
    float* out = y + row * n;
    if (p.residual || p.residual_bias) {
      float* sum = p.sum_out ? p.sum_out + row * n : out;
      const int64_t residual_row = p.residual_rows ? row % p.residual_rows : row;
      add_row(in, p.residual ? p.residual + residual_row * n : nullptr, p.residual_bias, sum, n);
      in = sum;
    }
    const Statistics s = statistics(in, n, p.epsilon, p.rms);
    if (p.mean_out) p.mean_out[row] = s.mean;
    if (p.inv_std_out) p.inv_std_out[row] = s.inv_std;
    const V mean = hn::Set(d, s.mean), inv = hn::Set(d, s.inv_std);
    for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR {
      V v = hn::Mul(hn::Sub(load(d, in + i, part), mean), inv);
      if (p.scale) v = hn::Mul(v, load(d, p.scale + i, part));
      if (p.bias) v = hn::Add(v, load(d, p.bias + i, part));
      store(v, d, out + i, part);
    });
  }
}

void group_norm_groups(const GroupNorm& p, const float* x, float* y, int64_t begin, int64_t end) {
  const D d;
  const int64_t channels = p.channels / p.groups, n = channels * p.spatial;
  for (int64_t group = begin; group < end; ++group) {
    const Statistics s = statistics(x + group * n, n, p.epsilon, false);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t channel = group % p.groups * channels + c;
      const V mean = hn::Set(d, s.mean), a = hn::Set(d, (p.scale ? p.scale[channel] : 1.0f) * s.inv_std);
      const V b = hn::Set(d, p.bias ? p.bias[channel] : 0.0f);
      const float* from = x + group * n + c * p.spatial;
      float* to = y + group * n + c * p.spatial;
      for_vectors(d, p.spatial, [&](int64_t i, auto part) HWY_ATTR {
        store(hn::MulAdd(hn::Sub(load(d, from + i, part), mean), a, b), d, to + i, part);
      });
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {

HWY_EXPORT(layer_norm_rows);
HWY_EXPORT(group_norm_groups);

void layer_norm(const LayerNorm& n, const float* x, float* y, ThreadPool& pool) {
  if (n.size == 0) return;
  const auto fn = HWY_DYNAMIC_POINTER(layer_norm_rows);
  pool.parallel_for(n.rows, 0.4 * static_cast<double>(n.size),
                    [&](int64_t begin, int64_t end) { fn(n, x, y, begin, end); });
}

void group_norm(const GroupNorm& n, const float* x, float* y, ThreadPool& pool) {
  const int64_t per_group = n.channels / n.groups * n.spatial;
  if (per_group == 0) return;
  const auto fn = HWY_DYNAMIC_POINTER(group_norm_groups);
  pool.parallel_for(n.batch * n.groups, 0.4 * static_cast<double>(per_group),
                    [&](int64_t begin, int64_t end) { fn(n, x, y, begin, end); });
}

}  // namespace epona
#endif  // HWY_ONCE
