// The convolutions of 8-bit images against exact sums, on every instruction-set tier of this CPU.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "cpp/kernel_test_util.h"
#include "kernels/conv_int8.h"

namespace epona {
namespace {

int value(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

struct Case {
  ConvParams p;
  ConvImage image;
};

template <class Conv>
void check(Random& random, const Case& c) {
  const ConvParams& p = c.p;
  const ConvImage& im = c.image;
  ThreadPool pool({.threads = static_cast<int>(random.pick({1, 2, 3}))});
  const Int8ConvTypes types{random.flip(), random.flip()};
  const int64_t in_group = p.in_channels / p.groups, out_group = p.out_channels / p.groups;
  const int64_t taps = p.kernel_h * p.kernel_w, out_pixels = im.batch * im.out_h * im.out_w;
  auto x = random.bytes(im.batch * im.in_h * im.in_w * p.in_channels),
       w = random.bytes(p.out_channels * in_group * taps);
  for (auto* side : {&x, &w})  // extremes, where 16 bits would saturate
    for (uint8_t& v : *side) v = random.below(3) ? v : random.flip() ? 255 : 128;
  const auto w_zero = random.bytes(p.out_channels);
  const int64_t zero_kind = random.below(3);  // none, one, one per channel
  std::vector<float> scale(p.out_channels), shift = random.floats(p.out_channels);
  for (float& s : scale) s = static_cast<float>(1 + random.below(100)) * 1e-5f;
  std::vector<int32_t> bias(p.out_channels);
  for (int32_t& b : bias) b = static_cast<int32_t>(random.below(20000) - 10000);

  const Conv conv(p, types);
  Aligned<char> packed(conv.packed_bytes()), workspace(conv.workspace_bytes(im, pool.threads()));
  conv.pack(w.data(), zero_kind ? w_zero.data() : nullptr, zero_kind - 1, packed.data());
  Int8ConvCall call;
  call.x = x.data();
  call.x_zero = value(random.bytes(1)[0], types.x_signed);
  call.x_scale = 0.5f;
  call.packed = packed.data();
  if (random.flip()) call.bias = bias.data();
  call.output = !std::is_same_v<Conv, ConvInt8> ? random.flip() ? Int8Output::u8 : Int8Output::s8
                                                : static_cast<Int8Output>(random.below(4));
  call.scale = scale.data();
  if (call.output == Int8Output::f32 && random.flip()) call.shift = shift.data();
  if (call.output == Int8Output::f32 && random.flip()) call.activation = Activation::relu();
  if (call.output == Int8Output::u8) call.y_zero = 100, call.low = random.flip() ? 100 : 0;
  if (call.output == Int8Output::s8) call.y_zero = -20, call.low = -128, call.high = random.flip() ? 60 : 127;
  constexpr float kMark = -12345.0f;
  std::vector<float> y(static_cast<size_t>(out_pixels * p.out_channels + 4), kMark);
  call.y = y.data();
  call.workspace = workspace.data();
  conv.run(im, call, pool);

  const int64_t element = call.output == Int8Output::s32 || call.output == Int8Output::f32 ? 4 : 1;
  const auto mark = std::bit_cast<uint32_t>(kMark);
  ASSERT_EQ(0, std::memcmp(reinterpret_cast<const char*>(y.data() + y.size() - 1), &mark, 4));
  for (int64_t i = 0; i < out_pixels; ++i) {
    const int64_t ox = i % im.out_w, oy = i / im.out_w % im.out_h, n = i / (im.out_w * im.out_h);
    for (int64_t o = 0; o < p.out_channels; ++o) {
      const int wz = zero_kind ? value(w_zero[zero_kind == 2 ? o : 0], types.w_signed) : 0;
      int64_t sum = call.bias ? bias[o] : 0;
      for (int64_t kh = 0; kh < p.kernel_h; ++kh)
        for (int64_t kw = 0; kw < p.kernel_w; ++kw) {
          const int64_t iy = oy * p.stride_h - im.pad_top + kh * p.dilation_h;
          const int64_t ix = ox * p.stride_w - im.pad_left + kw * p.dilation_w;
          if (iy < 0 || iy >= im.in_h || ix < 0 || ix >= im.in_w) continue;
          for (int64_t ch = 0; ch < in_group; ++ch) {
            const int64_t at = ((n * im.in_h + iy) * im.in_w + ix) * p.in_channels + o / out_group * in_group + ch;
            sum += static_cast<int64_t>(value(x[at], types.x_signed) - call.x_zero) *
                   (value(w[(o * in_group + ch) * taps + kh * p.kernel_w + kw], types.w_signed) - wz);
          }
        }
      const int32_t s = static_cast<int32_t>(sum);
      const int64_t at = i * p.out_channels + o;
      const auto where = [&] {
        return ::testing::Message() << isa_name() << " channels " << p.in_channels << "->" << p.out_channels
                                    << " groups " << p.groups << " kernel " << p.kernel_h << 'x' << p.kernel_w
                                    << " image " << im.in_h << 'x' << im.in_w << " signed " << types.x_signed
                                    << types.w_signed << " zeros " << zero_kind << " output "
                                    << static_cast<int>(call.output) << " at pixel " << i << " channel " << o;
      };
      const float f = static_cast<float>(s) * (call.x_scale * scale[o]);
      if (call.output == Int8Output::s32) {
        ASSERT_EQ(reinterpret_cast<const int32_t*>(y.data())[at], s) << where();
      } else if (call.output == Int8Output::f32) {
        double want = f + (call.shift ? shift[o] : 0.0);
        if (call.activation) want = want < 0 ? 0 : want;
        ASSERT_NEAR(y[at], want, 1e-5 * (1 + std::abs(f))) << where();
      } else {
        const double q = std::nearbyint(static_cast<double>(f)) + call.y_zero;
        const int want = static_cast<int>(std::min<double>(call.high, std::max<double>(call.low, q)));
        const uint8_t byte = reinterpret_cast<const uint8_t*>(y.data())[at];
        ASSERT_EQ(value(byte, call.output == Int8Output::s8), want) << where();
      }
    }
  }
  (void)element;
}

Case random_case(Random& random, bool depthwise) {
  Case c;
  ConvParams& p = c.p;
  if (depthwise) {
    p.groups = p.in_channels = p.out_channels = random.pick({2, 3, 8, 15, 16, 17, 24, 32, 40, 96});
  } else {
    p.groups = random.pick({1, 1, 1, 2, 3});
    p.in_channels = p.groups * random.pick({1, 2, 3, 4, 5, 8, 16, 24, 33, 64});
    p.out_channels = p.groups * random.pick({1, 3, 8, 9, 16, 17, 24, 32, 40, 70});
  }
  p.kernel_h = static_cast<int>(random.pick({1, 1, 2, 3, 3, 5, 7})),
  p.kernel_w = static_cast<int>(random.pick({1, 1, 3, 3, 4, 7}));
  if (random.below(3) == 0) p.kernel_h = p.kernel_w = 1;
  p.stride_h = static_cast<int>(random.pick({1, 1, 2, 3})), p.stride_w = static_cast<int>(random.pick({1, 1, 2, 3}));
  p.dilation_h = static_cast<int>(random.pick({1, 1, 2})), p.dilation_w = static_cast<int>(random.pick({1, 1, 2, 3}));
  ConvImage& im = c.image;
  im.batch = random.pick({1, 1, 2});
  im.pad_top = random.below(p.kernel_h + 1), im.pad_left = random.below(p.kernel_w + 1);
  const int64_t reach_h = (p.kernel_h - 1) * p.dilation_h + 1, reach_w = (p.kernel_w - 1) * p.dilation_w + 1;
  im.in_h = 1 + random.below(12), im.in_w = 1 + random.below(40);
  im.out_h = std::max<int64_t>(1, (im.in_h + im.pad_top + random.below(p.kernel_h) - reach_h) / p.stride_h + 1);
  im.out_w = std::max<int64_t>(1, (im.in_w + im.pad_left + random.below(p.kernel_w) - reach_w) / p.stride_w + 1);
  return c;
}

TEST(ConvInt8, MatchesExactSums) {
  for_each_isa([] {
    Random random(5);
    for (int i = 0; i < 300 && !::testing::Test::HasFatalFailure(); ++i)
      check<ConvInt8>(random, random_case(random, false));
  });
}

TEST(DepthwiseInt8, MatchesExactSums) {
  for_each_isa([] {
    Random random(6);
    for (int i = 0; i < 300 && !::testing::Test::HasFatalFailure(); ++i)
      check<DepthwiseInt8>(random, random_case(random, true));
  });
}

TEST(WinogradInt8, MatchesExactSums) {
  for_each_isa([] {
    Random random(8);
    for (int i = 0; i < 60 && !::testing::Test::HasFatalFailure(); ++i) {
      Case c = random_case(random, false);
      c.p = ConvParams();
      c.p.in_channels = random.pick({32, 64, 160}), c.p.out_channels = random.pick({32, 64, 96});
      c.p.kernel_h = c.p.kernel_w = 3;
      ConvImage& im = c.image;
      im.pad_top = random.below(3), im.pad_left = random.below(3);
      im.out_h = std::max<int64_t>(1, im.in_h + im.pad_top - 2 + random.below(3));
      im.out_w = std::max<int64_t>(1, im.in_w + im.pad_left - 2 + random.below(3));
      if (WinogradInt8::supports(c.p, {}, true)) check<WinogradInt8>(random, c);
    }
  });
}

TEST(WinogradInt8, LeavesSumsThatDoNotFit) {
  ConvParams p;
  p.kernel_h = p.kernel_w = 3;
  p.in_channels = 2048, p.out_channels = 64;
  EXPECT_FALSE(WinogradInt8::supports(p, {}, false));
}

TEST(ConvInt8, LargeProducts) {
  Random random(7);
  Case c;
  c.p.in_channels = 200, c.p.out_channels = 130, c.p.kernel_h = c.p.kernel_w = 3;
  c.image = {1, 20, 20, 20, 20, 1, 1};
  check<ConvInt8>(random, c);
  c.p.kernel_h = c.p.kernel_w = 1;
  c.image = {3, 20, 20, 20, 20, 0, 0};
  check<ConvInt8>(random, c);
}

}  // namespace
}  // namespace epona
