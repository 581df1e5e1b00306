// The int8 matrix product against exact sums, on every instruction-set tier of this CPU.
#include <gtest/gtest.h>

#include <cmath>

#include "cpp/kernel_test_util.h"
#include "kernels/gemm_int8.h"
#include "kernels/isa.h"

namespace epona {
namespace {

int value(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

void check(Random& random, int64_t m, int64_t n, int64_t k) {
  const int threads = static_cast<int>(random.pick({1, 2, 3}));
  ThreadPool pool({.threads = threads});
  Int8Gemm g;
  g.m = m, g.n = n, g.k = k;
  g.a_signed = random.flip(), g.b_signed = random.flip(), g.trans_b = random.flip();
  g.lda = k + 3, g.ldb = (g.trans_b ? k : n) + 5, g.ldc = n + 2;
  auto a = random.bytes(m * g.lda), b = random.bytes((g.trans_b ? n : k) * g.ldb);
  for (auto* side : {&a, &b}) {  // extremes, where 16 bits would saturate
    for (uint8_t& x : *side) x = random.below(3) ? x : random.flip() ? 255 : 128;
  }
  if (random.flip()) {  // as weights are: small with some large ones, so that pairs can be summed up in 16 bits
    for (uint8_t& x : b)
      if (random.below(300)) x = static_cast<uint8_t>(random.below(129) - 64 + (g.b_signed ? 0 : 128));
  }
  const auto a_zero = random.bytes(m), b_zero = random.bytes(n);
  g.a = a.data(), g.b = b.data(), g.b_packed = false;
  const int64_t a_kind = random.below(3), b_kind = random.below(3);  // none, one, one per row or column
  if (a_kind) g.a_zero = a_zero.data(), g.a_zero_stride = a_kind - 1;
  if (b_kind) g.b_zero = b_zero.data(), g.b_zero_stride = b_kind - 1;
  std::vector<float> scale(n);
  for (float& s : scale) s = static_cast<float>(1 + random.below(100)) * 1e-5f;
  std::vector<int32_t> bias_s32(n);
  for (int32_t& x : bias_s32) x = static_cast<int32_t>(random.below(20000) - 10000);
  const auto bias = random.floats(n), residual = random.floats(m * n);
  std::vector<float> out(static_cast<size_t>(m * g.ldc));
  g.c = out.data();
  g.output = static_cast<Int8Output>(random.below(4));
  if (random.flip()) g.bias_s32 = bias_s32.data();
  if (g.output != Int8Output::s32) g.scale = scale.data(), g.scale_stride = random.below(2), g.a_scale = 0.5f;
  const auto a_scales = random.floats(m);
  if (g.output == Int8Output::f32) {
    if (random.flip()) g.a_scales = a_scales.data();
    if (random.flip()) g.bias = bias.data();
    if (random.flip()) g.residual = residual.data(), g.residual_ld = n;
    if (random.flip()) g.activation = Activation::relu();
  }
  if (g.output == Int8Output::u8) g.c_zero = 100;
  if (g.output == Int8Output::s8) g.c_zero = -20, g.low = -128, g.high = 127;

  Aligned<char> packed(packed_b_int8_bytes(k, n));
  if (random.flip()) {
    pack_b_int8(k, n, b.data(), g.ldb, g.trans_b, g.b_signed, packed.data(), &pool);
    g.b = packed.data(), g.b_packed = true;
  }
  Aligned<char> workspace(gemm_int8_workspace(m, n, k, g.b_packed));
  gemm_int8(g, workspace.data(), pool);

  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const int za = a_kind ? value(a_zero[a_kind == 2 ? i : 0], g.a_signed) : 0;
      const int zb = b_kind ? value(b_zero[b_kind == 2 ? j : 0], g.b_signed) : 0;
      int64_t sum = g.bias_s32 ? bias_s32[j] : 0;
      for (int64_t l = 0; l < k; ++l) {
        const uint8_t w = b[g.trans_b ? j * g.ldb + l : l * g.ldb + j];
        sum += static_cast<int64_t>(value(a[i * g.lda + l], g.a_signed) - za) * (value(w, g.b_signed) - zb);
      }
      const int32_t s = static_cast<int32_t>(sum);
      const int64_t at = i * g.ldc + j;
      const auto where = [&] {
        return ::testing::Message() << isa_name() << " m " << m << " n " << n << " k " << k << " signed " << g.a_signed
                                    << g.b_signed << " transposed " << g.trans_b << " packed " << g.b_packed
                                    << " zeros " << a_kind << b_kind << " output " << static_cast<int>(g.output)
                                    << " at " << i << ", " << j;
      };
      if (g.output == Int8Output::s32) {
        ASSERT_EQ(static_cast<const int32_t*>(g.c)[at], s) << where();
        continue;
      }
      const float y = static_cast<float>(s) * ((g.a_scales ? a_scales[i] : g.a_scale) * scale[g.scale_stride * j]);
      if (g.output == Int8Output::f32) {
        double want = y + (g.bias ? bias[j] : 0.0);
        if (g.activation) want = want < 0 ? 0 : want;
        if (g.residual) want += residual[i * n + j];
        ASSERT_NEAR(out[at], want, 1e-6 * (1 + std::fabs(y))) << where();
      } else {
        const double q = std::nearbyint(static_cast<double>(y)) + g.c_zero;
        ASSERT_EQ(value(static_cast<const uint8_t*>(g.c)[at], g.output == Int8Output::s8),
                  std::fmin(std::fmax(q, g.low), g.high))
            << where();
      }
    }
  }
}

TEST(GemmInt8, IsExact) {
  for_each_isa([] {
    Random random(1);
    for (int i = 0; i < 2000; ++i) {
      const int64_t m = random.pick({1, 2, 3, 4, 5, 6, 7, 12, 13, 31, 50});
      const int64_t n = random.pick({1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 100, 130});
      check(random, m, n, random.pick({0, 1, 2, 3, 4, 5, 17, 64, 300, 301}));
      if (::testing::Test::HasFatalFailure()) return;
    }
    check(random, 31, 33, 9000);
    check(random, 1, 65, 70001);
  });
}

}  // namespace
}  // namespace epona
