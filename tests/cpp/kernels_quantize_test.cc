#include "kernels/quantize.h"
#include "vec_test_util.h"

namespace epona {
namespace {

int reference(float x, float scale, int zero, bool is_signed) {
  const double quotient = x / scale;  // divided as float, as the standard says
  if (std::isnan(quotient)) return zero;
  const double low = is_signed ? -128 : 0, code = std::nearbyint(quotient) + zero;
  return static_cast<int>(std::min(low + 255, std::max(low, code)));
}

int code_at(const std::vector<uint8_t>& codes, size_t i, bool is_signed) {
  return is_signed ? static_cast<int8_t>(codes[i]) : codes[i];
}

TEST(QuantizeKernel, both_ways_match_double) {
  for_each_isa([&] {
    for (size_t n : {0, 1, 7, 8, 31, 64, 200, 1003}) {
      Random random(static_cast<uint32_t>(n));
      std::vector<float> x = random_floats(n, -40, 40, 3), scales(n), one = {0.25f};
      const std::vector<float> special = special_floats();
      for (size_t i = 0; i < n; i += 3) x[i] = special[i / 3 % special.size()];
      for (size_t i = 1; i < n; i += 3) x[i] = std::round(x[i]) / 8;  // ties
      for (int mode = 0; mode < 8; ++mode) {
        const bool each = mode & 1, is_signed = mode & 2, zeros = mode & 4;
        std::vector<int32_t> zero(n + 1);
        for (int32_t& z : zero) z = static_cast<int32_t>(random.below(256)) - (is_signed ? 128 : 0);
        for (float& s : scales) s = std::ldexp(1.0f + std::fabs(random.value()), static_cast<int>(random.below(8)) - 6);
        const QuantScales s{each && n ? scales.data() : one.data(), zeros ? zero.data() : nullptr, each ? 1 : 0};
        std::vector<uint8_t> codes(n);
        std::vector<float> back(n);
        quantize_bytes(x.data(), s, is_signed, codes.data(), static_cast<int64_t>(n));
        dequantize_bytes(codes.data(), s, is_signed, back.data(), static_cast<int64_t>(n));
        for (size_t i = 0; i < n; ++i) {
          const float scale = each ? scales[i] : one[0];
          const int z = zeros ? zero[each ? i : 0] : 0, code = code_at(codes, i, is_signed);
          ASSERT_EQ(code, reference(x[i], scale, z, is_signed)) << x[i] << " / " << scale << " + " << z;
          ASSERT_EQ(back[i], static_cast<float>(code - z) * scale);
        }
      }
    }
  });
}

TEST(QuantizeKernel, range_takes_in_zero_and_leaves_out_nan) {
  for_each_isa([&] {
    for (size_t n : {0, 1, 5, 8, 33, 1000, 200000}) {
      std::vector<float> x = random_floats(n, -7, 9, 5);
      for (size_t i = 0; i < n; i += 4) x[i] = std::numeric_limits<float>::quiet_NaN();
      for (float shift : {0.0f, 20.0f, -20.0f}) {
        float low = 0, high = 0;
        std::vector<float> y = x;
        for (float& v : y) {
          v += shift;
          if (v < low) low = v;
          if (v > high) high = v;
        }
        const ValueRange alone = value_range(y.data(), static_cast<int64_t>(n)),
                         shared = value_range(y.data(), static_cast<int64_t>(n), test_pool());
        EXPECT_EQ(alone.low, low);
        EXPECT_EQ(alone.high, high);
        EXPECT_EQ(shared.low, low);
        EXPECT_EQ(shared.high, high);
      }
    }
  });
}

// The examples of the ONNX standard's DynamicQuantizeLinear.
TEST(QuantizeKernel, dynamic_scale_is_that_of_the_standard) {
  const auto check = [](std::vector<float> x, float scale, int zero) {
    const DynamicScale d = dynamic_scale(value_range(x.data(), static_cast<int64_t>(x.size())));
    EXPECT_FLOAT_EQ(d.scale, scale);
    EXPECT_EQ(d.zero, zero);
  };
  check({0, 2, -3, -2.5f, 1.34f, 0.5f}, 0.0196078438f, 153);
  check({-1.0f, -2.1f, -1.3f, -2.5f, -3.34f, -4.0f}, 0.0156862754f, 255);
  check({1, 2.1f, 1.3f, 2.5f, 3.34f, 4.0f, 1.5f, 2.6f, 3.9f, 4.0f, 3.0f, 2.345f}, 0.0156862754f, 0);
  check({0, 0, 0}, 1, 0);
}

}  // namespace
}  // namespace epona
