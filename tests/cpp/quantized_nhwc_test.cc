// Quantised convolution nets: rewritten to integers they give what the graph as written gives, up to a step where a sum
// lies between two; graphs that look alike and are not must stay.
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "kernel_test_util.h"
#include "model_text.h"
#include "session/session.h"

namespace epona {
namespace {

std::string list(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& v : values) text += (text.empty() ? "" : ",") + v;
  return text;
}

class Model {
 public:
  explicit Model(std::string inputs, int opset = 17) : inputs_(std::move(inputs)), opset_(opset) {}
  Model& bytes(const char* name, const char* type, const std::vector<int64_t>& dims, int low, int high) {
    int64_t size = 1;
    std::vector<std::string> shape, values;
    for (int64_t d : dims) shape.push_back(std::to_string(d)), size *= d;
    for (int64_t i = 0; i < size; ++i) values.push_back(std::to_string(low + random_.below(high - low + 1)));
    return add(std::string(type) + "[" + list(shape) + "] " + name + " = {" + list(values) + "}");
  }
  Model& floats(const char* name, int64_t count, float low, float high) {
    std::vector<std::string> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(std::to_string(low + (high - low) * (random_.value() + 1) / 2));
    return add("float[" + std::to_string(count) + "] " + name + " = {" + list(values) + "}");
  }
  Model& add(const std::string& constant) {
    constants_ += (constants_.empty() ? "" : ", ") + constant;
    return *this;
  }
  std::string text(const std::string& outputs, const std::string& body) const {
    return "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset_) + ", \"com.microsoft\" : 1]> g (" +
           inputs_ + ") => (" + outputs + ") <" + constants_ + "> { " + body + " }";
  }

 private:
  std::string inputs_, constants_;
  int opset_;
  Random random_{11};
};

/// Constants that most models here use.
Model usual(const char* inputs = "float[N,3,H,W] x", const char* zero_type = "uint8", int opset = 17) {
  Model m(inputs, opset);
  m.add("float s0 = {0.02}").add("float s1 = {0.05}").add("float s2 = {0.04}");
  const std::string t = zero_type;
  m.add(t + " z0 = {17}").add(t + " z1 = {0}").add(t + " z2 = {103}").add("int8 wz = {0}").add("float ws = {0.01}");
  return m;
}

struct Outcome {
  int rewrites = -1;
  float worst = 0;   ///< largest difference
  double share = 0;  ///< of elements that differ
};

Outcome compare(const std::string& text, const std::vector<Shape>& inputs) {
  const std::string bytes = test::model_bytes(text);
  SessionOptions plain, all;
  plain.intra_op_threads = all.intra_op_threads = 2;
  plain.optimization_level = OptLevel::none;
  Session a(test::as_bytes(bytes), plain), b(test::as_bytes(bytes), all);
  Random random(3);
  Outcome outcome;
  int64_t different = 0, total = 0;
  for (const Shape& shape : inputs) {
    std::vector<float> x = random.floats(shape.size());
    for (float& v : x) v *= 3;
    std::vector<RuntimeValue> in{Tensor::of<float>(shape, std::span<const float>(x))};
    std::vector<RuntimeValue> ya(a.outputs().size()), yb(a.outputs().size());
    a.run_positional(in, ya);
    b.run_positional(in, yb);
    for (size_t o = 0; o < ya.size(); ++o) {
      EXPECT_EQ(ya[o].tensor.shape, yb[o].tensor.shape);
      EXPECT_EQ(ya[o].tensor.type, yb[o].tensor.type);
      if (!(ya[o].tensor.shape == yb[o].tensor.shape) || ya[o].tensor.type != yb[o].tensor.type) continue;
      for (int64_t i = 0; i < ya[o].tensor.size(); ++i, ++total) {
        float va, vb;
        if (ya[o].tensor.type == DataType::float32)
          va = ya[o].tensor.as<float>()[i], vb = yb[o].tensor.as<float>()[i];
        else if (ya[o].tensor.type == DataType::int8)
          va = ya[o].tensor.as<int8_t>()[i], vb = yb[o].tensor.as<int8_t>()[i];
        else
          va = ya[o].tensor.as<uint8_t>()[i], vb = yb[o].tensor.as<uint8_t>()[i];
        outcome.worst = std::max(outcome.worst, std::abs(va - vb));
        different += va != vb;
      }
    }
  }
  outcome.share = total ? static_cast<double>(different) / static_cast<double>(total) : 0;
  for (const PassRecord& record : b.passes())
    if (record.name == "quantized_nhwc") outcome.rewrites = record.rewrites;
  return outcome;
}

/// Equal but for a few values that are one step (`step`) apart.
void expect_same(const Outcome& o, float step, int rewrites) {
  EXPECT_EQ(o.rewrites, rewrites);
  EXPECT_LE(o.worst, step * 1.001f);
  EXPECT_LE(o.share, 0.01);
}

const std::vector<Shape> kImages = {{1, 3, 9, 11}, {2, 3, 16, 7}};

TEST(QuantizedNhwc, ConvolutionsWithClampsResidualAndPools) {
  Model m = usual();
  m.bytes("w0", "int8", {16, 3, 3, 3}, -127, 127)
      .floats("ws0", 16, 0.001f, 0.01f)
      .bytes("b0", "int32", {16}, -500, 500);
  m.bytes("w1", "int8", {16, 16, 1, 1}, -127, 127).bytes("wd", "int8", {16, 1, 3, 3}, -127, 127);
  m.floats("bf", 16, -1, 1).floats("bs0", 16, 0.0002f, 0.0002f);
  m.add("float six = {6}").add("float nought = {0}");
  const std::string body =
      "xq = QuantizeLinear(x, s0, z0) xd = DequantizeLinear(xq, s0, z0)"
      "w0d = DequantizeLinear<axis = 0>(w0, ws0) b0d = DequantizeLinear<axis = 0>(b0, bs0)"
      "c0 = Conv<pads = [1,0,2,1], strides = [2,1]>(xd, w0d, b0d) r0 = Relu(c0)"
      "q0 = QuantizeLinear(r0, s1, z1) d0 = DequantizeLinear(q0, s1, z1)"
      "wdd = DequantizeLinear<axis = 0>(wd, ws, wz) c1 = Conv<group = 16, pads = [1,1,1,1]>(d0, wdd)"
      "cl = Clip(c1, nought, six) q1 = QuantizeLinear(cl, s2, z2) d1 = DequantizeLinear(q1, s2, z2)"
      "w1d = DequantizeLinear<axis = 0>(w1, ws, wz) c2 = Conv(d1, w1d, bf) q2 = QuantizeLinear(c2, s2, z2)"
      "d2 = DequantizeLinear(q2, s2, z2) a = Add(d2, d0) ra = Relu(a) q3 = QuantizeLinear(ra, s1, z1)"
      "d3 = DequantizeLinear(q3, s1, z1) mp = MaxPool<kernel_shape = [3,2], strides = [2,1], pads = [1,0,1,1]>(d3)"
      "q4 = QuantizeLinear(mp, s1, z1) d4 = DequantizeLinear(q4, s1, z1)"
      "ap = AveragePool<kernel_shape = [2,2], pads = [0,1,0,0]>(d4) q5 = QuantizeLinear(ap, s2, z2)"
      "d5 = DequantizeLinear(q5, s2, z2) gp = GlobalAveragePool(d5) q6 = QuantizeLinear(gp, s0, z0)"
      "y = DequantizeLinear(q6, s0, z0) y2 = DequantizeLinear(q3, s1, z1)";
  // Both outputs: the image in the middle has to come back as NCHW.
  expect_same(compare(m.text("float[N,16,A,B] y, float[N,16,C,D] y2", body), kImages), 0.05f, 7);
}

TEST(QuantizedNhwc, SignedTypesAndWeightsWithZeroPoints) {
  Model m = usual("float[N,3,H,W] x", "int8");
  m.bytes("w0", "uint8", {8, 3, 3, 3}, 0, 255).floats("ws0", 8, 0.001f, 0.01f).bytes("wz0", "uint8", {8}, 100, 150);
  m.bytes("w1", "int8", {24, 8, 5, 1}, -128, 127).add("int8 wz1 = {-7}");
  const std::string body =
      "xq = QuantizeLinear(x, s0, z0) xd = DequantizeLinear(xq, s0, z0) w0d = DequantizeLinear<axis = -4>(w0, ws0, wz0)"
      "c0 = Conv<auto_pad = \"SAME_UPPER\", dilations = [1,2]>(xd, w0d) q0 = QuantizeLinear(c0, s1, z1)"
      "d0 = DequantizeLinear(q0, s1, z1) w1d = DequantizeLinear(w1, ws, wz1)"
      "c1 = Conv<auto_pad = \"SAME_LOWER\">(d0, w1d) y = QuantizeLinear(c1, s2, z2)";
  expect_same(compare(m.text("int8[N,24,A,B] y", body), kImages), 1, 2);
}

TEST(QuantizedNhwc, OneSpatialDim) {
  Model m = usual("float[N,3,W] x");
  m.bytes("w0", "int8", {8, 3, 5}, -127, 127);
  const std::string body =
      "xq = QuantizeLinear(x, s0, z0) xd = DequantizeLinear(xq, s0, z0) w0d = DequantizeLinear<axis = 0>(w0, ws, wz)"
      "c0 = Conv<pads = [3,1]>(xd, w0d) q0 = QuantizeLinear(c0, s1, z1) d0 = DequantizeLinear(q0, s1, z1)"
      "p = MaxPool<kernel_shape = [2]>(d0) y = QuantizeLinear(p, s1, z1)";
  expect_same(compare(m.text("uint8[N,8,A] y", body), {{1, 3, 9}, {3, 3, 30}}), 1, 2);
}

TEST(QuantizedNhwc, OperatorsOnIntegers) {
  Model m = usual();
  m.bytes("w0", "int8", {16, 3, 3, 3}, -127, 127)
      .floats("ws0", 16, 0.001f, 0.01f)
      .bytes("b0", "int32", {16}, -500, 500);
  m.bytes("wz0", "int8", {16}, 0, 0).bytes("w1", "int8", {10, 16}, -127, 127).bytes("b1", "int32", {10}, -500, 500);
  const std::string body =
      "xq = QuantizeLinear(x, s0, z0) c = QLinearConv<pads = [1,1,1,1]>(xq, s0, z0, w0, ws0, wz0, s1, z1, b0)"
      "p = MaxPool<kernel_shape = [2,2], strides = [2,2]>(c)"
      "a = com.microsoft.QLinearAdd(p, s1, z1, p, s1, z1, s2, z2)"
      "g = com.microsoft.QLinearGlobalAveragePool<channels_last = 0>(a, s2, z2, s0, z0) f = Flatten(g)"
      "y = com.microsoft.QGemm<transB = 1>(f, s0, z0, w1, ws, wz, b1, s2, z2)";
  expect_same(compare(m.text("uint8[N,10] y", body), kImages), 1, 5);
}

TEST(QuantizedNhwc, MatMulAndReshapeBehindAConvolution) {
  Model m = usual("float[N,3,8,8] x");
  m.bytes("w0", "int8", {4, 3, 8, 8}, -127, 127).bytes("w1", "int8", {4, 6}, -127, 127).floats("ws1", 6, 0.001f, 0.01f);
  m.add("int64[2] to = {-1, 4}");
  const std::string body =
      "xq = QuantizeLinear(x, s0, z0) xd = DequantizeLinear(xq, s0, z0) w0d = DequantizeLinear<axis = 0>(w0, ws, wz)"
      "c0 = Conv(xd, w0d) q0 = QuantizeLinear(c0, s1, z2) d0 = DequantizeLinear(q0, s1, z2) r = Reshape(d0, to)"
      "q1 = QuantizeLinear(r, s1, z2) d1 = DequantizeLinear(q1, s1, z2) w1d = DequantizeLinear(w1, ws1)"
      "mm = MatMul(d1, w1d) q2 = QuantizeLinear(mm, s2, z2) y = DequantizeLinear(q2, s2, z2)";
  expect_same(compare(m.text("float[N,6] y", body), {{1, 3, 8, 8}, {5, 3, 8, 8}}), 0.04f, 3);
}

/// What has to stay as it is: how many operations are rewritten all the same.
int kept(const std::string& body, const std::string& outputs = "float[N,16,A,B] y", int opset = 17) {
  Model m = usual("float[N,3,H,W] x", "uint8", opset);
  m.bytes("w0", "int8", {16, 3, 3, 3}, -127, 127).floats("ws16", 16, 0.001f, 0.01f).floats("ws3", 3, 0.001f, 0.01f);
  m.bytes("wz3", "int8", {3}, -3, 3).floats("bf", 16, -1, 1).add("float tiny = {0.0001}").add("float big = {1000}");
  m.bytes("z16", "uint8", {16}, 0, 9).bytes("w2", "int8", {3, 3, 3, 3}, -127, 127);
  const Outcome o = compare(m.text(outputs, body), kImages);
  EXPECT_LE(o.worst, 0.051f) << body;
  return o.rewrites;
}

TEST(QuantizedNhwc, KeepsWhatOnlyLooksAlike) {
  const std::string x = "xq = QuantizeLinear(x, s0, z0) xd = DequantizeLinear(xq, s0, z0) ";
  const std::string w = "w0d = DequantizeLinear<axis = 0>(w0, ws16) ";
  const std::string end = "q = QuantizeLinear(c, s1, z1) y = DequantizeLinear(q, s1, z1)";
  EXPECT_EQ(kept(x + w + "c = Conv(xd, w0d) " + end), 1);
  // The float value has another reader, or is an output.
  EXPECT_EQ(kept(x + w + "c = Conv(xd, w0d) " + end + " y2 = Neg(c)", "float[N,16,A,B] y, float[N,16,A,B] y2"), 0);
  EXPECT_EQ(kept(x + w + "c = Conv(xd, w0d) " + end, "float[N,16,A,B] y, float[N,16,A,B] c"), 0);
  // The image of floats is an output as well: the integers still do.
  EXPECT_EQ(kept(x + w + "c = Conv(xd, w0d) " + end, "float[N,16,A,B] y, float[N,3,H,W] xd, uint8[N,3,H,W] xq"), 1);
  // Scales along input channels.
  EXPECT_EQ(kept(x + "w0d = DequantizeLinear<axis = 1>(w2, ws3, wz3) c = Conv(xd, w0d) " + end, "float[N,3,A,B] y"), 0);
  // Weights that are computed, and an input that is not quantised.
  EXPECT_EQ(kept(x + "w0d = Identity(w0) wn = Cast<to = 1>(w0d) c = Conv(xd, wn) " + end), 0);
  EXPECT_EQ(kept(w + "c = Conv(x, w0d) " + end), 0);
  // Another function between the product and its quantisation.
  EXPECT_EQ(kept(x + w + "c0 = Conv(xd, w0d) c = Sigmoid(c0) " + end), 0);
  // A bias too fine for the sums of a coarse unit.
  EXPECT_EQ(kept("xq = QuantizeLinear(x, s0, z0) xd = DequantizeLinear(xq, big, z0) w0d = DequantizeLinear(w0, s1) c = "
                 "Conv(xd, w0d, bf)"
                 "q = QuantizeLinear(c, s1, z1) y = DequantizeLinear(q, s1, z1)"),
            0);
  // MaxPool between different scales, and pooled twins whose zero points differ.
  EXPECT_EQ(kept(x + w +
                 "c = Conv(xd, w0d) q0 = QuantizeLinear(c, s1, z1) d = DequantizeLinear(q0, s1, z1) "
                 "p = MaxPool<kernel_shape = [2,2]>(d) q = QuantizeLinear(p, s2, z1) y = DequantizeLinear(q, s2, z1)"),
            1);
  EXPECT_EQ(kept(x + w +
                 "c = Conv(xd, w0d) q0 = QuantizeLinear(c, s1, z1) d = DequantizeLinear(q0, s1, z1) "
                 "p = MaxPool<kernel_shape = [2,2]>(d) q = QuantizeLinear(p, s1, z2) y = DequantizeLinear(q, s1, z2)"),
            1);
  // A quantised output per channel.
  EXPECT_EQ(
      kept(x + w +
           "c = Conv(xd, w0d) q = QuantizeLinear<axis = 1>(c, ws16, z16) y = DequantizeLinear<axis = 1>(q, ws16, z16)"),
      0);
}

TEST(QuantizedNhwc, FunctionsProductsAndConcatenations) {
  Model m = usual();
  m.bytes("w0", "int8", {16, 3, 3, 3}, -127, 127).add("float sh = {0.0039}").add("int8 zi = {-11}");
  // A squeeze-and-excitation block and two branches, one of them quantised otherwise.
  const std::string body =
      "xq = QuantizeLinear(x, s0, z0) xd = DequantizeLinear(xq, s0, z0) w0d = DequantizeLinear<axis = 0>(w0, ws, wz)"
      "c0 = Conv(xd, w0d) q0 = QuantizeLinear(c0, s1, z2) d0 = DequantizeLinear(q0, s1, z2)"
      "hs = HardSwish(d0) lr = LeakyRelu(hs) q1 = QuantizeLinear(lr, s2, z2) d1 = DequantizeLinear(q1, s2, z2)"
      "g = GlobalAveragePool(d1) q2 = QuantizeLinear(g, s2, z2) d2 = DequantizeLinear(q2, s2, z2) sg = Sigmoid(d2)"
      "q3 = QuantizeLinear(sg, sh, z1) d3 = DequantizeLinear(q3, sh, z1) p = Mul(d1, d3) q4 = QuantizeLinear(p, s2, zi)"
      "d4 = DequantizeLinear(q4, s2, zi) cc = Concat<axis = -3>(d4, d1, d0) q5 = QuantizeLinear(cc, s1, z2)"
      "y = DequantizeLinear(q5, s1, z2)";
  // A step of the first image is up to two of its function.
  expect_same(compare(m.text("float[N,48,A,B] y", body), kImages), 0.1f, 6);
}

TEST(QuantizedNhwc, AddThatBroadcasts) {
  Model m = usual();
  m.bytes("w0", "int8", {16, 3, 1, 1}, -127, 127);
  const std::string body =
      "xq = QuantizeLinear(x, s0, z0) xd = DequantizeLinear(xq, s0, z0) w0d = DequantizeLinear<axis = 0>(w0, ws, wz)"
      "c0 = Conv(xd, w0d) q0 = QuantizeLinear(c0, s1, z1) d0 = DequantizeLinear(q0, s1, z1) g = GlobalAveragePool(d0)"
      "q1 = QuantizeLinear(g, s1, z1) d1 = DequantizeLinear(q1, s1, z1) a = Add(d0, d1) q2 = QuantizeLinear(a, s2, z2)"
      "y = DequantizeLinear(q2, s2, z2)";
  // A step of the mean (0.05) is up to two of the sum.
  expect_same(compare(m.text("float[N,16,A,B] y", body), kImages), 0.08f, 3);
}

}  // namespace
}  // namespace epona
