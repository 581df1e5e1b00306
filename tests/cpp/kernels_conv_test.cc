#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "kernel_test_util.h"
#include "kernels/conv.h"
#include "kernels/pool.h"
#include "kernels/reorder.h"

namespace epona {
namespace {

struct Case {
  ConvParams p;
  ConvImage image;
  bool bias = true, residual = false;
};

double activated(const Activation& a, double v) {
  switch (a.kind) {
    case ActivationKind::relu:
      return std::max(v, 0.0);
    case ActivationKind::clip:
      return std::clamp<double>(v, a.a, a.b);
    case ActivationKind::leaky_relu:
      return v < 0 ? a.a * v : v;
    case ActivationKind::hard_swish:
      return v * std::clamp(a.a * v + a.b, 0.0, 1.0);
    case ActivationKind::silu:
      return v / (1 + std::exp(-v));
    default:
      return v;
  }
}

/// The sum as the definition has it, in double.
std::vector<double> reference(const Case& c, const std::vector<float>& x, const std::vector<float>& w,
                              const std::vector<float>& bias, const std::vector<float>& residual, double& largest) {
  const ConvParams& p = c.p;
  const ConvImage& m = c.image;
  const int64_t in_group = p.in_channels / p.groups, out_group = p.out_channels / p.groups;
  std::vector<double> y;
  for (int64_t n = 0; n < m.batch; ++n)
    for (int64_t o = 0; o < p.out_channels; ++o)
      for (int64_t oh = 0; oh < m.out_h; ++oh)
        for (int64_t ow = 0; ow < m.out_w; ++ow) {
          double sum = c.bias ? bias[o] : 0;
          for (int64_t i = 0; i < in_group; ++i)
            for (int64_t kh = 0; kh < p.kernel_h; ++kh)
              for (int64_t kw = 0; kw < p.kernel_w; ++kw) {
                const int64_t ih = oh * p.stride_h + kh * p.dilation_h - m.pad_top;
                const int64_t iw = ow * p.stride_w + kw * p.dilation_w - m.pad_left;
                if (ih < 0 || iw < 0 || ih >= m.in_h || iw >= m.in_w) continue;
                const int64_t channel = o / out_group * in_group + i;
                sum += static_cast<double>(x[((n * p.in_channels + channel) * m.in_h + ih) * m.in_w + iw]) *
                       w[((o * in_group + i) * p.kernel_h + kh) * p.kernel_w + kw];
              }
          largest = std::max(largest, std::abs(sum));
          const double r = c.residual ? residual[y.size()] : 0;
          y.push_back(p.residual_last ? activated(p.activation, sum) + r : activated(p.activation, sum + r));
        }
  return y;
}

template <class Conv>
void check(const Conv& conv, const Case& c, bool from_planes, double tolerance, int threads, uint32_t seed) {
  const ConvParams& p = c.p;
  const ConvImage& m = c.image;
  ThreadPoolOptions options;
  options.threads = threads;
  ThreadPool pool(options);
  Random random(seed);
  const int64_t in_pixels = m.in_h * m.in_w, out_pixels = m.out_h * m.out_w;
  const auto x = random.floats(m.batch * p.in_channels * in_pixels);
  const auto w = random.floats(p.out_channels * p.in_channels / p.groups * p.kernel_h * p.kernel_w);
  const auto bias = random.floats(p.out_channels);
  const auto residual = random.floats(m.batch * p.out_channels * out_pixels);
  const int64_t in_size = m.batch * channel_blocks(p.in_channels) * in_pixels * 16;
  const int64_t out_size = m.batch * channel_blocks(p.out_channels) * out_pixels * 16;
  Aligned<float> xb(in_size), yb(out_size), packed(conv.packed_floats());
  Aligned<char> workspace(conv.workspace_bytes(m, threads));
  conv.pack(w.data(), c.bias ? bias.data() : nullptr, packed.data());
  if (from_planes) {
    std::copy(x.begin(), x.end(), xb.data());
  } else {
    reorder_to_nchwc(x.data(), xb.data(), m.batch, p.in_channels, in_pixels, pool);
    // What padding channels hold must not matter.
    for (int64_t i = 0; p.in_channels % 16 != 0 && i < in_size; ++i) {
      const bool last = i / 16 / in_pixels % channel_blocks(p.in_channels) == channel_blocks(p.in_channels) - 1;
      if (last && i % 16 >= p.in_channels % 16) xb.data()[i] = 1e30f;
    }
  }
  // The residual lies in y itself where that is allowed.
  const bool in_place = c.residual && !p.residual_last;
  Aligned<float> rb(out_size);
  float* r = in_place ? yb.data() : rb.data();
  if (c.residual) reorder_to_nchwc(residual.data(), r, m.batch, p.out_channels, out_pixels, pool);
  conv.run(m, {xb.data(), packed.data(), c.residual ? r : nullptr, yb.data(), workspace.data()}, pool);
  std::vector<float> y(m.batch * p.out_channels * out_pixels);
  reorder_from_nchwc(yb.data(), y.data(), m.batch, p.out_channels, out_pixels, pool);

  // Rounding errors grow with the sums, also where an activation cuts them.
  double largest = 1;
  const auto expected = reference(c, x, w, bias, residual, largest);
  double worst = 0;
  for (size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y[i] - expected[i]));
  EXPECT_LE(worst / largest, tolerance) << p.in_channels << "->" << p.out_channels << " groups " << p.groups
                                        << " kernel " << p.kernel_h << 'x' << p.kernel_w << " image " << m.in_h << 'x'
                                        << m.in_w << " threads " << threads << " isa " << isa_name();
}

Case random_case(Random& random, int64_t kernel) {
  Case c;
  ConvParams& p = c.p;
  p.kernel_h = p.kernel_w = static_cast<int>(kernel);
  if (kernel == 0) {
    p.kernel_h = static_cast<int>(random.pick({1, 1, 2, 3, 5, 7}));
    p.kernel_w = static_cast<int>(random.pick({1, 3, 3, 5, 7}));
    p.stride_h = static_cast<int>(random.pick({1, 1, 2, 3}));
    p.stride_w = static_cast<int>(random.pick({1, 1, 2, 3}));
    p.dilation_h = static_cast<int>(random.pick({1, 1, 2}));
    p.dilation_w = static_cast<int>(random.pick({1, 1, 3}));
  }
  const Activation activations[] = {{},
                                    Activation::relu(),
                                    Activation::clip(-0.5f, 2),
                                    Activation::leaky_relu(0.1f),
                                    Activation::hard_swish(),
                                    Activation::silu()};
  p.activation = activations[random.below(6)];
  p.residual_last = random.flip();
  c.bias = random.flip();
  c.residual = random.flip();
  ConvImage& m = c.image;
  m.batch = random.pick({1, 1, 2});
  m.in_h = random.pick({1, 4, 7, 14, 19});
  m.in_w = random.pick({1, 5, 7, 14, 23});
  m.pad_top = random.pick({0, 1, 2});
  m.pad_left = random.pick({0, 1, 3});
  const int64_t below = random.pick({0, 1, 2}), right = random.pick({0, 1, 2});
  const int64_t reach_h = (p.kernel_h - 1) * p.dilation_h + 1, reach_w = (p.kernel_w - 1) * p.dilation_w + 1;
  m.out_h = std::max<int64_t>(0, m.in_h + m.pad_top + below - reach_h + p.stride_h) / p.stride_h;
  m.out_w = std::max<int64_t>(0, m.in_w + m.pad_left + right - reach_w + p.stride_w) / p.stride_w;
  return c;
}

void try_cases(int count, int64_t kernel, const std::function<void(Random&, Case&, int, uint32_t)>& fn) {
  for_each_isa([&] {
    Random random(7);
    for (int i = 0; i < count; ++i) {
      Case c = random_case(random, kernel);
      fn(random, c, static_cast<int>(random.pick({1, 2, 3})), static_cast<uint32_t>(i));
    }
  });
}

TEST(Conv, Direct) {
  try_cases(60, 0, [](Random& random, Case& c, int threads, uint32_t seed) {
    c.p.groups = random.pick({1, 1, 1, 2});
    c.p.in_channels = c.p.groups > 1 ? 32 * random.pick({1, 2}) : random.pick({1, 3, 16, 24, 40, 64, 150});
    c.p.out_channels = c.p.groups > 1 ? 32 : random.pick({1, 16, 24, 40, 80});
    check(ConvDirect(c.p), c, false, 3e-6, threads, seed);
  });
}

TEST(Conv, PointwiseOfLargeImagesInStrips) {
  try_cases(2, 1, [](Random&, Case& c, int threads, uint32_t seed) {
    c.p.in_channels = 96, c.p.out_channels = 48;
    c.image = {1, 40, 41, 40, 41, 0, 0};
    check(ConvDirect(c.p), c, false, 3e-6, threads, seed);
  });
}

TEST(Conv, Stem) {
  try_cases(40, 0, [](Random& random, Case& c, int threads, uint32_t seed) {
    c.p.in_channels = random.pick({1, 3, 4, 7});
    c.p.out_channels = random.pick({1, 16, 24, 64});
    check(ConvStem(c.p), c, true, 3e-6, threads, seed);
  });
}

TEST(Conv, Depthwise) {
  try_cases(60, 0, [](Random& random, Case& c, int threads, uint32_t seed) {
    c.p.in_channels = c.p.out_channels = c.p.groups = random.pick({1, 16, 20, 48});
    check(ConvDepthwise(c.p), c, false, 3e-6, threads, seed);
  });
}

TEST(Conv, Winograd) {
  for (int m : {2, 4}) {
    try_cases(30, 3, [m](Random& random, Case& c, int threads, uint32_t seed) {
      c.p.in_channels = random.pick({1, 3, 16, 24, 40, 200});
      c.p.out_channels = random.pick({1, 16, 24, 64});
      check(ConvWinograd(c.p, m), c, false, m == 2 ? 3e-6 : 2e-5, threads, seed);
    });
  }
}

TEST(Reorder, ThereAndBack) {
  Random random(3);
  ThreadPool pool;
  for (int64_t channels : {1, 3, 16, 17, 40}) {
    const int64_t pixels = 37, batch = 2;
    const auto x = random.floats(batch * channels * pixels);
    Aligned<float> blocked(batch * channel_blocks(channels) * pixels * 16);
    std::vector<float> planes(x.size()), nhwc(x.size());
    reorder_to_nchwc(x.data(), blocked.data(), batch, channels, pixels, pool);
    reorder_from_nchwc(blocked.data(), planes.data(), batch, channels, pixels, pool);
    EXPECT_EQ(planes, x);
    reorder_nchwc_to_nhwc(blocked.data(), nhwc.data(), batch, channels, pixels, pool);
    for (int64_t i = 0; i < batch * channels * pixels; ++i) {
      const int64_t p = i % pixels, c = i / pixels % channels, n = i / pixels / channels;
      EXPECT_EQ(nhwc[(n * pixels + p) * channels + c], x[i]);
    }
    reorder_nhwc_to_nchwc(nhwc.data(), blocked.data(), batch, channels, pixels, pool);
    reorder_from_nchwc(blocked.data(), planes.data(), batch, channels, pixels, pool);
    EXPECT_EQ(planes, x);
  }
}

TEST(Pool, MatchesTheDefinition) {
  for_each_isa([] {
    Random random(5);
    ThreadPool pool;
    for (int i = 0; i < 40; ++i) {
      Pooling p;
      p.kernel_h = static_cast<int>(random.pick({1, 2, 3, 5})), p.kernel_w = static_cast<int>(random.pick({1, 2, 3}));
      p.stride_h = static_cast<int>(random.pick({1, 2, 3})), p.stride_w = static_cast<int>(random.pick({1, 2}));
      p.planes = 2, p.in_h = random.pick({5, 9}), p.in_w = random.pick({6, 40});
      p.pad_top = random.below(p.kernel_h), p.pad_left = random.below(p.kernel_w);
      p.pad_bottom = random.below(p.kernel_h), p.pad_right = random.below(p.kernel_w);
      p.out_h = (p.in_h + p.pad_top + p.pad_bottom - p.kernel_h) / p.stride_h + 1;
      p.out_w = (p.in_w + p.pad_left + p.pad_right - p.kernel_w) / p.stride_w + 1;
      const auto values = random.floats(p.planes * p.in_h * p.in_w * 16);
      Aligned<float> x(values.size()), y(p.planes * p.out_h * p.out_w * 16);
      std::copy(values.begin(), values.end(), x.data());
      for (int kind = 0; kind < 3; ++kind) {
        if (kind == 0)
          max_pool_nchwc(p, x.data(), y.data(), pool);
        else
          average_pool_nchwc(p, kind == 2, x.data(), y.data(), pool);
        for (int64_t at = 0; at < p.planes * p.out_h * p.out_w * 16; ++at) {
          const int64_t lane = at % 16, ow = at / 16 % p.out_w, oh = at / 16 / p.out_w % p.out_h;
          const int64_t plane = at / 16 / p.out_w / p.out_h;
          double best = -INFINITY, sum = 0, count = 0;
          for (int64_t kh = 0; kh < p.kernel_h; ++kh)
            for (int64_t kw = 0; kw < p.kernel_w; ++kw) {
              const int64_t ih = oh * p.stride_h + kh - p.pad_top, iw = ow * p.stride_w + kw - p.pad_left;
              const bool in = ih >= 0 && iw >= 0 && ih < p.in_h && iw < p.in_w;
              const double v = in ? values[((plane * p.in_h + ih) * p.in_w + iw) * 16 + lane] : 0;
              if (in) best = std::max(best, v);
              sum += v;
              count += in || kind == 2;
            }
          ASSERT_NEAR(y.data()[at], kind == 0 ? best : sum / count, 1e-6);
        }
      }
    }
  });
}

TEST(Pool, GlobalMeanOfManyPixelsIsExact) {
  ThreadPool pool;
  const int64_t pixels = 20000;
  Aligned<float> x(pixels * 16), y(16);
  double sum = 0;
  Random random(1);
  for (int64_t i = 0; i < pixels; ++i) {
    const float v = 1 + random.value() / 10;
    sum += v;
    std::fill_n(x.data() + i * 16, 16, v);
  }
  global_pool_nchwc(GlobalPool::average, 1, pixels, x.data(), y.data(), pool);
  EXPECT_NEAR(y.data()[7], sum / pixels, 1e-6);
  x.data()[16 * 5 + 3] = NAN;
  global_pool_nchwc(GlobalPool::max, 1, pixels, x.data(), y.data(), pool);
  EXPECT_TRUE(std::isnan(y.data()[3]));
  EXPECT_FALSE(std::isnan(y.data()[4]));
}

}  // namespace
}  // namespace epona
