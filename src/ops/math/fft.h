#pragma once
#include <complex>
#include <cstdint>

namespace epona {

/// A discrete Fourier transform of one length, on memory given by the caller. Any length: mixed radix where the prime
/// factors are small, Bluestein's convolution through a power of two where not. In double throughout.
class Fft {
 public:
  using Complex = std::complex<double>;

  explicit Fft(int64_t length);
  int64_t length() const { return n_; }
  /// Values of the table that prepare() fills once and transform() reads.
  int64_t table_size() const;
  /// Values of scratch that one call of transform() needs.
  int64_t scratch_size() const { return bluestein_ ? 2 * padded_ : n_; }

  void prepare(Complex* table) const;
  /// Replaces data by its transform: sums of data[k] * exp(-+2 pi i j k / n), not scaled; inverse has the plus sign.
  void transform(Complex* data, bool inverse, const Complex* table, Complex* scratch) const;

 private:
  void radix(const Complex* in, int64_t stride, Complex* out, int64_t n, const Complex* roots, int64_t full) const;
  void bluestein(Complex* data, const Complex* table, Complex* scratch) const;

  int64_t n_;
  bool bluestein_;
  int64_t padded_ = 0;
};

}  // namespace epona
