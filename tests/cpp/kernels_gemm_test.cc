// The float matrix product against sums in double, on every instruction-set tier of this CPU.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cpp/kernel_test_util.h"
#include "kernels/gemm.h"
#include "kernels/isa.h"

namespace epona {
namespace {

enum class BiasKind { none, column, row, full, scalar };

struct Case {
  int64_t m, n, k;
  bool trans_a, trans_b, packed, shared_b;
  int64_t batch;
  BiasKind bias;
  int residual;  // 0 none, 1 before the activation, 2 after it
  Activation activation;
  float alpha;
  int threads;
};

double activate_exactly(const Activation& act, double x) {
  switch (act.kind) {
    case ActivationKind::relu:
      return x < 0 ? 0 : x;
    case ActivationKind::clip:
      return std::fmin(std::fmax(x, act.a), act.b);
    case ActivationKind::gelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    default:
      return x;
  }
}

// Leading dimensions are wider than the rows, and what lies between must stay as it was.
void check(const Case& c, Random& random) {
  ThreadPool pool({.threads = c.threads});
  const int64_t a_rows = c.trans_a ? c.k : c.m, b_rows = c.trans_b ? c.n : c.k;
  Gemm g;
  g.m = c.m, g.n = c.n, g.k = c.k, g.batch = c.batch;
  g.lda = (c.trans_a ? c.m : c.k) + 3, g.ldb = (c.trans_b ? c.k : c.n) + 2, g.ldc = c.n + 1;
  g.trans_a = c.trans_a, g.trans_b = c.trans_b;
  const bool one_b = c.packed || c.shared_b;
  g.a_stride = a_rows * g.lda, g.b_stride = one_b ? 0 : b_rows * g.ldb, g.c_stride = c.m * g.ldc;
  const auto a = random.floats(c.batch * g.a_stride), b = random.floats((one_b ? 1 : c.batch) * b_rows * g.ldb);
  const auto bias = random.floats(c.batch * c.m * c.n + c.m + c.n + 1),
             residual = random.floats(c.batch * c.m * c.n + 1);
  std::vector<float> out(static_cast<size_t>(c.batch * g.c_stride), 7.0f);
  g.a = a.data(), g.b = b.data(), g.c = out.data();
  GemmEpilogue& e = g.epilogue;
  e.alpha = c.alpha, e.activation = c.activation;
  if (c.bias != BiasKind::none) {
    e.bias = bias.data();
    e.bias_scale = c.alpha == 1 ? 1.0f : 0.5f;
    e.bias_row_stride = c.bias == BiasKind::full ? c.n : c.bias == BiasKind::row ? 1 : 0;
    e.bias_col_stride = c.bias == BiasKind::full || c.bias == BiasKind::column ? 1 : 0;
    g.bias_stride = c.bias == BiasKind::full ? c.m * c.n : 0;
  }
  if (c.residual) {
    e.residual = residual.data(), e.residual_ld = c.n, g.residual_stride = c.m * c.n;
    e.residual_last = c.residual == 2;
  }
  Aligned<float> packed(packed_b_floats(c.k, c.n));
  if (c.packed) {
    pack_b(c.k, c.n, b.data(), g.ldb, c.trans_b, packed.data(), &pool);
    g.b = packed.data(), g.b_packed = true, g.ldb = 0, g.trans_b = false;
  }
  Aligned<char> workspace(gemm_workspace(g, c.threads));
  gemm(g, workspace.data(), pool);

  const int64_t ldb = (c.trans_b ? c.k : c.n) + 2;
  for (int64_t q = 0; q < c.batch; ++q) {
    for (int64_t i = 0; i < c.m; ++i) {
      const float* row = out.data() + q * g.c_stride + i * g.ldc;
      for (int64_t j = 0; j < c.n; ++j) {
        double sum = 0, size = 1;
        for (int64_t l = 0; l < c.k; ++l) {
          const double x = a[q * g.a_stride + (c.trans_a ? l * g.lda + i : i * g.lda + l)];
          const double w = b[(one_b ? 0 : q * b_rows * ldb) + (c.trans_b ? j * ldb + l : l * ldb + j)];
          sum += x * w, size += std::fabs(x * w);
        }
        sum *= c.alpha;
        if (e.bias) sum += e.bias_scale * bias[q * g.bias_stride + i * e.bias_row_stride + j * e.bias_col_stride];
        const double rest = c.residual ? residual[(q * c.m + i) * c.n + j] : 0;
        const double want =
            c.residual == 2 ? activate_exactly(c.activation, sum) + rest : activate_exactly(c.activation, sum + rest);
        ASSERT_NEAR(row[j], want, 2e-6 * size + 1e-6)
            << isa_name() << " m " << c.m << " n " << c.n << " k " << c.k << " transposed " << c.trans_a << c.trans_b
            << " packed " << c.packed << " batch " << c.batch << " bias " << static_cast<int>(c.bias) << " residual "
            << c.residual << " activation " << static_cast<int>(c.activation.kind) << " threads " << c.threads;
      }
      ASSERT_EQ(row[c.n], 7.0f) << "wrote beyond a row";
    }
  }
}

TEST(Gemm, MatchesDouble) {
  for_each_isa([] {
    Random random(1);
    const Activation activations[] = {{}, Activation::relu(), Activation::clip(-0.5f, 0.7f), Activation::gelu()};
    for (int i = 0; i < 1500; ++i) {
      Case c;
      c.m = random.pick({1, 1, 2, 3, 4, 5, 6, 7, 12, 13, 31, 50});
      c.n = random.pick({1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 130});
      c.k = random.pick({0, 1, 2, 5, 17, 64, 300});
      c.trans_a = random.flip(), c.trans_b = random.flip(), c.packed = random.flip(), c.shared_b = random.flip();
      c.batch = random.pick({1, 1, 1, 2, 5});
      c.bias = static_cast<BiasKind>(random.below(5));
      c.residual = static_cast<int>(random.below(3));
      c.activation = activations[random.below(4)];
      c.alpha = random.flip() ? 1.0f : 0.7f;
      c.threads = static_cast<int>(random.pick({1, 2, 3}));
      check(c, random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(Gemm, LongSums) {  // long enough to be cut along k
  for_each_isa([] {
    Random random(2);
    check({150, 65, 3000, false, false, true, false, 1, BiasKind::column, 1, Activation::relu(), 1.0f, 2}, random);
    check({70, 33, 9000, false, true, false, false, 1, BiasKind::none, 0, {}, 1.0f, 1}, random);
    check({1, 70, 100000, false, false, true, false, 1, BiasKind::none, 0, {}, 1.0f, 2}, random);
  });
}

TEST(Gemm, ResidualMayBeTheOutput) {
  for_each_isa([] {
    Random random(3);
    ThreadPool pool({.threads = 2});
    for (const int64_t k : {40, 4000}) {
      const int64_t m = 100, n = 50;
      const auto a = random.floats(m * k), b = random.floats(k * n), start = random.floats(m * n);
      auto c = start;
      Gemm g;
      g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.b = b.data(), g.ldb = n, g.c = c.data(), g.ldc = n;
      g.epilogue.residual = c.data(), g.epilogue.residual_ld = n;
      Aligned<char> workspace(gemm_workspace(g, 2));
      gemm(g, workspace.data(), pool);
      for (int64_t i = 0; i < m * n; i += 97) {
        double sum = start[i];
        for (int64_t l = 0; l < k; ++l) sum += static_cast<double>(a[i / n * k + l]) * b[l * n + i % n];
        ASSERT_NEAR(c[i], sum, 1e-6 * static_cast<double>(k));
      }
    }
  });
}

TEST(Gemm, NanAndInfinityGoThrough) {
  for_each_isa([] {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
    ThreadPool pool({.threads = 1});
    for (const int64_t m : {1, 2, 9}) {
      const int64_t n = 21, k = 4;
      std::vector<float> a(m * k, 1.0f), b(k * n, 1.0f), c(m * n);
      a[0] = kNan;
      if (m > 1) a[k] = kInf;
      Gemm g;
      g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.b = b.data(), g.ldb = n, g.c = c.data(), g.ldc = n;
      g.epilogue.activation = Activation::relu();
      Aligned<char> workspace(gemm_workspace(g, 1));
      gemm(g, workspace.data(), pool);
      for (int64_t j = 0; j < n; ++j) {
        EXPECT_TRUE(std::isnan(c[j]));
        if (m > 1) {
          EXPECT_EQ(c[n + j], kInf);
        }
        if (m > 2) {
          EXPECT_EQ(c[2 * n + j], 4.0f);
        }
      }
    }
  });
}

TEST(Gemm, BatchOffsetsBroadcast) {
  Random random(4);
  ThreadPool pool({.threads = 2});
  const int64_t m = 5, n = 20, k = 7;
  const auto a = random.floats(2 * m * k), b = random.floats(3 * k * n);
  std::vector<float> c(6 * m * n);
  const std::vector<int64_t> a_offsets = {0, 0, 0, m * k, m * k, m * k},
                             b_offsets = {0, k * n, 2 * k * n, 0, k * n, 2 * k * n};
  Gemm g;
  g.m = m, g.n = n, g.k = k, g.a = a.data(), g.lda = k, g.b = b.data(), g.ldb = n, g.c = c.data(), g.ldc = n;
  g.batch = 6, g.c_stride = m * n, g.a_offsets = a_offsets.data(), g.b_offsets = b_offsets.data();
  Aligned<char> workspace(gemm_workspace(g, 2));
  gemm(g, workspace.data(), pool);
  for (int64_t i = 0; i < 6 * m * n; ++i) {
    double sum = 0;
    const int64_t q = i / (m * n), row = i / n % m, column = i % n;
    for (int64_t l = 0; l < k; ++l) {
      sum += static_cast<double>(a[a_offsets[q] + row * k + l]) * b[b_offsets[q] + l * n + column];
    }
    ASSERT_NEAR(c[i], sum, 1e-5);
  }
}

}  // namespace
}  // namespace epona
