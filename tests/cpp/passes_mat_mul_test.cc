// The passes that fuse into products of matrices: results as without passes, and what must stay as it is.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <sstream>

#include "cpp/pass_test_util.h"

namespace epona {
namespace {

std::string floats_text(Random& random, int n) {
  std::ostringstream out;
  for (int i = 0; i < n; ++i) out << (i ? "," : "") << std::fixed << random.value();
  return out.str();
}

std::string bytes_text(Random& random, int n) {
  std::ostringstream out;
  for (int i = 0; i < n; ++i) out << (i ? "," : "") << random.below(255) - 127;
  return out.str();
}

/// Runs a model with inputs x{5,8}, image{1,2,7} and r{5,3} at no and at full optimisation; returns how often `pass` rewrote it.
int check(const std::string& io, const std::string& constants, const std::string& body, const char* pass,
          double tolerance = 1e-5) {
  const std::string bytes =
      test::model_bytes("<ir_version: 8, opset_import: [\"\" : 20]> g (" + io + ") <" + constants + "> {" + body + "}");
  const auto [results, rewrites] = test::run_at_two_levels(bytes, pass, [](const IoInfo& input, Random& random) {
    return test::random_floats(random, input.name == "x"       ? Shape{5, 8}
                                       : input.name == "row"   ? Shape{1, 3}
                                       : input.name == "image" ? Shape{1, 2, 7}
                                                               : Shape{5, 3});
  });
  EXPECT_EQ(results[0].size(), results[1].size());
  for (size_t o = 0; o < results[0].size(); ++o) {
    EXPECT_EQ(results[0][o].size(), results[1][o].size());
    for (size_t i = 0; i < results[0][o].size(); ++i)
      EXPECT_NEAR(results[0][o][i], results[1][o][i], tolerance * (1 + std::fabs(results[0][o][i]))) << body;
  }
  return rewrites;
}

class FuseMatMul : public ::testing::Test {
 protected:
  int run(const std::string& body, const std::string& io = "float[N,8] x, float[N,3] r) => (float[N,3] y") {
    Random random(3);
    const std::string constants = "float[8,3] w = {" + floats_text(random, 24) + "}, float[3] b = {0.5,-0.25,1}, " +
                                  "float[1] one = {0.75}, float[2,1,3] tall = {1,2,3,4,5,6}, float[8,1] thin = {" +
                                  floats_text(random, 8) + "}";
    return check(io, constants, body, "fuse_mat_mul");
  }
};

TEST_F(FuseMatMul, BiasActivationResidual) {
  EXPECT_EQ(run("p = MatMul(x, w) y = Add(p, b)"), 1);
  EXPECT_EQ(run("p = MatMul(x, w) y = Add(b, p)"), 1);
  EXPECT_EQ(run("p = MatMul(x, w) q = Add(p, b) y = Relu(q)"), 1);
  EXPECT_EQ(run("p = MatMul(x, w) q = Add(p, b) y = Sigmoid(q)"), 1);
  EXPECT_EQ(run("p = MatMul(x, w) q = Add(p, b) y = Add(q, r)"), 1);
  EXPECT_EQ(run("p = MatMul(x, w) q = Add(p, b) s = Tanh(q) y = Add(r, s)"), 1);
  EXPECT_EQ(run("p = MatMul(x, w) q = Add(p, r) y = Relu(q)"), 1);
  EXPECT_EQ(run("y0 = Gemm<alpha = 0.5, beta = 2.0>(x, w, b) y = LeakyRelu<alpha = 0.2>(y0)"), 1);
}

TEST_F(FuseMatMul, KeepsValuesThatOthersRead) {
  EXPECT_EQ(run("p = MatMul(x, w) q = Add(p, b) y = Mul(p, q)"), 0);
  EXPECT_EQ(run("p = MatMul(x, w) y = Add(p, b)", "float[N,8] x) => (float[N,3] y, float[N,3] p"), 0);
  EXPECT_EQ(run("p = MatMul(x, w) y = Add(p, p)"), 0);
}

TEST_F(FuseMatMul, KeepsAdditionsThatBroadcastTheProduct) {
  // A bias of more columns or more dims than the product makes the result larger.
  EXPECT_EQ(run("p = MatMul(x, thin) y = Add(p, b)"), 0);
  EXPECT_EQ(run("p = MatMul(x, w) y = Add(p, tall)", "float[N,8] x) => (float[A,N,3] y"), 0);
  // Dims of different names may differ: here one row is added to five.
  EXPECT_EQ(run("p = MatMul(x, w) y = Add(p, row)", "float[N,8] x, float[M,3] row) => (float[K,3] y"), 0);
}

class FuseDynamicMatMul : public ::testing::Test {
 protected:
  int run(const std::string& body) {
    Random random(4);
    const std::string constants = "int8[8,3] w = {" + bytes_text(random, 24) + "}, float[3] ws = {0.01,0.02,0.03}, " +
                                  "float one = {0.01}, int8[3] wz = {1,-2,3}, float[3] b = {0.5,-0.25,1}, " +
                                  "float[5,1] rows = {1,2,3,4,5}";
    return check("float[N,8] x) => (float[N,3] y", constants, "q, s, z = DynamicQuantizeLinear(x) " + body,
                 "fuse_dynamic_mat_mul");
  }
};

TEST_F(FuseDynamicMatMul, ScalesAndBias) {
  EXPECT_EQ(run("p = MatMulInteger(q, w, z, wz) f = Cast<to = 1>(p) k = Mul(s, ws) t = Mul(f, k) y = Add(t, b)"), 1);
  EXPECT_EQ(run("p = MatMulInteger(q, w, z) f = Cast<to = 1>(p) k = Mul(one, s) y = Mul(k, f)"), 1);
}

TEST_F(FuseDynamicMatMul, KeepsWhatItCannotExpress) {
  // A factor that is not per column, and sums that somebody else reads.
  EXPECT_EQ(run("p = MatMulInteger(q, w, z) f = Cast<to = 1>(p) k = Mul(s, rows) y = Mul(f, k)"), 0);
  EXPECT_EQ(run("p = MatMulInteger(q, w, z) f = Cast<to = 1>(p) k = Mul(s, ws) t = Mul(f, k) y = Add(t, f)"), 0);
}

class FuseDynamicConv : public ::testing::Test {
 protected:
  int run(const std::string& body) {
    Random random(4);
    const std::string constants =
        "int8[3,2,3] w = {" + bytes_text(random, 18) + "}, float ws = {0.01}, int8 wz = {2}, " +
        "int32[1,3,1] b = {100,-200,300}, int32[1,1,5] row = {1,2,3,4,5}, " + "float[3,1] scales = {1,2,3}";
    return check("float[1,2,7] image) => (float[1,3,5] y", constants, "q, s, z = DynamicQuantizeLinear(image) " + body,
                 "fuse_dynamic_conv");
  }
};

TEST_F(FuseDynamicConv, BiasAndScales) {
  EXPECT_EQ(run("p = ConvInteger(q, w, z, wz) a = Add(b, p) f = Cast<to = 1>(a) k = Mul(s, ws) y = Mul(f, k)"), 1);
  EXPECT_EQ(run("p = ConvInteger(q, w, z) f = Cast<to = 1>(p) k = Mul(ws, s) y = Mul(k, f)"), 1);
}

TEST_F(FuseDynamicConv, KeepsWhatItCannotExpress) {
  // Addends and factors that are not of this form, and sums that somebody else reads.
  EXPECT_EQ(run("p = ConvInteger(q, w, z) a = Add(p, row) f = Cast<to = 1>(a) k = Mul(s, ws) y = Mul(f, k)"), 0);
  EXPECT_EQ(run("p = ConvInteger(q, w, z) f = Cast<to = 1>(p) k = Mul(s, scales) y = Mul(f, k)"), 0);
  EXPECT_EQ(run("p = ConvInteger(q, w, z) f = Cast<to = 1>(p) k = Mul(s, ws) t = Mul(f, k) y = Add(t, f)"), 0);
}

}  // namespace
}  // namespace epona
