#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "kernel_test_util.h"
#include "model_text.h"
#include "session/session.h"

namespace epona {
namespace {

std::string shape_text(const Shape& shape) {
  std::string text;
  for (int64_t d : shape) text += (text.empty() ? "" : ",") + std::to_string(d);
  return text;
}

/// A model in ONNX's text syntax with random constants.
class Model {
 public:
  explicit Model(std::string inputs) : inputs_(std::move(inputs)) {}
  Model& constant(const char* name, const Shape& shape, float low = -0.5f, float high = 0.5f) {
    std::string values;
    for (int64_t i = 0; i < shape.size(); ++i) {
      const float v = low + (high - low) * (random_.value() + 1) / 2;
      values += (i ? ", " : "") + std::to_string(v);
    }
    constants_ += std::string(constants_.empty() ? "" : ", ") + "float[" + shape_text(shape) + "] " + name + " = {" +
                  values + "}";
    return *this;
  }
  std::string text(const std::string& outputs, const std::string& body) const {
    return "<ir_version: 8, opset_import: [\"\" : 17]> g (" + inputs_ + ") => (" + outputs + ") <" + constants_ +
           "> { " + body + " }";
  }

 private:
  std::string inputs_, constants_;
  Random random_{11};
};

int rewrites(const Session& session, const std::string& pass) {
  for (const PassRecord& record : session.passes())
    if (record.name == pass) return record.rewrites;
  return -1;
}

/// Runs the model as it is and with all passes on the same input, at several sizes of the symbolic dims, and returns
/// how often the layout pass rewrote it.
int compare(const std::string& text, const std::vector<Shape>& inputs, int outputs = 1) {
  const std::string bytes = test::model_bytes(text);
  SessionOptions plain, all;
  plain.intra_op_threads = all.intra_op_threads = 2;
  plain.optimization_level = OptLevel::none;
  Session a(test::as_bytes(bytes), plain), b(test::as_bytes(bytes), all);
  Random random(3);
  for (const Shape& shape : inputs) {
    const std::vector<float> x = random.floats(shape.size());
    std::vector<RuntimeValue> in{Tensor::of<float>(shape, std::span<const float>(x))}, ya(outputs), yb(outputs);
    a.run_positional(in, ya);
    b.run_positional(in, yb);
    for (int o = 0; o < outputs; ++o) {
      EXPECT_EQ(ya[o].tensor.shape, yb[o].tensor.shape);
      if (!(ya[o].tensor.shape == yb[o].tensor.shape)) continue;
      const auto va = ya[o].tensor.span<float>(), vb = yb[o].tensor.span<float>();
      float worst = 0;
      for (size_t i = 0; i < va.size(); ++i) worst = std::max(worst, std::abs(va[i] - vb[i]) / (1 + std::abs(va[i])));
      EXPECT_LT(worst, 1e-4f) << "output " << o << " of input " << shape;
    }
  }
  return rewrites(b, "nchwc_layout");
}

TEST(NchwcLayout, ResidualBlockWithBatchNorm) {
  Model m("float[N,3,H,W] x");
  m.constant("w0", {24, 3, 3, 3}).constant("w1", {24, 24, 3, 3}).constant("w2", {24, 24, 1, 1}).constant("b", {24});
  m.constant("s", {24}, 0.5f, 1).constant("o", {24}).constant("mean", {24}).constant("var", {24}, 0.5f, 1);
  const std::string body =
      "c0 = Conv<pads = [1,1,1,1], strides = [2,2]>(x, w0, b) r0 = Relu(c0) c1 = Conv<pads = [1,1,1,1]>(r0, w1)"
      "n1 = BatchNormalization(c1, s, o, mean, var) r1 = Relu(n1) c2 = Conv(r1, w2, b) a = Add(r0, c2) r2 = Relu(a)"
      "p = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(r2) y = GlobalAveragePool(p)";
  EXPECT_GT(compare(m.text("float[N,24,1,1] y", body), {{1, 3, 17, 20}, {2, 3, 8, 9}, {1, 3, 17, 20}}), 8);
}

TEST(NchwcLayout, AddAfterActivationAndDifferentSizes) {
  Model m("float[1,16,6,7] x");
  m.constant("w", {16, 16, 3, 3}).constant("v", {16, 16, 6, 7}).constant("c", {16, 1, 1});
  const std::string body =
      "c0 = Conv<pads = [1,1,1,1]>(x, w) s = Sigmoid(c0) m = Mul(c0, s) a = Add(m, x) c1 = Conv(a, v) b = Add(a, c1)"
      "d = Sub(c, b) y = Div(d, c)";
  compare(m.text("float[1,16,6,7] y", body), {{1, 16, 6, 7}});
}

TEST(NchwcLayout, ConcatSplitShapesGroupsAndOneDim) {
  Model m("float[N,8,L] x");
  m.constant("w0", {24, 8, 3}).constant("w1", {20, 24, 1}).constant("dw", {24, 1, 5}).constant("g", {24, 6, 3});
  const std::string body =
      "c0 = Conv<pads = [1,1]>(x, w0) c1 = Conv(c0, w1) c2 = Conv<group = 24, pads = [2,2]>(c0, dw)"
      "c3 = Conv<group = 4, pads = [1,1]>(c2, g) k = Concat<axis = 1>(c1, c2, c3) q = HardSwish(k)"
      "sh = Shape(q) y = Reshape(q, sh)";
  EXPECT_GE(compare(m.text("float[N,68,L] y", body), {{2, 8, 19}, {1, 8, 5}}), 5);
}

TEST(NchwcLayout, ImagesOfOneColumn) {
  Model m("float[N,24,H,W] x");
  m.constant("w0", {48, 24, 5, 1}).constant("w1", {48, 1, 3, 1}).constant("w2", {40, 24, 3, 1}).constant("b", {48});
  const std::string body =
      "c0 = Conv<pads = [2,0,1,0], strides = [2,1]>(x, w0, b) c1 = Conv<group = 48, pads = [2,0,2,0], dilations = [2,1]>(c0, w1)"
      "c2 = Conv<group = 2>(c1, w2) y = Relu(c2)";
  EXPECT_GT(compare(m.text("float[N,C,I,J] y", body), {{1, 24, 77, 1}, {2, 24, 40, 1}, {1, 24, 33, 5}, {1, 24, 9, 1}}),
            0);
}

TEST(NchwcLayout, SqueezeAndExcite) {
  Model m("float[N,16,H,W] x");
  m.constant("w", {40, 16, 1, 1})
      .constant("d", {8, 40, 1, 1})
      .constant("u", {40, 8, 1, 1})
      .constant("k", {40, 1, 3, 3});
  const std::string body =
      "c = Conv(x, w) e = Conv<group = 40, pads = [1,1,1,1]>(c, k) p = ReduceMean<axes = [2,3]>(e) q = Conv(p, d)"
      "r = Relu(q) t = Conv(r, u) s = HardSigmoid<alpha = 0.2, beta = 0.5>(t) y = Mul(e, s)";
  EXPECT_EQ(compare(m.text("float[N,40,H,W] y", body), {{1, 16, 9, 5}, {2, 16, 4, 4}}), 8);
}

TEST(NchwcLayout, TransposedConvolutionAndResize) {
  for (int64_t channels : {1, 3, 16, 20}) {
    Model m("float[1,16,H,W] x");
    m.constant("w", {24, 16, 3, 3}).constant("t", {24, channels, 2, 2}).constant("b", {channels});
    const std::string c = std::to_string(channels);
    const std::string body =
        "c = Conv<pads = [1,1,1,1]>(x, w) sc = Constant<value = float[4] {1, 1, 2, 3}>() e = Constant<value = float[0] {}>()"
        "u = Resize<mode = \"nearest\", coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\">(c, e, sc)"
        "l = Resize<mode = \"linear\">(u, e, sc) y = ConvTranspose<strides = [2,2]>(l, t, b)";
    EXPECT_GE(compare(m.text("float[1," + c + ",P,Q] y", body), {{1, 16, 3, 4}, {1, 16, 5, 2}}), 2);
  }
}

TEST(NchwcLayout, AnInnerResultThatIsAlsoAnOutput) {
  Model m("float[1,16,H,W] x");
  m.constant("w", {16, 16, 3, 3});
  const std::string body = "a = Conv<pads = [1,1,1,1]>(x, w) b = Relu(a) y = Add(a, b)";
  compare(m.text("float[1,16,H,W] a, float[1,16,H,W] y", body), {{1, 16, 5, 6}}, 2);
}

TEST(NchwcLayout, LeavesAloneWhatItCannotDo) {
  {
    Model m("float[1,16,5,5] x");  // weights that are computed
    m.constant("w", {16, 16, 3, 3});
    EXPECT_EQ(compare(m.text("float[1,16,3,3] y", "z = ReduceMean(x) v = Mul(w, z) y = Conv(x, v)"), {{1, 16, 5, 5}}),
              0);
  }
  {
    Model m("float[1,16,5,5,5] x");  // three spatial dims
    m.constant("w", {16, 16, 3, 3, 3});
    EXPECT_EQ(compare(m.text("float[1,16,3,3,3] y", "y = Conv(x, w)"), {{1, 16, 5, 5, 5}}), 0);
  }
  {
    Model m("float[1,21,5,5] x");  // groups that do not fill blocks of 16
    m.constant("w", {14, 3, 3, 3});
    EXPECT_EQ(compare(m.text("float[1,14,3,3] y", "y = Conv<group = 7>(x, w)"), {{1, 21, 5, 5}}), 0);
  }
  {
    Model m("float[1,16,5,5] x");  // no convolution at all
    m.constant("w", {16, 1, 1});
    EXPECT_EQ(compare(m.text("float[1,16,1,1] y", "a = Add(x, w) y = GlobalAveragePool(a)"), {{1, 16, 5, 5}}), 0);
  }
}

TEST(FoldConvScale, OnlyWhatBroadcastsAlongChannels) {
  Model m("float[1,16,4,16] x");
  m.constant("w", {16, 16, 1, 1}).constant("c", {16, 1, 1}).constant("row", {16}).constant("q", {1, 16, 1, 1}, 1, 2);
  const std::string body = "a = Conv(x, w) b = Mul(a, c) d = Sub(c, b) e = Div(d, q) f = Add(e, row) y = Mul(f, c)";
  const std::string text = m.text("float[1,16,4,16] y", body);
  compare(text, {{1, 16, 4, 16}});
  const std::string bytes = test::model_bytes(text);
  EXPECT_EQ(rewrites(Session(test::as_bytes(bytes), SessionOptions()), "fold_conv_scale"), 3);
}

TEST(FuseActivation, SpellingsOfHardSwishAndSilu) {
  Model m("float[2,3] x");
  m.constant("k", {1});
  const std::string body =
      "three = Constant<value_float = 3.0>() zero = Constant<value_float = 0.0>() six = Constant<value_float = 6.0>()"
      "a = Add(x, three) c = Clip(a, zero, six) p = Mul(x, c) h = Div(p, six) s = Sigmoid(h) y = Mul(s, h)"
      "t = HardSigmoid(y) z = Mul(t, y) n = Mul(t, x)";
  const std::string text = m.text("float[2,3] z, float[2,3] n", body);
  compare(text, {{2, 3}}, 2);
  const std::string bytes = test::model_bytes(text);
  // The last gate has two readers: it stays.
  EXPECT_EQ(rewrites(Session(test::as_bytes(bytes), SessionOptions()), "fuse_activation"), 2);
}

}  // namespace
}  // namespace epona
