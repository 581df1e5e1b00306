#include <algorithm>

#include "ops/float_io.h"
#include "ops/quant/quant_common.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// com.microsoft MatMulNBits: Y = A * dequantised(B)^T + bias. B is {N, blocks, block_size * bits / 8} bytes, codes along
/// K with the lowest bits first; scales {N, blocks}; zero points packed like B ({N, ceil(blocks * bits / 8)} bytes), or
/// of the scales' type, or 2^(bits-1) when absent; g_idx gives the block of each k.
class MatMulNBits final : public Kernel {
 public:
  explicit MatMulNBits(const NodeInfo& info)
      : k_(info.attr("K", 0)), n_(info.attr("N", 0)), bits_(info.attr("bits", 4)), block_(info.attr("block_size", 0)) {
    if (!is_float(info.in_type(0)) || info.in_type(0) == DataType::float64)
      info.refuse(Code::not_implemented, "type ", info.in_type(0));
    if (k_ <= 0 || n_ <= 0 || block_ < 16 || (block_ & (block_ - 1)))
      info.refuse(Code::invalid_argument, "K ", k_, ", N ", n_, ", block_size ", block_,
                  ": sizes must be positive and block_size a power of two from 16 on");
    if (bits_ != 2 && bits_ != 4 && bits_ != 8) info.refuse(Code::not_implemented, "bits ", bits_);
    blocks_ = (k_ + block_ - 1) / block_;
  }
  void shapes(ShapeContext& c) const override {
    Shape out = c.in(0);
    if (out.rank() == 0 || out.back() != k_) c.refuse("input of shape ", out, ", expected a last dim of ", k_);
    const int64_t blob = block_ * bits_ / 8, zero_bytes = (blocks_ * bits_ + 7) / 8;
    expect(c, 1, checked_mul(checked_mul(n_, blocks_), blob));
    expect(c, 2, checked_mul(n_, blocks_));
    if (c.has(3)) expect(c, 3, c.in_type(3) == DataType::uint8 ? n_ * zero_bytes : n_ * blocks_);
    if (c.has(4) && c.in(4).size() < k_) c.refuse("g_idx of shape ", c.in(4), ", expected at least ", k_, " elements");
    if (c.has(5)) expect(c, 5, n_);
    out[out.rank() - 1] = n_;
    c.workspace(FloatIo::bytes(c, {out}));
    c.out(0, std::move(out));
  }
  void run(const RunContext& c) const override {
    FloatIo io(c, 0);
    const float *a = io.in<float>(0), *scales = io.in<float>(2), *bias = io.in<float>(5);
    const float* real_zeros = c.has(3) && c.in(3).type != DataType::uint8 ? io.in<float>(3) : nullptr;
    float* y = io.out<float>(0);
    const int64_t rows = c.in(0).size() / k_;
    const int32_t* groups = c.data<int32_t>(4);
    c.pool().parallel_for(n_, 0.5 * static_cast<double>(k_) * static_cast<double>(rows + 4),
                          [&](int64_t begin, int64_t end) {
                            for (int64_t column = begin; column < end; ++column)
                              one_column(c, a, rows, column, scales, real_zeros, groups, bias ? bias[column] : 0, y);
                          });
    io.store();
  }

 private:
  void expect(const ShapeContext& c, int input, int64_t size) const {
    if (c.in(input).size() != size)
      c.refuse("input ", input, " has shape ", c.in(input), ", expected ", size, " elements for K ", k_, ", N ", n_,
               ", block_size ", block_, ", bits ", bits_);
  }

  void one_column(const RunContext& c, const float* a, int64_t rows, int64_t column, const float* scales,
                  const float* real_zeros, const int32_t* groups, float bias, float* y) const {
    constexpr int64_t kChunk = 256;
    const uint8_t* codes = c.data<uint8_t>(1) + column * blocks_ * block_ * bits_ / 8;
    const uint8_t* packed_zeros = real_zeros ? nullptr : c.data<uint8_t>(3);
    const int mask = (1 << bits_) - 1, per_byte = static_cast<int>(8 / bits_);
    for (int64_t row = 0; row < rows; ++row) y[row * n_ + column] = bias;
    for (int64_t first = 0, n; first < k_; first += n) {
      n = std::min(kChunk, k_ - first);
      float weights[kChunk];
      for (int64_t i = 0; i < n; ++i) {
        const int64_t k = first + i, block = groups ? groups[k] : k / block_;
        if (block < 0 || block >= blocks_) c.refuse("g_idx ", block, " is out of range [0,", blocks_, ")");
        const int code = codes[k / per_byte] >> (k % per_byte * bits_) & mask;
        float zero = static_cast<float>(1 << (bits_ - 1));
        if (real_zeros)
          zero = real_zeros[column * blocks_ + block];
        else if (packed_zeros)
          zero = static_cast<float>(packed_zeros[column * ((blocks_ + per_byte - 1) / per_byte) + block / per_byte] >>
                                        (block % per_byte * bits_) &
                                    mask);
        weights[i] = (static_cast<float>(code) - zero) * scales[column * blocks_ + block];
      }
      for (int64_t row = 0; row < rows; ++row) {
        const float* x = a + row * k_ + first;
        float sums[4] = {};
        int64_t i = 0;
        for (; i + 4 <= n; i += 4)
          for (int lane = 0; lane < 4; ++lane) sums[lane] += x[i + lane] * weights[i + lane];
        for (; i < n; ++i) sums[0] += x[i] * weights[i];
        y[row * n_ + column] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
      }
    }
  }

  int64_t k_, n_, bits_, block_, blocks_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(mat_mul_n_bits) {
  r.add({.name = "MatMulNBits", .domain = "com.microsoft", .make = make_kernel<MatMulNBits>});
}
