#include "kernels/reduce.h"

#include <algorithm>
#include <limits>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"
#include "kernels/math-inl.h"
#include "kernels/vec-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr float kInf = std::numeric_limits<float>::infinity();
// Partial sums of this many terms are added up among themselves: the rounding error of a long sum stays small.
constexpr int64_t kChunk = 512;

/// Neutral element, what is done to an element, and how two partial results join. `shift` is log_sum_exp's maximum.
struct Add {
  static constexpr float kNeutral = 0;
  HWY_INLINE V map(V x, V) const { return x; }
  HWY_INLINE V join(V a, V b) const { return hn::Add(a, b); }
  float join(float a, float b) const { return a + b; }
};
struct AddAbs : Add {
  HWY_INLINE V map(V x, V) const { return hn::Abs(x); }
};
struct AddSquare : Add {
  HWY_INLINE V map(V x, V) const { return hn::Mul(x, x); }
};
struct AddExp : Add {
  HWY_INLINE V map(V x, V shift) const { return exp_nonpos(D(), hn::Sub(x, shift)); }
};
struct Multiply {
  static constexpr float kNeutral = 1;
  HWY_INLINE V map(V x, V) const { return x; }
  HWY_INLINE V join(V a, V b) const { return hn::Mul(a, b); }
  float join(float a, float b) const { return a * b; }
};
/// x86 max and min return their second operand when either is NaN.
struct Greatest {
  static constexpr float kNeutral = -kInf;
  HWY_INLINE V map(V x, V) const { return x; }
  HWY_INLINE V join(V a, V b) const { return hn::IfThenElse(hn::Eq(b, b), hn::Max(b, a), b); }
  float join(float a, float b) const { return b > a || b != b ? b : a; }
};
struct Least {
  static constexpr float kNeutral = kInf;
  HWY_INLINE V map(V x, V) const { return x; }
  HWY_INLINE V join(V a, V b) const { return hn::IfThenElse(hn::Eq(b, b), hn::Min(b, a), b); }
  float join(float a, float b) const { return b < a || b != b ? b : a; }
};

template <class Op>
HWY_INLINE float reduce_row(const float* x, int64_t n, V shift) {
  const Op op;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V neutral = hn::Set(d, Op::kNeutral);
  V a0 = neutral, a1 = neutral, a2 = neutral, a3 = neutral;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a0 = op.join(a0, op.map(hn::LoadU(d, x + i), shift));
    a1 = op.join(a1, op.map(hn::LoadU(d, x + i + lanes), shift));
    a2 = op.join(a2, op.map(hn::LoadU(d, x + i + 2 * lanes), shift));
    a3 = op.join(a3, op.map(hn::LoadU(d, x + i + 3 * lanes), shift));
  }
  for (; i + lanes <= n; i += lanes) a0 = op.join(a0, op.map(hn::LoadU(d, x + i), shift));
  if (i < n) {
    const auto rest = static_cast<size_t>(n - i);
    const V last = op.map(hn::LoadN(d, x + i, rest), shift);
    a1 = op.join(a1, hn::IfThenElse(hn::FirstN(d, rest), last, neutral));
  }
  HWY_ALIGN float lane[hn::MaxLanes(d)];
  hn::Store(op.join(op.join(a0, a1), op.join(a2, a3)), d, lane);
  float result = lane[0];
  for (int64_t k = 1; k < lanes; ++k) result = op.join(result, lane[k]);
  return result;
}

/// Reduces `rows` rows, `stride` apart, into acc[0..n): n is at most 4 vectors.
template <class Op>
HWY_INLINE void reduce_columns(const float* x, int64_t rows, int64_t stride, int64_t n, float* acc,
                               const float* shift) {
  const Op op;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V neutral = hn::Set(d, Op::kNeutral);
  if (n == 4 * lanes) {
    const V s0 = hn::LoadU(d, shift), s1 = hn::LoadU(d, shift + lanes), s2 = hn::LoadU(d, shift + 2 * lanes),
            s3 = hn::LoadU(d, shift + 3 * lanes);
    V a0 = neutral, a1 = neutral, a2 = neutral, a3 = neutral;
    for (int64_t row = 0; row < rows; ++row, x += stride) {
      a0 = op.join(a0, op.map(hn::LoadU(d, x), s0));
      a1 = op.join(a1, op.map(hn::LoadU(d, x + lanes), s1));
      a2 = op.join(a2, op.map(hn::LoadU(d, x + 2 * lanes), s2));
      a3 = op.join(a3, op.map(hn::LoadU(d, x + 3 * lanes), s3));
    }
    hn::StoreU(op.join(hn::LoadU(d, acc), a0), d, acc);
    hn::StoreU(op.join(hn::LoadU(d, acc + lanes), a1), d, acc + lanes);
    hn::StoreU(op.join(hn::LoadU(d, acc + 2 * lanes), a2), d, acc + 2 * lanes);
    hn::StoreU(op.join(hn::LoadU(d, acc + 3 * lanes), a3), d, acc + 3 * lanes);
    return;
  }
  for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR {
    const V s = load(d, shift + i, part);
    V a = neutral;
    for (int64_t row = 0; row < rows; ++row) a = op.join(a, op.map(load(d, x + row * stride + i, part), s));
    store(op.join(load(d, acc + i, part), a), d, acc + i, part);
  });
}

/// The dims of a plan but the last, split into those that choose an output and those that are reduced.
struct Walk {
  int kept = 0, reduced = 0;
  int64_t kept_dims[ReduceDims::kMaxDims], kept_strides[ReduceDims::kMaxDims];
  int64_t dims[ReduceDims::kMaxDims], strides[ReduceDims::kMaxDims];

  explicit Walk(const ReduceDims& plan) {
    int64_t stride = 1;
    for (int d = plan.rank - 1; d >= 0; --d) {
      if (d + 1 < plan.rank) {
        if (plan.reduced[d]) {
          dims[reduced] = plan.dims[d];
          strides[reduced++] = stride;
        } else {
          kept_dims[kept] = plan.dims[d];
          kept_strides[kept++] = stride;
        }
      }
      stride *= plan.dims[d];
    }
  }
  int64_t base(int64_t output) const {
    int64_t offset = 0;
    for (int d = 0; d < kept; ++d) {
      offset += output % kept_dims[d] * kept_strides[d];
      output /= kept_dims[d];
    }
    return offset;
  }
  /// Calls fn(offset) for every combination of the reduced dims from `first` on.
  template <class F>
  HWY_INLINE void each(int first, F fn) const {
    int64_t index[ReduceDims::kMaxDims] = {}, offset = 0;
    while (true) {
      fn(offset);
      int d = first;
      for (; d < reduced; ++d) {
        offset += strides[d];
        if (++index[d] < dims[d]) break;
        offset -= strides[d] * dims[d];
        index[d] = 0;
      }
      if (d >= reduced) return;
    }
  }
};

/// Outputs [begin, end) where the last dim is reduced.
template <class Op>
void rows(const ReduceDims& plan, const float* x, float* y, int64_t begin, int64_t end) {
  const Walk walk(plan);
  const Op op;
  const int64_t length = plan.dims[plan.rank - 1];
  for (int64_t o = begin; o < end; ++o) {
    const float* from = x + walk.base(o);
    const V shift = hn::Set(D(), y[o]);
    float result = Op::kNeutral;
    walk.each(0,
              [&](int64_t offset) HWY_ATTR { result = op.join(result, reduce_row<Op>(from + offset, length, shift)); });
    y[o] = result;
  }
}

int64_t column_block() { return 4 * static_cast<int64_t>(hn::Lanes(D())); }

/// Blocks [begin, end) of outputs where the last dim is kept.
template <class Op>
void columns(const ReduceDims& plan, const float* x, float* y, int64_t begin, int64_t end) {
  const Walk walk(plan);
  const int64_t width = plan.dims[plan.rank - 1], block = column_block(), blocks = (width + block - 1) / block;
  HWY_ALIGN float acc[4 * hn::MaxLanes(D())];
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t row = unit / blocks, at = unit % blocks * block, n = HWY_MIN(block, width - at);
    const float* from = x + walk.base(row) + at;
    float* to = y + row * width + at;
    std::fill_n(acc, n, Op::kNeutral);
    walk.each(1, [&](int64_t offset) HWY_ATTR {
      for (int64_t done = 0; done < walk.dims[0]; done += kChunk)
        reduce_columns<Op>(from + offset + done * walk.strides[0], HWY_MIN(kChunk, walk.dims[0] - done),
                           walk.strides[0], n, acc, to);
    });
    std::copy_n(acc, n, to);
  }
}

/// One pass over a part of the outputs: of rows, or of blocks of columns.
template <class Op>
void pass(const ReduceDims& plan, const float* x, float* y, int64_t begin, int64_t end) {
  if (plan.reduced[plan.rank - 1])
    rows<Op>(plan, x, y, begin, end);
  else
    columns<Op>(plan, x, y, begin, end);
}

/// What remains to be done to n results in y. For log_sum_exp, `maxima` are the maxima: y holds sums of exponentials.
void finish(ReduceOp op, float* y, const float* maxima, int64_t n, float count) {
  const D d;
  const auto map = [&](auto f) HWY_ATTR {
    for_vectors(d, n, [&](int64_t i, auto part) HWY_ATTR { store(f(load(d, y + i, part), i, part), d, y + i, part); });
  };
  switch (op) {
    case ReduceOp::mean: {
      const V divisor = hn::Set(d, count);
      return map([&](V v, int64_t, auto) HWY_ATTR { return hn::Div(v, divisor); });
    }
    case ReduceOp::l2:
      return map([&](V v, int64_t, auto) HWY_ATTR { return hn::Sqrt(v); });
    case ReduceOp::log_sum:
      return map([&](V v, int64_t, auto) HWY_ATTR { return log(d, v); });
    case ReduceOp::log_sum_exp:
      return map([&](V v, int64_t i, auto part) HWY_ATTR {
        const V m = load(d, maxima + i, part);
        return hn::IfThenElse(hn::IsFinite(m), hn::Add(m, log(d, v)), m);
      });
    default:
      return;
  }
}

void reduce_part(ReduceOp op, const ReduceDims& plan, const float* x, float* y, int64_t begin, int64_t end) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::mean:
    case ReduceOp::log_sum:
      return pass<Add>(plan, x, y, begin, end);
    case ReduceOp::max:
      return pass<Greatest>(plan, x, y, begin, end);
    case ReduceOp::min:
      return pass<Least>(plan, x, y, begin, end);
    case ReduceOp::prod:
      return pass<Multiply>(plan, x, y, begin, end);
    case ReduceOp::sum_square:
    case ReduceOp::l2:
      return pass<AddSquare>(plan, x, y, begin, end);
    case ReduceOp::l1:
      return pass<AddAbs>(plan, x, y, begin, end);
    case ReduceOp::log_sum_exp:
      return pass<AddExp>(plan, x, y, begin, end);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {

HWY_EXPORT(reduce_part);
HWY_EXPORT(finish);
HWY_EXPORT(column_block);

bool plan_reduce(std::span<const int64_t> dims, std::span<const bool> reduce_axis, ReduceDims& plan) {
  plan.rank = 0;
  plan.outputs = plan.count = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    (reduce_axis[d] ? plan.count : plan.outputs) *= dims[d];
    if (dims[d] == 1) continue;
    if (plan.rank > 0 && plan.reduced[plan.rank - 1] == reduce_axis[d]) {
      plan.dims[plan.rank - 1] *= dims[d];
      continue;
    }
    if (plan.rank == ReduceDims::kMaxDims) return false;
    plan.dims[plan.rank] = dims[d];
    plan.reduced[plan.rank++] = reduce_axis[d];
  }
  if (plan.rank < 2 && (plan.rank == 0 || !plan.reduced[0])) {  // nothing is reduced: sets of one element
    if (plan.rank == 0) plan.dims[plan.rank] = 1, plan.reduced[plan.rank++] = false;
    plan.dims[plan.rank] = 1;
    plan.reduced[plan.rank++] = true;
  }
  return true;
}

void reduce(ReduceOp op, const ReduceDims& plan, const float* x, float* y, ThreadPool& pool) {
  if (plan.outputs == 0) return;
  if (plan.count == 0) {
    constexpr float kInf = std::numeric_limits<float>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float value = op == ReduceOp::mean                                                            ? nan
                        : op == ReduceOp::prod                                                          ? 1
                        : op == ReduceOp::min                                                           ? kInf
                        : op == ReduceOp::max || op == ReduceOp::log_sum || op == ReduceOp::log_sum_exp ? -kInf
                                                                                                        : 0;
    std::fill_n(y, plan.outputs, value);
    return;
  }
  const auto part = HWY_DYNAMIC_POINTER(reduce_part);
  const auto last = HWY_DYNAMIC_POINTER(finish);
  const int64_t block = HWY_DYNAMIC_DISPATCH(column_block)();
  const bool by_rows = plan.reduced[plan.rank - 1];
  const int64_t width = by_rows ? 1 : plan.dims[plan.rank - 1], blocks = by_rows ? 1 : (width + block - 1) / block;
  const int64_t units = plan.outputs / width * blocks;
  const double ns = (op == ReduceOp::log_sum_exp ? 1.0 : 0.15) * static_cast<double>(plan.count) *
                    static_cast<double>(std::min(width, block));
  pool.parallel_for(units, ns, [&](int64_t begin, int64_t end) {
    const auto output_of = [&](int64_t unit) { return unit / blocks * width + std::min(unit % blocks * block, width); };
    if (op != ReduceOp::log_sum_exp) {
      part(op, plan, x, y, begin, end);
      last(op, y + output_of(begin), nullptr, output_of(end) - output_of(begin), static_cast<float>(plan.count));
      return;
    }
    constexpr int64_t kMaxOutputs = 64;
    for (int64_t unit = begin; unit < end; ++unit) {
      float maxima[kMaxOutputs];
      float* to = y + output_of(unit);
      const int64_t n = output_of(unit + 1) - output_of(unit);
      part(ReduceOp::max, plan, x, y, unit, unit + 1);
      std::copy_n(to, n, maxima);
      part(op, plan, x, y, unit, unit + 1);
      last(op, to, maxima, n, 0);
    }
  });
}

}  // namespace epona
#endif  // HWY_ONCE
