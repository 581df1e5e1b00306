#include "ops/registry.h"
#include "ops/rnn/lstm.h"

namespace epona {
namespace {

/// DynamicQuantizeLSTM: an LSTM whose constant weights are int8 or uint8, {directions, input, gates}. They are brought
/// back to float once; the activations are not quantised, so the result is that of the float model.
class DynamicQuantizeLstm final : public Recurrent<LstmCell> {
 public:
  explicit DynamicQuantizeLstm(const NodeInfo& info) : Recurrent(info, {"Sigmoid", "Tanh", "Tanh"}) {
    const Tensor *w = info.constant(kW), *r = info.constant(kR);
    if (!w || !r) info.refuse(Code::not_implemented, "weights that are not constant");
    if (w->shape.rank() != 3 || r->shape.rank() != 3 || w->shape[0] != directions_ || r->shape[0] != directions_ ||
        w->shape[2] != 4 * r->shape[1] || r->shape[2] != 4 * r->shape[1])
      info.refuse(Code::invalid_graph, "weights have shapes ", w->shape, " and ", r->shape);
    input_ = w->shape[1];
    hidden_ = r->shape[1];
    allocate_packed(input_, hidden_);
    const int64_t gates = 4 * hidden_;
    std::vector<float> dense_w(static_cast<size_t>(input_ * gates)), dense_r(static_cast<size_t>(hidden_ * gates));
    for (int d = 0; d < directions_; ++d) {
      dequantize(info, *w, kScaleW, d, input_, gates, dense_w.data());
      dequantize(info, *r, kScaleR, d, hidden_, gates, dense_r.data());
      pack(dense_w.data(), dense_r.data(), true, input_, hidden_,
           packed_.as<float>() + static_cast<int64_t>(packed_floats(input_, hidden_)) * d);
    }
  }

 private:
  static constexpr int kScaleW = 8, kScaleR = 10;  // each followed by its zero point

  int64_t hidden_size(const ShapeContext&) const override { return hidden_; }
  int64_t hidden_size(const RunContext&) const override { return hidden_; }
  void check_weights(const ShapeContext& c, const Sizes& s) const override {
    if (s.input != input_) c.refuse("X has shape ", c.in(0), " but the weights are for inputs of ", input_);
  }

  void dequantize(const NodeInfo& info, const Tensor& q, int scale_input, int d, int64_t rows, int64_t gates,
                  float* out) const {
    const Tensor *scale = info.constant(scale_input), *zero = info.constant(scale_input + 1);
    if (!scale || (info.has(scale_input + 1) && !zero))
      info.refuse(Code::not_implemented, "scales that are not constant");
    const int64_t per = scale->size() / directions_;
    if (scale->type != DataType::float32 || scale->size() != per * directions_ || (per != 1 && per != gates) ||
        (zero && (zero->size() != scale->size() || zero->type != q.type)))
      info.refuse(Code::invalid_graph, "scale or zero point of input ", scale_input, " does not fit");
    const float* scales = scale->as<float>() + d * per;
    const bool is_signed = q.type == DataType::int8;
    const uint8_t* data = q.as<uint8_t>() + d * rows * gates;
    const uint8_t* zeros = zero ? zero->as<uint8_t>() + d * per : nullptr;
    auto number = [&](uint8_t v) { return is_signed ? int{static_cast<int8_t>(v)} : int{v}; };
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < gates; ++j) {
        const int64_t k = per == 1 ? 0 : j;
        out[i * gates + j] =
            static_cast<float>(number(data[i * gates + j]) - (zeros ? number(zeros[k]) : 0)) * scales[k];
      }
  }

  int64_t input_, hidden_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(dynamic_quantize_lstm) {
  r.add({.name = "DynamicQuantizeLSTM", .domain = "com.microsoft", .make = make_kernel<DynamicQuantizeLstm>});
}
