// The passes that leave weights as the model file has them: results as without passes, and what must stay as it is.
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <sstream>

#include "cpp/pass_test_util.h"

namespace epona {
namespace {

struct Outcome {
  int rewrites = 0;
  double error = 0;  // largest difference, relative to the largest value
};

/// Runs a model with input x (and indices i) at no and at full optimisation.
Outcome compare(const std::string& bytes, const char* pass, const Shape& x_shape) {
  const auto both = test::run_at_two_levels(bytes, pass, [&](const IoInfo& input, Random& random) -> RuntimeValue {
    const int64_t rows[] = {3, -1, 0, 3};
    if (input.type.elem == DataType::int64) return Tensor::of<int64_t>(Shape{2, 2}, std::span<const int64_t>(rows));
    return test::random_floats(random, x_shape);
  });
  const auto& results = both.results;
  Outcome outcome{.rewrites = both.rewrites};
  for (size_t o = 0; o < results[0].size(); ++o) {
    EXPECT_EQ(results[0][o].size(), results[1][o].size());
    double largest = 1e-30, difference = 0;
    for (size_t i = 0; i < results[0][o].size(); ++i) {
      largest = std::max<double>(largest, std::fabs(results[0][o][i]));
      difference = std::max<double>(difference, std::fabs(results[0][o][i] - results[1][o][i]));
    }
    outcome.error = std::max(outcome.error, difference / largest);
  }
  return outcome;
}

onnx::TensorProto* add_floats(onnx::ModelProto& model, const char* name, const std::vector<int64_t>& dims,
                              Random& random) {
  onnx::TensorProto* tensor = model.mutable_graph()->add_initializer();
  tensor->set_name(name);
  tensor->set_data_type(onnx::TensorProto_DataType_FLOAT);
  int64_t count = 1;
  for (int64_t dim : dims) {
    tensor->add_dims(dim);
    count *= dim;
  }
  for (float value : random.floats(count)) tensor->add_float_data(value * 0.1f + 0.2f);
  return tensor;
}

onnx::ModelProto parse(const std::string& text) {
  onnx::ModelProto model;
  model.ParseFromString(test::model_bytes(text));
  return model;
}

Outcome transpose_case(const std::string& io, const std::string& body) {
  onnx::ModelProto model = parse("<ir_version: 10, opset_import: [\"\" : 20]> g (" + io + ") {" + body + "}");
  Random random(5);
  add_floats(model, "w", {300, 256}, random);
  add_floats(model, "small", {300, 16}, random);
  add_floats(model, "square", {256, 256}, random);
  add_floats(model, "deep", {2, 300, 256}, random);
  add_floats(model, "b", {300}, random);
  return compare(model.SerializeAsString(), "fuse_weight_transpose", Shape{2, 3, 256});
}

TEST(FuseWeightTranspose, ReadsTheWeightWhereItLies) {
  const std::string io = "float[A,B,256] x) => (float[C,D,E] y";
  for (const char* body : {"t = Transpose<perm = [1,0]>(w) y = MatMul(x, t)", "t = Transpose(w) y = MatMul(x, t)",
                           "t = Transpose(w) p = MatMul(x, t) q = Add(p, b) y = Relu(q)",
                           "t = Transpose(w) p = MatMul(x, t) q = MatMul(x, t) y = Add(p, q)"}) {
    const Outcome outcome = transpose_case(io, body);
    EXPECT_EQ(outcome.rewrites, 1) << body;
    EXPECT_LT(outcome.error, 1e-5) << body;
  }
}

TEST(FuseWeightTranspose, SharesAnEmbedding) {
  const Outcome outcome = transpose_case("float[A,B,256] x, int64[N,M] i) => (float[C,D,E] y, float[N,M,F] z",
                                         "t = Transpose(w) y = MatMul(x, t) z = Gather(w, i)");
  EXPECT_EQ(outcome.rewrites, 1);
  EXPECT_LT(outcome.error, 1e-5);
}

TEST(FuseWeightTranspose, KeepsOtherUses) {
  const std::string io = "float[A,B,256] x) => (float[C,D,E] y";
  for (const char* body : {"t = Transpose<perm = [0,1]>(square) y = MatMul(x, t)",
                           "t = Transpose(square) y0 = MatMul(t, t) y = MatMul(x, y0)",
                           "t = Transpose(square) u = MatMul(t, square) y = MatMul(x, u)",
                           "t = Transpose(w) p = MatMul(x, t) q = ReduceSum<keepdims = 0>(t) y = Add(p, q)",
                           "t = Transpose<perm = [0,2,1]>(deep) y = MatMul(x, t)"}) {
    const Outcome outcome = transpose_case(io, body);
    EXPECT_EQ(outcome.rewrites, 0) << body;
    EXPECT_LT(outcome.error, 1e-5) << body;
  }
  const Outcome output =
      transpose_case("float[A,B,256] x) => (float[C,D,E] y, float[F,G] t", "t = Transpose(w) y = MatMul(x, t)");
  EXPECT_EQ(output.rewrites, 0);
  EXPECT_EQ(output.error < 1e-5, true);
}

/// w is a 4-bit matrix of that shape, s its scales, z its zero points.
struct FourBits {
  bool is_signed = true;
  std::vector<int64_t> dims{64, 6}, scales{2, 6};
  std::string attributes = "axis = 0, block_size = 32";
  bool zeros = false;
};

Outcome four_bit_case(const FourBits& q, const std::string& body,
                      const std::string& io = "float[A,B,64] x) => (float[C,D,E] y", Shape x = Shape{2, 3, 64}) {
  const std::string dequantize = "d = DequantizeLinear<" + q.attributes + ">(w, s" + (q.zeros ? ", z) " : ") ");
  onnx::ModelProto model =
      parse("<ir_version: 11, opset_import: [\"\" : 23]> g (" + io + ") {" + dequantize + body + "}");
  Random random(6);
  const auto add_nibbles = [&](const char* name, const std::vector<int64_t>& dims) {
    onnx::TensorProto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(q.is_signed ? onnx::TensorProto_DataType_INT4 : onnx::TensorProto_DataType_UINT4);
    int64_t count = 1;
    for (int64_t dim : dims) {
      tensor->add_dims(dim);
      count *= dim;
    }
    std::string raw;
    for (int64_t i = 0; i < (count + 1) / 2; ++i) raw.push_back(static_cast<char>(random.below(256)));
    if (count % 2) raw.back() = static_cast<char>(raw.back() & 15);
    tensor->set_raw_data(raw);
  };
  add_nibbles("w", q.dims);
  add_floats(model, "s", q.scales, random);
  if (q.zeros) add_nibbles("z", q.scales);
  add_floats(model, "b", {6}, random);
  add_floats(model, "b2", {1, 6}, random);
  return compare(model.SerializeAsString(), "fuse_four_bit_weight", x);
}

void expect_fused(const FourBits& q, const std::string& body,
                  const std::string& io = "float[A,B,64] x) => (float[C,D,E] y", const Shape& x = Shape{2, 3, 64}) {
  for (const bool is_signed : {true, false}) {
    for (const bool zeros : {true, false}) {
      FourBits variant = q;
      variant.is_signed = is_signed;
      variant.zeros = zeros;
      const Outcome outcome = four_bit_case(variant, body, io, x);
      EXPECT_EQ(outcome.rewrites, 1) << body << " " << q.attributes << is_signed << zeros;
      EXPECT_LT(outcome.error, 2e-6) << body << " " << q.attributes << is_signed << zeros;
    }
  }
}

TEST(FuseFourBitWeight, Products) {
  const std::string plain = "y = MatMul(x, d)", turned = "t = Transpose<perm = [1,0]>(d) y = MatMul(x, t)";
  expect_fused({}, plain);
  expect_fused({true, {64, 6}, {1, 6}, "axis = -2, block_size = 64"}, plain);
  expect_fused({true, {64, 5}, {2, 5}, "axis = 0, block_size = 48"}, plain);  // odd, and cut in blocks of 16
  expect_fused({true, {64, 6}, {6}, "axis = 1"}, plain);
  expect_fused({true, {64, 6}, {1}, "axis = 0"}, plain);
  expect_fused({true, {6, 64}, {6, 2}, "axis = 1, block_size = 32"}, turned);
  expect_fused({true, {6, 64}, {6}, "axis = 0"}, turned);
  const std::string matrices = "float[A,64] x) => (float[C,D] y";
  expect_fused({}, "y = Gemm(x, d, b)", matrices, Shape{1, 64});
  expect_fused({true, {6, 64}, {6, 2}, "axis = 1, block_size = 32"}, "y = Gemm<transB = 1>(x, d)", matrices,
               Shape{3, 64});
}

TEST(FuseFourBitWeight, Embeddings) {
  const std::string io = "float[A,B,64] x, int64[N,M] i) => (float[C,D,E] y, float[N,M,F] rows";
  const std::string body = "rows = Gather(d, i) t = Transpose(d) y = MatMul(x, t)";
  expect_fused({true, {6, 64}, {6, 2}, "axis = 1, block_size = 32"}, body, io);
  expect_fused({true, {6, 64}, {6}, "axis = 0"}, body, io);
}

TEST(FuseFourBitWeight, KeepsWhatItCannotExpress) {
  const std::string matrices = "float[A,64] x) => (float[C,D] y";
  struct Case {
    FourBits q;
    std::string body, io = "float[A,B,64] x) => (float[C,D,E] y";
    Shape x = Shape{2, 3, 64};
  };
  const std::vector<Case> cases = {
      {{true, {64, 6}, {64}, "axis = 0"}, "y = MatMul(x, d)"},                        // a scale for each k
      {{true, {64, 32}, {64, 2}, "axis = 1, block_size = 16"}, "y = MatMul(x, d)"},   // blocks along n
      {{true, {64, 6}, {8, 6}, "axis = 0, block_size = 8"}, "y = MatMul(x, d)"},      // small blocks
      {{}, "p = MatMul(x, d) q = ReduceSum<keepdims = 0>(d) y = Add(p, q)"},          // another reader
      {{}, "y = MatMul(x, d)", "float[A,B,64] x) => (float[C,D,E] y, float[F,G] d"},  // an output
      {{}, "y = Gemm<alpha = 0.5>(x, d)", matrices, Shape{3, 64}},
      {{}, "y = Gemm<beta = 0.5>(x, d, b)", matrices, Shape{3, 64}},
      {{}, "y = Gemm(x, d, b2)", matrices, Shape{3, 64}},
      {{true, {64, 64}, {2, 64}, "axis = 0, block_size = 32"}, "y = Gemm<transB = 1>(x, d)", matrices, Shape{3, 64}},
      {{true, {64, 64}, {2, 64}, "axis = 0, block_size = 32"},
       "y = MatMul(d, x)",
       "float[64,64] x) => (float[C,D] y",
       Shape{64, 64}},
  };
  for (const Case& c : cases) {
    const Outcome outcome = four_bit_case(c.q, c.body, c.io, c.x);
    EXPECT_EQ(outcome.rewrites, 0) << c.body << " " << c.q.attributes;
    EXPECT_LT(outcome.error, 2e-6) << c.body;
  }
}

}  // namespace
}  // namespace epona
