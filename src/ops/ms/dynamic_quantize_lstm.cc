#include "base/weight_memory.h"
#include "kernels/gemm_int8.h"
#include "kernels/quantize.h"
#include "ops/registry.h"
#include "ops/rnn/lstm.h"

namespace epona {
namespace {

size_t round_up(size_t bytes) { return FloatIo::align(bytes); }

/// A constant int8 or uint8 weight of one direction, packed, with its scales and zero points: one, or one per column.
struct QuantizedWeight {
  const void* packed;
  int64_t k, n;
  bool is_signed;
  const float* scale;
  const uint8_t* zero;  ///< null when all are 0
  int64_t stride;
};

/// The product of a float matrix, quantised to uint8 by its range, with a quantised weight; sums are exact integers.
struct QuantizedProduct {
  QuantizedWeight weight;
  bool by_row;  ///< each row is quantised by its own range
  char* scratch;

  static size_t bytes(int64_t rows, int64_t k, int64_t n) {
    const auto count = static_cast<size_t>(rows);
    return round_up(count * 4) + round_up(count) + round_up(static_cast<size_t>(checked_mul(rows, k))) +
           round_up(gemm_int8_workspace(rows, n, k, true));
  }
  void run(const float* x, int64_t rows, float* y, const float* bias, ThreadPool& pool) const {
    const auto count = static_cast<size_t>(rows);
    auto* const scales = reinterpret_cast<float*>(scratch);
    auto* const zeros = reinterpret_cast<uint8_t*>(scratch + round_up(count * 4));
    uint8_t* const codes = zeros + round_up(count);
    const bool split = by_row && rows > 1;
    const int64_t parts = split ? rows : 1, size = split ? weight.k : rows * weight.k;
    for (int64_t i = 0; i < parts; ++i) {
      const float* part = x + i * size;
      const DynamicScale dynamic = dynamic_scale(value_range(part, size, pool));
      scales[i] = dynamic.scale;
      zeros[i] = static_cast<uint8_t>(dynamic.zero);
      pool.parallel_for(size, 0.3, [&](int64_t begin, int64_t end) {
        quantize_bytes(part + begin, {&dynamic.scale, &dynamic.zero, 0}, false, codes + i * size + begin, end - begin);
      });
    }
    Int8Gemm g;
    g.m = rows, g.n = weight.n, g.k = weight.k;
    g.a = codes, g.lda = weight.k;
    g.b = weight.packed, g.b_signed = weight.is_signed;
    g.a_zero = zeros, g.a_zero_stride = split ? 1 : 0;
    g.b_zero = weight.zero, g.b_zero_stride = weight.stride;
    g.output = Int8Output::f32;
    g.c = y, g.ldc = weight.n;
    g.scale = weight.scale, g.scale_stride = weight.stride, g.a_scale = scales[0];
    if (split) g.a_scales = scales;
    g.bias = bias;
    gemm_int8(g, codes + round_up(static_cast<size_t>(rows * weight.k)), pool);
  }
};

/// An LSTM whose constant weights are int8 or uint8, {directions, input, gates}. The input is quantised as
/// DynamicQuantizeLinear does, all of it at once, and so is the state at every step, each batch entry by itself.
class DynamicQuantizeLstm final : public Recurrent<LstmCell> {
 public:
  explicit DynamicQuantizeLstm(const NodeInfo& info) : Recurrent(info, {"Sigmoid", "Tanh", "Tanh"}) {
    if (info.in_type(0) != DataType::float32) info.refuse(Code::not_implemented, "type ", info.in_type(0));
    const Tensor *w = info.constant(kW), *r = info.constant(kR);
    if (!w || !r) info.refuse(Code::not_implemented, "weights that are not constant");
    if (w->shape.rank() != 3 || r->shape.rank() != 3 || w->shape[0] != directions_ || r->shape[0] != directions_ ||
        w->shape[2] != 4 * r->shape[1] || r->shape[2] != 4 * r->shape[1])
      info.refuse(Code::invalid_graph, "weights have shapes ", w->shape, " and ", r->shape);
    input_ = w->shape[1];
    hidden_ = r->shape[1];
    w_ = Weights(info, *w, kScaleW);
    r_ = Weights(info, *r, kScaleR);
  }

  void run(const RunContext& c) const override {
    const Sizes s = sizes(c);
    FloatIo io(c, own_bytes(s, 4));
    compute<float>(c, io, s, [&](const Sizes&, int64_t d, float* scratch) {
      char* const memory = reinterpret_cast<char*>(scratch);
      return Products{{w_.direction(d), false, memory}, {r_.direction(d), true, memory}, {}};
    });
  }

  bool reads_constant(int input) const override { return input < kW || input > kR; }

 private:
  static constexpr int kScaleW = 8, kScaleR = 10;  // each followed by its zero point

  struct Products {
    QuantizedProduct x, first, second;
  };

  /// W or R for all directions.
  class Weights {
   public:
    Weights() = default;
    Weights(const NodeInfo& info, const Tensor& q, int scale_input)
        : k_(q.shape[1]), n_(q.shape[2]), is_signed_(q.type == DataType::int8) {
      const Tensor *scale = info.constant(scale_input), *zero = info.constant(scale_input + 1);
      if (!scale || (info.has(scale_input + 1) && !zero))
        info.refuse(Code::not_implemented, "scales that are not constant");
      const int64_t directions = q.shape[0], per = scale->size() / directions;
      if (scale->type != DataType::float32 || scale->size() != per * directions || (per != 1 && per != n_) ||
          (zero && (zero->size() != scale->size() || zero->type != q.type)))
        info.refuse(Code::invalid_graph, "scale or zero point of input ", scale_input, " does not fit");
      stride_ = per == 1 ? 0 : 1;
      scales_.assign(scale->as<float>(), scale->as<float>() + scale->size());
      if (zero) zeros_.assign(zero->as<uint8_t>(), zero->as<uint8_t>() + zero->size());
      if (std::all_of(zeros_.begin(), zeros_.end(), [](uint8_t z) { return z == 0; })) zeros_.clear();
      bytes_ = round_up(packed_b_int8_bytes(k_, n_));
      packed_ = allocate_weights(bytes_ * static_cast<size_t>(directions));
      for (int64_t d = 0; d < directions; ++d)
        pack_b_int8(k_, n_, q.as<uint8_t>() + d * k_ * n_, n_, false, is_signed_, at(d));
    }
    QuantizedWeight direction(int64_t d) const {
      const int64_t first = d * (stride_ ? n_ : 1);
      return {at(d),  k_, n_, is_signed_, scales_.data() + first, zeros_.empty() ? nullptr : zeros_.data() + first,
              stride_};
    }

   private:
    char* at(int64_t d) const { return static_cast<char*>(packed_.get()) + bytes_ * static_cast<size_t>(d); }

    int64_t k_ = 0, n_ = 0, stride_ = 0;
    bool is_signed_ = false;
    std::vector<float> scales_;
    std::vector<uint8_t> zeros_;
    size_t bytes_ = 0;
    std::shared_ptr<void> packed_;
  };

  int64_t hidden_size(const ShapeContext&) const override { return hidden_; }
  int64_t hidden_size(const RunContext&) const override { return hidden_; }
  void check_weights(const ShapeContext& c, const Sizes& s) const override {
    if (s.input != input_) c.refuse("X has shape ", c.in(0), " but the weights are for inputs of ", input_);
  }
  size_t product_bytes(const Sizes& s, size_t) const override {
    return std::max(QuantizedProduct::bytes(checked_mul(s.length, s.batch), s.input, 4 * s.hidden),
                    QuantizedProduct::bytes(s.batch, s.hidden, 4 * s.hidden));
  }

  int64_t input_, hidden_;
  Weights w_, r_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(dynamic_quantize_lstm) {
  r.add({.name = "DynamicQuantizeLSTM", .domain = "com.microsoft", .make = make_kernel<DynamicQuantizeLstm>});
}
