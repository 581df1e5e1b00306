// Passes that recognise GELU, normalisation and attention: results as without passes, and what must stay as it is.
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "cpp/pass_test_util.h"

namespace epona {
namespace {

/// Runs a model with random inputs of the declared shapes (unknown dims are 2) at no and at full optimisation; returns
/// how often `pass` rewrote it.
int check(const std::string& io, const std::string& constants, const std::string& body, const char* pass) {
  const std::string bytes =
      test::model_bytes("<ir_version: 8, opset_import: [\"\" : 17]> g (" + io + ") <" + constants + "> {" + body + "}");
  const auto [results, rewrites] = test::run_at_two_levels(bytes, pass, [](const IoInfo& input, Random& random) {
    Shape shape;
    for (const Dim& dim : *input.type.shape) shape.push_back(dim.known() ? dim.value : 2);
    return test::random_floats(random, shape);
  });
  for (size_t o = 0; o < results[0].size(); ++o) {
    EXPECT_EQ(results[0][o].size(), results[1][o].size()) << body;
    for (size_t i = 0; i < results[0][o].size() && i < results[1][o].size(); ++i)
      EXPECT_NEAR(results[0][o][i], results[1][o][i], 1e-5) << body;
  }
  return rewrites;
}

int gelu(const std::string& body, const std::string& io = "float[N,8] x) => (float[N,8] y") {
  return check(io,
               "float half = {0.5}, float one = {1}, float root = {1.41421356}, float inverse = {0.70710678}, "
               "float k = {0.044715}, float three = {3}, float c = {0.79788456}, float other = {0.6}, "
               "float[1,1,1] tall = {0.5}",
               body, "fuse_gelu");
}

TEST(FuseGelu, both_forms_in_any_order) {
  EXPECT_EQ(gelu("d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) y = Mul(p, half)"), 1);
  EXPECT_EQ(gelu("d = Mul(x, inverse) e = Erf(d) a = Add(one, e) p = Mul(a, half) y = Mul(x, p)"), 1);
  EXPECT_EQ(gelu("h = Mul(half, x) d = Div(x, root) e = Erf(d) a = Add(e, one) y = Mul(h, a)"), 1);
  EXPECT_EQ(gelu("q = Pow(x, three) k3 = Mul(q, k) s = Add(x, k3) u = Mul(s, c) t = Tanh(u) a = Add(t, one) "
                 "p = Mul(x, a) y = Mul(p, half)"),
            1);
}

TEST(FuseGelu, keeps_what_is_not_gelu) {
  EXPECT_EQ(gelu("d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) y = Mul(p, other)"), 0);
  EXPECT_EQ(gelu("d = Div(x, root) e = Erf(d) a = Add(e, half) p = Mul(x, a) y = Mul(p, half)"), 0);
  EXPECT_EQ(gelu("d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(z, a) y = Mul(p, half)",
                 "float[N,8] x, float[N,8] z) => (float[N,8] y"),
            0);
  EXPECT_EQ(gelu("d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) y = Mul(p, tall)",
                 "float[N,8] x) => (float[A,N,8] y"),
            0);
  EXPECT_EQ(gelu("d = Div(x, root) e = Erf(d) a = Add(e, one) p = Mul(x, a) y = Mul(p, half)",
                 "float[N,8] x) => (float[N,8] y, float[N,8] e"),
            0);
}

int norm(const std::string& body, const std::string& io = "float[N,4] x) => (float[N,4] y") {
  return check(io,
               "float two = {2}, float eps = {0.001}, float[4] scale = {1,2,3,4}, float[4] bias = {0.5,0,-0.5,1}, "
               "float[2] wide = {3,5}, float[1] unit = {3}, float[1,1,4] tall = {1,2,3,4}",
               body, "fuse_layer_norm");
}
const std::string kCentred =
    "m = ReduceMean<axes = [-1]>(x) d = Sub(x, m) q = Pow(d, two) v = ReduceMean<axes = [-1]>(q) e = Add(v, eps) "
    "s = Sqrt(e) n = Div(d, s) ";
const std::string kRms =
    "q = Mul(x, x) v = ReduceMean<axes = [1]>(q) e = Add(eps, v) s = Sqrt(e) r = Reciprocal(s) n = Mul(x, r) ";

TEST(FuseLayerNorm, layer_and_rms) {
  EXPECT_EQ(norm(kCentred + "t = Mul(n, scale) y = Add(t, bias)"), 1);
  EXPECT_EQ(norm(kCentred + "y = Mul(scale, n)"), 1);
  EXPECT_EQ(norm(kRms + "y = Mul(n, scale)"), 1);
}

TEST(FuseLayerNorm, keeps_scales_that_enlarge_the_result) {
  // microsoft/onnxruntime#31980: x[2,1] times a scale of two columns
  EXPECT_EQ(norm(kCentred + "y = Mul(n, wide)", "float[2,1] x) => (float[2,2] y"), 0);
  EXPECT_EQ(norm(kCentred + "y = Mul(n, tall)", "float[N,4] x) => (float[1,N,4] y"), 0);
  EXPECT_EQ(norm("m = ReduceMean<axes = [0]>(x) d = Sub(x, m) q = Pow(d, two) v = ReduceMean<axes = [0]>(q) "
                 "e = Add(v, eps) s = Sqrt(e) n = Div(d, s) y = Mul(n, scale)"),
            0);
}

int attention(const std::string& body, const std::string& io) {
  return check(io, "float[1] scale = {0.5}, float[1] divisor = {2}", body, "fuse_attention");
}

TEST(FuseAttention, layouts_and_masks) {
  const std::string heads_last = "float[B,5,3,4] q, float[B,6,3,4] k, float[B,6,3,7] v";
  const std::string split =
      "a = Transpose<perm = [0,2,1,3]>(q) b = Transpose<perm = [0,2,3,1]>(k) "
      "c = Transpose<perm = [0,2,1,3]>(v) s = MatMul(a, b) ";
  const std::string join = "p = Softmax<axis = -1>(t) o = MatMul(p, c) y = Transpose<perm = [0,2,1,3]>(o)";
  EXPECT_EQ(attention(split + "t = Mul(s, scale) " + join, heads_last + ") => (float[B,5,3,7] y"), 1);
  EXPECT_EQ(attention(split + "u = Div(s, divisor) t = Add(u, m) " + join,
                      heads_last + ", float[B,1,1,6] m) => (float[B,5,3,7] y"),
            1);
  EXPECT_EQ(attention("b = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, b) t = Add(m, s) p = Softmax<axis = 3>(t) "
                      "y = MatMul(p, v)",
                      "float[B,3,5,4] q, float[B,3,6,4] k, float[B,3,6,7] v, float[5,6] m) => (float[B,3,5,7] y"),
            1);
  // One head of keys and values for all queries.
  EXPECT_EQ(attention("b = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, b) p = Softmax<axis = -1>(s) y = MatMul(p, v)",
                      "float[B,3,5,4] q, float[1,1,6,4] k, float[1,1,6,7] v) => (float[B,3,5,7] y"),
            1);
}

TEST(FuseAttention, keeps_other_products) {
  const std::string io = "float[B,3,5,4] q, float[B,3,6,4] k, float[B,3,6,7] v";
  EXPECT_EQ(attention("b = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, b) p = Softmax<axis = -1>(s) y = MatMul(p, v)",
                      io + ") => (float[B,3,5,7] y, float[B,3,5,6] p"),
            0);
  EXPECT_EQ(attention("b = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, b) p = Softmax<axis = 2>(s) y = MatMul(p, v)",
                      io + ") => (float[B,3,5,7] y"),
            0);
  EXPECT_EQ(attention("b = Transpose<perm = [0,1,3,2]>(k) s = MatMul(q, b) t = Mul(s, m) p = Softmax<axis = -1>(t) "
                      "y = MatMul(p, v)",
                      io + ", float[5,6] m) => (float[B,3,5,7] y"),
            0);
}

}  // namespace
}  // namespace epona
