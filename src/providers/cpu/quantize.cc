#include "kernels/quantize.h"

#include "base/half_block.h"
#include "ops/quant/quant_common.h"
#include "ops/type_attribute.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

bool is_byte(DataType type) { return type == DataType::uint8 || type == DataType::int8; }
bool is_short_float(DataType type) { return type == DataType::float32 || is_half(type); }

/// Elements converted at a time when some step needs a buffer; scales are loaded for as many.
constexpr int64_t kBlock = kConvertBlock;

/// Scales and zero points of inputs 1 and 2 in the form that the vector kernels take.
struct Scales {
  float scale[kBlock];
  int32_t zero[kBlock];

  QuantScales load(const RunContext& c, int64_t at, int64_t step, int64_t count) {
    const Tensor& s = c.in(1);
    const int64_t n = step ? count : 1;
    const size_t offset = static_cast<size_t>(at) * type_bits(s.type) / 8;
    convert_elements(s.type, s.as<char>() + offset, DataType::float32, scale, 0, n);
    if (c.has(2)) load_quantized(c.in(2).type, c.in(2).data, at, n, zero);
    return {scale, c.has(2) ? zero : nullptr, step};
  }
};

/// Calls fn(at, scales, count) for the elements [begin, end): runs with one scale as long as they are when `whole`, and
/// at most kBlock elements otherwise.
template <class F>
void walk(const RunContext& c, const ScaleMap& map, int64_t begin, int64_t end, bool whole, F&& fn) {
  Scales buffer;
  map.walk(begin, end, [&](int64_t at, int64_t scale, int64_t step, int64_t count) {
    QuantScales scales;
    for (int64_t done = 0, n; done < count; done += n) {
      n = whole && !step ? count : std::min(kBlock, count - done);
      if (done == 0 || step) scales = buffer.load(c, scale + done * step, step, n);
      fn(at + done, scales, n);
    }
  });
}

/// To int8 or uint8 from float32 or a 16-bit float.
class QuantizeLinear final : public Kernel {
 public:
  QuantizeLinear(const NodeInfo& info, DataType precision, KernelPtr portable)
      : portable_(std::move(portable)),
        axis_(info.attr("axis", 1)),
        block_(info.attr("block_size", 0)),
        precision_(precision) {}
  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const bool is_signed = y.type == DataType::int8;
    const ScaleMap map(c.node(), x.shape, c.in(1).shape, axis_, block_);
    const bool direct = x.type == DataType::float32 && precision_ == DataType::float32;
    c.pool().parallel_for(x.size(), 0.3, [&](int64_t begin, int64_t end) {
      float values[kBlock];
      walk(c, map, begin, end, direct, [&](int64_t at, const QuantScales& scales, int64_t n) {
        uint8_t* to = y.as<uint8_t>() + at;
        if (direct) return quantize_bytes(x.as<float>() + at, scales, is_signed, to, n);
        const float* from = values;
        if (x.type == DataType::float32)
          from = x.as<float>() + at;
        else
          widen_half(x.type, x.as<uint16_t>() + at, values, n);
        if (precision_ == DataType::float32) return quantize_bytes(from, scales, is_signed, to, n);
        // The quotient is rounded to the 16-bit type before it is rounded to an integer.
        uint16_t bits[kBlock];
        for (int64_t i = 0; i < n; ++i) values[i] = from[i] / scales.scale[i * scales.step];
        narrow_half(precision_, values, bits, n);
        widen_half(precision_, bits, values, n);
        const float one[kBlock] = {1};
        if (scales.step == 0) return quantize_bytes(values, {one, scales.zero, 0}, is_signed, to, n);
        float ones[kBlock];
        std::fill_n(ones, n, 1.0f);
        quantize_bytes(values, {ones, scales.zero, 1}, is_signed, to, n);
      });
    });
  }

 private:
  KernelPtr portable_;
  int64_t axis_, block_;
  DataType precision_;
};

/// From int8 or uint8 to float32 or a 16-bit float.
class DequantizeLinear final : public Kernel {
 public:
  DequantizeLinear(const NodeInfo& info, KernelPtr portable)
      : portable_(std::move(portable)), axis_(info.attr("axis", 1)), block_(info.attr("block_size", 0)) {}
  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const bool is_signed = x.type == DataType::int8, direct = y.type == DataType::float32;
    const ScaleMap map(c.node(), x.shape, c.in(1).shape, axis_, block_);
    c.pool().parallel_for(x.size(), 0.3, [&](int64_t begin, int64_t end) {
      float values[kBlock];
      walk(c, map, begin, end, direct, [&](int64_t at, const QuantScales& scales, int64_t n) {
        const uint8_t* from = x.as<uint8_t>() + at;
        if (direct) return dequantize_bytes(from, scales, is_signed, y.as<float>() + at, n);
        dequantize_bytes(from, scales, is_signed, values, n);
        narrow_half(y.type, values, y.as<uint16_t>() + at, n);
      });
    });
  }

 private:
  KernelPtr portable_;
  int64_t axis_, block_;
};

class DynamicQuantizeLinear final : public Kernel {
 public:
  explicit DynamicQuantizeLinear(KernelPtr portable) : portable_(std::move(portable)) {}
  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  void run(const RunContext& c) const override {
    const float* x = c.data<float>(0);
    const int64_t size = c.in(0).size();
    const DynamicScale dynamic = dynamic_scale(value_range(x, size, c.pool()));
    if (float* scale = c.out_data<float>(1)) *scale = dynamic.scale;
    if (uint8_t* zero = c.out_data<uint8_t>(2)) *zero = static_cast<uint8_t>(dynamic.zero);
    uint8_t* y = c.out_data<uint8_t>(0);
    if (!y) return;
    const QuantScales scales{&dynamic.scale, &dynamic.zero, 0};
    c.pool().parallel_for(size, 0.3, [&](int64_t begin, int64_t end) {
      quantize_bytes(x + begin, scales, false, y + begin, end - begin);
    });
  }

 private:
  KernelPtr portable_;
};

KernelPtr make_quantize(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  const DataType precision = type_attribute(info, "precision", info.in_type(1));
  if (portable && is_byte(info.out_type(0)) && is_short_float(info.in_type(0)) && is_short_float(precision) &&
      (!info.has(2) || is_byte(info.in_type(2))))
    return std::make_unique<QuantizeLinear>(info, precision, std::move(portable));
  reason = cat("types ", info.in_type(0), " and ", info.out_type(0));
  return nullptr;
}

KernelPtr make_dequantize(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  if (portable && is_byte(info.in_type(0)) && is_short_float(info.out_type(0)) &&
      (!info.has(2) || is_byte(info.in_type(2))))
    return std::make_unique<DequantizeLinear>(info, std::move(portable));
  reason = cat("types ", info.in_type(0), " and ", info.out_type(0));
  return nullptr;
}

KernelPtr make_dynamic(const NodeInfo&, KernelPtr& portable, std::string&) {
  return portable ? std::make_unique<DynamicQuantizeLinear>(std::move(portable)) : nullptr;
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(quantize) {
  for (const char* domain : {"", "com.microsoft"}) {
    r.add({.name = "QuantizeLinear", .domain = domain, .make = make_quantize});
    r.add({.name = "DequantizeLinear", .domain = domain, .make = make_dequantize});
  }
  r.add({.name = "DynamicQuantizeLinear", .make = make_dynamic});
}
