// The n-bit matrix product against sums in double of the dequantised weights, on every tier of this CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpp/kernel_test_util.h"
#include "kernels/gemm_nbits.h"
#include "kernels/isa.h"

namespace epona {
namespace {

int unpack(const uint8_t* p, int64_t i, int bits) { return p[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1); }

void check(Random& random, int64_t m, int64_t n, int64_t k, int bits, int64_t block) {
  const int threads = static_cast<int>(random.pick({1, 2, 3}));
  ThreadPool pool({.threads = threads});
  const int64_t blocks = (k + block - 1) / block, zero_row = (blocks * bits + 7) / 8, row_bytes = block * bits / 8;
  const auto quants = random.bytes(n * blocks * row_bytes), zeros = random.bytes(n * zero_row);
  auto scales = random.floats(n * blocks), float_zeros = random.floats(n * blocks);
  for (float& z : float_zeros) z += static_cast<float>(1 << (bits - 1));
  NBitsWeights w{n, k, bits, block, quants.data(), scales.data(), nullptr, nullptr};
  const int64_t zero_kind = random.below(3);
  if (zero_kind == 1) w.zeros = zeros.data();
  if (zero_kind == 2) w.float_zeros = float_zeros.data();
  const bool rounded = random.flip() && nbits_int8_supported(w);

  const auto a = random.floats(m * (k + 3)), bias = random.floats(n), residual = random.floats(m * n);
  std::vector<float> out(static_cast<size_t>(m * (n + 1)), 7.0f);
  NBitsGemm g;
  g.m = m, g.n = n, g.k = k, g.bits = bits, g.block = block, g.mode = rounded ? NBitsMode::int8 : NBitsMode::f32;
  g.a = a.data(), g.lda = k + 3, g.c = out.data(), g.ldc = n + 1, g.bias = bias.data();
  if (random.flip()) g.activation = Activation::relu();
  if (random.flip()) g.residual = residual.data(), g.residual_ld = n;
  Aligned<char> packed(packed_nbits_bytes(w, g.mode)), workspace(gemm_nbits_workspace(g, threads));
  pack_nbits(w, g.mode, packed.data(), &pool);
  g.b = packed.data();
  gemm_nbits(g, workspace.data(), pool);

  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = bias[j], size = 1;
      for (int64_t l = 0; l < k; ++l) {
        const int64_t b = l / block, begin = b * block, end = std::min(begin + block, k);
        double x = a[i * (k + 3) + l];
        if (rounded) {
          float top = 0;
          for (int64_t q = begin; q < end; ++q) top = std::max(top, std::fabs(a[i * (k + 3) + q]));
          x = top > 0 ? std::nearbyint(static_cast<float>(x) * (127 / top)) * (top / 127) : 0;
        }
        const double zero = zero_kind == 1   ? unpack(zeros.data() + j * zero_row, b, bits)
                            : zero_kind == 2 ? float_zeros[j * blocks + b]
                                             : 1 << (bits - 1);
        const double q = unpack(quants.data() + (j * blocks + b) * row_bytes, l - begin, bits);
        const double product = x * (q - zero) * scales[j * blocks + b];
        sum += product, size += std::fabs(product);
      }
      if (g.activation) sum = sum < 0 ? 0 : sum;
      if (g.residual) sum += residual[i * n + j];
      ASSERT_NEAR(out[i * (n + 1) + j], sum, 4e-6 * size)
          << isa_name() << " m " << m << " n " << n << " k " << k << " bits " << bits << " block " << block
          << " rounded " << rounded << " zeros " << zero_kind << " threads " << threads;
    }
    ASSERT_EQ(out[i * (n + 1) + n], 7.0f) << "wrote beyond a row";
  }
}

TEST(GemmNBits, MatchesDouble) {
  for_each_isa([] {
    Random random(1);
    for (int i = 0; i < 1500; ++i) {
      const int64_t m = random.pick({1, 1, 2, 3, 4, 5, 9, 13}), n = random.pick({1, 3, 8, 15, 16, 17, 33, 64, 65, 130});
      const int64_t k = random.pick({1, 5, 17, 32, 64, 96, 300, 301});
      check(random, m, n, k, static_cast<int>(random.pick({2, 4, 4, 8})), random.pick({16, 32, 64, 128, 256}));
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// The largest products of 4 bits: sums of a whole block in 16 bits must not saturate.
TEST(GemmNBits, ExtremesDoNotSaturate) {
  for_each_isa([] {
    ThreadPool pool({.threads = 1});
    const int64_t n = 16, k = 512, block = 256;
    const std::vector<uint8_t> quants(n * k / 2, 0xff), zeros(n, 0);
    const std::vector<float> scales(n * 2, 1.0f), a(k, 1.0f);
    std::vector<float> c(n);
    const NBitsWeights w{n, k, 4, block, quants.data(), scales.data(), zeros.data(), nullptr};
    NBitsGemm g;
    g.m = 1, g.n = n, g.k = k, g.block = block, g.mode = NBitsMode::int8, g.a = a.data(), g.lda = k, g.c = c.data(),
    g.ldc = n;
    Aligned<char> packed(packed_nbits_bytes(w, g.mode)), workspace(gemm_nbits_workspace(g, 1));
    pack_nbits(w, g.mode, packed.data());
    g.b = packed.data();
    gemm_nbits(g, workspace.data(), pool);
    for (const float x : c) EXPECT_NEAR(x, 15.0f * k, 1e-2f);
  });
}

TEST(GemmNBits, NanGoesThrough) {
  for (const NBitsMode mode : {NBitsMode::f32, NBitsMode::int8}) {
    ThreadPool pool({.threads = 1});
    const int64_t n = 16, k = 64;
    const std::vector<uint8_t> quants(n * k / 2, 0x9a);
    const std::vector<float> scales(n * 2, 1.0f);
    std::vector<float> a(k, 1.0f), c(n);
    a[5] = std::numeric_limits<float>::quiet_NaN();
    const NBitsWeights w{n, k, 4, 32, quants.data(), scales.data(), nullptr, nullptr};
    NBitsGemm g;
    g.m = 1, g.n = n, g.k = k, g.mode = mode, g.a = a.data(), g.lda = k, g.c = c.data(), g.ldc = n;
    Aligned<char> packed(packed_nbits_bytes(w, mode)), workspace(gemm_nbits_workspace(g, 1));
    pack_nbits(w, mode, packed.data());
    g.b = packed.data();
    gemm_nbits(g, workspace.data(), pool);
    for (const float x : c) EXPECT_TRUE(std::isnan(x));
  }
}

}  // namespace
}  // namespace epona
