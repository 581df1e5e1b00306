#include <string>

#include "kernels/attention.h"
#include "vec_test_util.h"

namespace epona {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

double bias_at(const AttentionBias& bias, int64_t b, int64_t h, int64_t i, int64_t j) {
  return bias.data ? bias.data[b * bias.batch + h * bias.head + i * bias.row + j * bias.col] : 0.0;
}

/// Row-by-row attention in double.
std::vector<double> exact_attention(const AttentionCall& a) {
  std::vector<double> out(static_cast<size_t>(a.batch * a.heads * a.q_len * a.v_dim));
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t h = 0; h < a.heads; ++h) {
      const int64_t g = h / (a.heads / a.kv_heads);
      for (int64_t i = 0; i < a.q_len; ++i) {
        std::vector<double> p(static_cast<size_t>(a.kv_len), -kInf);
        const bool sinks = a.sink || a.smooth;
        const double sink = a.sink ? a.sink[h] : 0;
        double max = sinks ? sink : -kInf, sum = 0;
        const KeyRange keys = a.visible ? (*a.visible)(b, i) : KeyRange{0, a.kv_len};
        for (int64_t j = std::max<int64_t>(0, keys.first); j < std::min(keys.last, a.kv_len); ++j) {
          double s = 0;
          for (int64_t c = 0; c < a.dim; ++c)
            s += double(a.q.data[b * a.q.batch + h * a.q.head + i * a.q.seq + c]) *
                 a.k.data[b * a.k.batch + g * a.k.head + j * a.k.seq + c];
          s *= a.scale;
          if (a.softcap != 0) s = a.softcap * std::tanh(s / a.softcap);
          p[j] = s + bias_at(a.bias, b, h, i, j) + bias_at(a.mask, b, h, i, j);
          max = std::max(max, p[j]);
        }
        for (double& s : p) s = std::isnan(s) ? s : max == -kInf ? 0 : std::exp(s - max), sum += s;
        if (sinks) sum += std::exp(sink - max);
        for (int64_t c = 0; c < a.v_dim; ++c) {
          double v = 0;
          for (int64_t j = 0; j < a.kv_len; ++j)
            if (p[j] != 0) v += p[j] * a.v.data[b * a.v.batch + g * a.v.head + j * a.v.seq + c];
          out[((b * a.heads + h) * a.q_len + i) * a.v_dim + c] = sum == 0 ? (a.zero_when_masked ? 0 : NAN) : v / sum;
        }
      }
    }
  }
  return out;
}

struct Shape4 {
  int64_t batch, heads, kv_heads, q_len, kv_len, dim, v_dim;
};

/// Fills in tensors, [B, S, H, D] when `inner_heads`, else [B, H, S, D].
struct Problem {
  std::vector<float> q, k, v, out, mask;
  AttentionCall a;

  Problem(const Shape4& s, bool inner_heads) {
    a.batch = s.batch, a.heads = s.heads, a.kv_heads = s.kv_heads, a.q_len = s.q_len, a.kv_len = s.kv_len;
    a.dim = s.dim, a.v_dim = s.v_dim;
    a.scale = 1 / std::sqrt(static_cast<float>(s.dim));
    const auto input = [&](std::vector<float>& data, int64_t heads, int64_t length, int64_t dim, uint32_t seed) {
      data = random_floats(static_cast<size_t>(s.batch * heads * length * dim), -2, 2, seed);
      const int64_t batch = heads * length * dim;
      return inner_heads ? AttentionInput{data.data(), batch, dim, heads * dim}
                         : AttentionInput{data.data(), batch, length * dim, dim};
    };
    a.q = input(q, s.heads, s.q_len, s.dim, 1);
    a.k = input(k, s.kv_heads, s.kv_len, s.dim, 2);
    a.v = input(v, s.kv_heads, s.kv_len, s.v_dim, 3);
    out.assign(static_cast<size_t>(s.batch * s.heads * s.q_len * s.v_dim), 9.0f);
    a.out = out.data();
    a.out_batch = s.heads * s.q_len * s.v_dim;
    a.out_head = s.q_len * s.v_dim;
    a.out_seq = s.v_dim;
  }

  void check(const std::string& what) {
    const std::vector<double> exact = exact_attention(a);
    for (int threads : {1, 2}) {
      ThreadPool& pool = test_pool(threads);
      std::fill(out.begin(), out.end(), 9.0f);
      std::vector<float> workspace(attention_workspace(a, threads) / 4 + 16, kInf);
      attention(a, workspace.data(), pool);
      for (size_t i = 0; i < out.size(); ++i) {
        if (std::isnan(exact[i]))
          ASSERT_TRUE(std::isnan(out[i])) << what << " at " << i;
        else
          ASSERT_NEAR(out[i], exact[i], 1e-5) << what << " at " << i;
      }
    }
  }
};

const std::vector<Shape4>& shapes() {
  static const std::vector<Shape4> all = {
      {1, 1, 1, 1, 1, 1, 1},       {2, 3, 3, 5, 7, 8, 8},       {1, 2, 2, 50, 50, 64, 64}, {2, 4, 2, 9, 33, 20, 12},
      {1, 2, 1, 300, 300, 16, 16}, {1, 1, 1, 30, 600, 80, 80},  {2, 6, 2, 1, 130, 64, 64}, {1, 9, 3, 1, 1000, 64, 64},
      {1, 4, 4, 3, 77, 36, 40},    {1, 8, 2, 4, 257, 128, 128}, {3, 2, 2, 17, 1, 24, 24}};
  return all;
}

TEST(AttentionKernel, plain) {
  for_each_isa([&] {
    for (const Shape4& s : shapes())
      for (bool inner : {false, true}) Problem(s, inner).check("plain");
  });
}

TEST(AttentionKernel, visible_keys_softcap_and_sinks) {
  for_each_isa([&] {
    for (const Shape4& s : shapes()) {
      Problem p(s, true);
      const int64_t past = std::max<int64_t>(0, s.kv_len - s.q_len);
      const auto causal = [&](int64_t, int64_t i) { return KeyRange{0, i + past + 1}; };
      const FunctionRef<KeyRange(int64_t, int64_t)> causal_keys = causal;
      p.a.visible = &causal_keys;
      p.check("causal");
      p.a.softcap = 3;
      p.check("causal softcap");
      const auto window = [&](int64_t b, int64_t i) {
        return KeyRange{i + past - 4, std::min(i + past + 1, s.kv_len - b)};
      };
      const FunctionRef<KeyRange(int64_t, int64_t)> window_keys = window;
      p.a.visible = &window_keys;
      p.check("window");
      p.a.smooth = true;
      p.check("smooth softmax");
      const std::vector<float> sinks = random_floats(static_cast<size_t>(s.heads), -2, 2, 8);
      p.a.sink = sinks.data();
      p.check("sinks");
    }
  });
}

TEST(AttentionKernel, biases) {
  for_each_isa([&] {
    for (const Shape4& s : shapes()) {
      Problem p(s, false);
      p.mask = random_floats(static_cast<size_t>(s.batch * s.heads * s.q_len * s.kv_len), -3, 3, 9);
      for (size_t i = 0; i < p.mask.size(); i += 7) p.mask[i] = -kInf;
      p.a.bias = {p.mask.data(), s.heads * s.q_len * s.kv_len, s.q_len * s.kv_len, s.kv_len, 1};
      p.check("full bias");
      p.a.mask = {p.mask.data(), s.kv_len, 0, 0, 1};
      p.check("and a bias of keys");
      p.a.bias = {p.mask.data(), 0, 0, 1, 0};
      p.check("and a bias of queries");
      p.a.mask = {};
      std::fill(p.mask.begin(), p.mask.end(), -kInf);
      p.check("everything masked");
      p.a.zero_when_masked = false;
      p.check("everything masked, NaN");
    }
  });
}

TEST(AttentionKernel, nan_reaches_its_row_only) {
  for_each_isa([&] {
    for (int64_t q_len : {1, 10}) {
      Problem p({1, 1, 1, q_len, 40, 16, 16}, false);
      p.q[3] = std::numeric_limits<float>::quiet_NaN();
      p.check("NaN query");
    }
  });
}

}  // namespace
}  // namespace epona
