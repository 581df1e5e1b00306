#include "kernels/norm.h"
#include "kernels/reduce.h"
#include "kernels/softmax.h"
#include "vec_test_util.h"

namespace epona {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(SoftmaxKernel, matches_double) {
  const Softmax cases[] = {{3, 1, 1},  {5, 7, 1},  {4, 128, 1}, {2, 1000, 1},
                           {3, 17, 5}, {2, 9, 33}, {1, 4, 64},  {0, 3, 2}};
  for_each_isa([&] {
    for (Softmax s : cases) {
      const int64_t n = s.outer * s.length * s.inner;
      std::vector<float> x = random_floats(static_cast<size_t>(n), -20, 20);
      for (int64_t i = 0; i < n; i += 13) x[i] = -kInf;
      for (bool log : {false, true}) {
        s.log = log;
        std::vector<float> y = x;  // in place
        softmax(s, y.data(), y.data(), test_pool());
        for (int64_t o = 0; o < s.outer; ++o) {
          for (int64_t i = 0; i < s.inner; ++i) {
            const auto at = [&](int64_t k) { return (o * s.length + k) * s.inner + i; };
            double max = -kInf, sum = 0;
            for (int64_t k = 0; k < s.length; ++k) max = std::max(max, double(x[at(k)]));
            for (int64_t k = 0; k < s.length; ++k) sum += std::exp(x[at(k)] - max);
            for (int64_t k = 0; k < s.length; ++k) {
              const double exact = log ? x[at(k)] - max - std::log(sum) : std::exp(x[at(k)] - max) / sum;
              if (std::isnan(exact)) {
                EXPECT_TRUE(std::isnan(y[at(k)]));
              } else if (exact != y[at(k)]) {
                EXPECT_NEAR(y[at(k)], exact, 1e-6 * std::max(1.0, std::fabs(exact))) << s.length << "x" << s.inner;
              }
            }
          }
        }
      }
    }
    std::vector<float> bad = {1, kNan, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    softmax({1, 20, 1}, bad.data(), bad.data(), test_pool());
    for (float v : bad) EXPECT_TRUE(std::isnan(v));
  });
}

TEST(LayerNormKernel, matches_double) {
  for_each_isa([&] {
    for (int64_t size : {1, 3, 8, 31, 64, 768, 1001}) {
      const int64_t rows = 5;
      const size_t n = static_cast<size_t>(rows * size);
      const std::vector<float> x = random_floats(n, -2, 3, 1), r = random_floats(n, -1, 1, 2),
                               scale = random_floats(size, 0.5, 2, 3), bias = random_floats(size, -1, 1, 4),
                               skip = random_floats(size, -1, 1, 5);
      for (int mode = 0; mode < 8; ++mode) {
        std::vector<float> y(n), sum(n), mean(rows), inv(rows);
        LayerNorm p{.rows = rows, .size = size, .epsilon = 1e-3f, .rms = (mode & 1) != 0, .scale = scale.data()};
        if (mode & 2) p.bias = bias.data();
        if (mode & 4) p.residual = r.data(), p.residual_bias = skip.data(), p.sum_out = sum.data();
        p.mean_out = mean.data();
        p.inv_std_out = inv.data();
        layer_norm(p, x.data(), y.data(), test_pool());
        for (int64_t row = 0; row < rows; ++row) {
          std::vector<double> v(size);
          double m = 0, var = 0;
          for (int64_t i = 0; i < size; ++i) {
            v[i] = x[row * size + i] + (mode & 4 ? double(r[row * size + i]) + skip[i] : 0);
            if (mode & 4) {
              EXPECT_NEAR(sum[row * size + i], v[i], 1e-6);
            }
            m += v[i] / size;
          }
          if (p.rms) m = 0;
          for (int64_t i = 0; i < size; ++i) var += (v[i] - m) * (v[i] - m) / size;
          EXPECT_NEAR(mean[row], m, 1e-5);
          EXPECT_NEAR(inv[row] * std::sqrt(var + 1e-3), 1, 1e-5);
          for (int64_t i = 0; i < size; ++i) {
            const double exact = (v[i] - m) / std::sqrt(var + 1e-3) * scale[i] + (mode & 2 ? bias[i] : 0);
            EXPECT_NEAR(y[row * size + i], exact, 1e-5) << size << " mode " << mode;
          }
        }
      }
    }
  });
}

TEST(GroupNormKernel, matches_double) {
  for_each_isa([&] {
    for (int64_t groups : {1, 2, 6}) {
      for (int64_t spatial : {1, 7, 50}) {
        GroupNorm p{.batch = 2, .channels = 6, .spatial = spatial, .groups = groups};
        const int64_t n = 12 * spatial, each = 6 / groups * spatial;
        const std::vector<float> x = random_floats(n, -2, 3), scale = random_floats(6, 1, 2, 3),
                                 bias = random_floats(6, -1, 1, 4);
        p.scale = scale.data();
        p.bias = bias.data();
        std::vector<float> y = x;
        group_norm(p, y.data(), y.data(), test_pool());
        for (int64_t i = 0; i < n; ++i) {
          const int64_t first = i / each * each, channel = i / spatial % 6;
          double mean = 0, var = 0;
          for (int64_t k = first; k < first + each; ++k) mean += double(x[k]) / each;
          for (int64_t k = first; k < first + each; ++k) var += (x[k] - mean) * (x[k] - mean) / each;
          EXPECT_NEAR(y[i], (x[i] - mean) / std::sqrt(var + 1e-5) * scale[channel] + bias[channel], 2e-5);
        }
      }
    }
  });
}

double reduce_exact(ReduceOp op, const std::vector<double>& v) {
  double sum = 0, prod = 1, max = -kInf, min = kInf, squares = 0, abs = 0, exps = 0;
  bool nan = false;
  for (double x : v) {
    nan = nan || std::isnan(x);
    sum += x, prod *= x, squares += x * x, abs += std::fabs(x), exps += std::exp(x);
    max = std::max(max, x), min = std::min(min, x);
  }
  if (nan) return kNan;
  switch (op) {
    case ReduceOp::sum:
      return sum;
    case ReduceOp::mean:
      return sum / v.size();
    case ReduceOp::max:
      return max;
    case ReduceOp::min:
      return min;
    case ReduceOp::prod:
      return prod;
    case ReduceOp::sum_square:
      return squares;
    case ReduceOp::l1:
      return abs;
    case ReduceOp::l2:
      return std::sqrt(squares);
    case ReduceOp::log_sum:
      return std::log(sum);
    default:
      return std::log(exps);
  }
}

void check_reduce(const std::vector<int64_t>& dims, unsigned axes, const std::vector<float>& x) {
  const int rank = static_cast<int>(dims.size());
  bool reduced[8] = {};
  for (int d = 0; d < rank; ++d) reduced[d] = axes >> d & 1;
  ReduceDims plan;
  ASSERT_TRUE(plan_reduce(dims, std::span<const bool>(reduced, rank), plan));
  std::vector<std::vector<double>> sets(plan.outputs);
  for (size_t i = 0; i < x.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), o = 0, stride = 1;
    for (int d = rank - 1; d >= 0; --d) {
      if (!reduced[d]) o += rest % dims[d] * stride, stride *= dims[d];
      rest /= dims[d];
    }
    sets[o].push_back(x[i]);
  }
  for (int op = 0; op <= static_cast<int>(ReduceOp::log_sum_exp); ++op) {
    std::vector<float> y(plan.outputs + 1, 5.0f);
    reduce(static_cast<ReduceOp>(op), plan, x.data(), y.data(), test_pool());
    EXPECT_EQ(y[plan.outputs], 5.0f);
    for (int64_t o = 0; o < plan.outputs; ++o) {
      const double exact = reduce_exact(static_cast<ReduceOp>(op), sets[o]);
      if (std::isnan(exact)) {
        EXPECT_TRUE(std::isnan(y[o])) << "op " << op;
      } else if (exact != y[o]) {
        EXPECT_NEAR(y[o], exact, 2e-6 * std::max(1.0, std::fabs(exact)))
            << "op " << op << " axes " << axes << " at " << o;
      }
    }
  }
}

TEST(ReduceKernel, matches_double_over_any_axes) {
  const std::vector<std::vector<int64_t>> shapes = {{1},     {7},        {33},         {3, 70},
                                                    {70, 3}, {2, 3, 37}, {3, 1, 5, 4}, {2, 3, 2, 3, 5}};
  for_each_isa([&] {
    for (const auto& dims : shapes) {
      int64_t n = 1;
      for (int64_t d : dims) n *= d;
      std::vector<float> x = random_floats(static_cast<size_t>(n), 0.5f, 1.5f);
      for (unsigned axes = 0; axes < 1u << dims.size(); ++axes) check_reduce(dims, axes, x);
      for (size_t i = 0; i < x.size(); i += 11) x[i] = kNan;
      for (unsigned axes = 0; axes < 1u << dims.size(); ++axes) check_reduce(dims, axes, x);
    }
  });
}

TEST(ReduceKernel, edges) {
  for_each_isa([&] {
    // NaN wherever it stands (microsoft/onnxruntime#10514)
    for (size_t n : {3u, 8u, 33u, 100u}) {
      for (size_t at = 0; at < n; ++at) {
        std::vector<float> x(n, 1.0f);
        x[at] = kNan;
        const bool all[] = {true};
        const int64_t dims[] = {static_cast<int64_t>(n)};
        ReduceDims plan;
        ASSERT_TRUE(plan_reduce(dims, all, plan));
        for (ReduceOp op : {ReduceOp::max, ReduceOp::min, ReduceOp::sum, ReduceOp::log_sum_exp}) {
          float y = 0;
          reduce(op, plan, x.data(), &y, test_pool());
          EXPECT_TRUE(std::isnan(y)) << n << " " << at;
        }
      }
    }
    const int64_t empty[] = {2, 0};
    const bool last[] = {false, true};
    ReduceDims plan;
    ASSERT_TRUE(plan_reduce(empty, last, plan));
    float y[2];
    reduce(ReduceOp::max, plan, nullptr, y, test_pool());
    EXPECT_EQ(y[1], -kInf);
    reduce(ReduceOp::prod, plan, nullptr, y, test_pool());
    EXPECT_EQ(y[1], 1);
    // infinities in log_sum_exp
    const float x[] = {-kInf, -kInf, kInf, 1, 1000, 1000};
    const int64_t three[] = {3, 2};
    ASSERT_TRUE(plan_reduce(three, last, plan));
    float z[3];
    reduce(ReduceOp::log_sum_exp, plan, x, z, test_pool());
    EXPECT_EQ(z[0], -kInf);
    EXPECT_EQ(z[1], kInf);
    EXPECT_NEAR(z[2], 1000 + std::log(2.0), 1e-3);
    // a long sum stays accurate
    std::vector<float> ones(3000000, 0.1f);
    const int64_t long_dims[] = {1000000, 3};
    const bool first[] = {true, false};
    ASSERT_TRUE(plan_reduce(long_dims, first, plan));
    reduce(ReduceOp::sum, plan, ones.data(), z, test_pool());
    for (float v : z) EXPECT_NEAR(v, 1e6 * double(0.1f), 10);
  });
}

}  // namespace
}  // namespace epona
