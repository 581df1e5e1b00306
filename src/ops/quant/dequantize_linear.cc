#include "ops/quant/quant_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// y = (x - zero_point) * scale.
class DequantizeLinear final : public Kernel {
 public:
  explicit DequantizeLinear(const NodeInfo& info) : axis_(info.attr("axis", 1)), block_(info.attr("block_size", 0)) {
    DataType type = info.in_type(0);
    QuantRange range;
    real_ = is_small_float(type);
    if (!real_ && type != DataType::int32 && !quant_range(type, range))
      info.refuse(Code::not_implemented, "input type ", type);
  }
  void shapes(ShapeContext& c) const override {
    ScaleMap(c.node(), c.in(0), c.in(1), axis_, block_);
    if (c.has(2) && c.in(2).size() != c.in(1).size())
      c.refuse("zero point of shape ", c.in(2), " and scale of shape ", c.in(1), " differ");
    c.out(0, c.in(0));
  }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const ScaleMap map(c.node(), x.shape, c.in(1).shape, axis_, block_);
    const int64_t size = x.size(), blocks = (size + kConvertBlock - 1) / kConvertBlock;
    c.pool().parallel_for(blocks, kConvertBlock * 1.5, [&](int64_t first, int64_t last) {
      float buffer[kConvertBlock];
      map.walk(first * kConvertBlock, std::min(last * kConvertBlock, size),
               [&](int64_t at, int64_t scale, int64_t step, int64_t run) {
                 for (int64_t done = 0, n; done < run; done += n) {
                   n = std::min(kConvertBlock, run - done);
                   float* to = y.type == DataType::float32 ? y.as<float>() + at + done : buffer;
                   block(c, at + done, scale + done * step, step, n, to);
                   if (to == buffer)
                     convert_elements(
                         DataType::float32, buffer, y.type,
                         static_cast<char*>(y.data) + static_cast<size_t>(at + done) * type_bits(y.type) / 8, 0, n);
                 }
               });
    });
  }

 private:
  /// n elements from `at` on.
  void block(const RunContext& c, int64_t at, int64_t scale, int64_t step, int64_t n, float* to) const {
    const Tensor &x = c.in(0), &s = c.in(1);
    float scales[kConvertBlock];
    const int64_t loaded = step ? n : 1;
    convert_elements(s.type, static_cast<const char*>(s.data) + static_cast<size_t>(scale) * type_bits(s.type) / 8,
                     DataType::float32, scales, 0, loaded);
    if (real_) {
      uint8_t codes[kConvertBlock];
      const uint8_t* code = x.as<uint8_t>() + at;
      if (is_subbyte(x.type)) {
        unpack_elements(x.type, x.data, at, n, codes);
        code = codes;
      }
      const float* table = small_float_table(x.type);
      for (int64_t i = 0; i < n; ++i) to[i] = table[code[i]] * scales[i * step];
      return;
    }
    int32_t values[kConvertBlock], zeros[kConvertBlock] = {0};
    load_quantized(x.type, x.data, at, n, values);
    if (c.has(2)) load_quantized(c.in(2).type, c.in(2).data, scale, loaded, zeros);
    if (step && c.has(2)) {
      for (int64_t i = 0; i < n; ++i) to[i] = difference(values[i], zeros[i]) * scales[i];
    } else if (step) {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(values[i]) * scales[i];
    } else {
      const int32_t zero = zeros[0];
      const float factor = scales[0];
      for (int64_t i = 0; i < n; ++i) to[i] = difference(values[i], zero) * factor;
    }
  }

  static float difference(int32_t value, int32_t zero) {
    return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(value) - static_cast<uint32_t>(zero)));
  }

  int64_t axis_, block_;
  bool real_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(dequantize_linear) {
  r.add({.name = "DequantizeLinear", .since = 10, .make = make_kernel<DequantizeLinear>});
  r.add({.name = "DequantizeLinear", .domain = "com.microsoft", .make = make_kernel<DequantizeLinear>});
}
