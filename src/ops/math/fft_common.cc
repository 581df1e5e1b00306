#include <algorithm>
#include <cmath>

#include "ops/math/fft.h"

namespace epona {
namespace {

constexpr int64_t kLargestRadix = 31;
constexpr double kTwoPi = 6.283185307179586476925286766559;

int64_t smallest_factor(int64_t n) {
  for (int64_t p : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31})
    if (n % p == 0) return p;
  return n;
}

bool smooth(int64_t n) {
  while (n > 1) {
    int64_t p = smallest_factor(n);
    if (p > kLargestRadix) return false;
    n /= p;
  }
  return true;
}

void fill_roots(int64_t n, std::complex<double>* roots) {
  for (int64_t k = 0; k < n; ++k) roots[k] = std::polar(1.0, -kTwoPi * static_cast<double>(k) / static_cast<double>(n));
}

/// exp(-pi i k^2 / n), with k^2 reduced before it loses digits.
std::complex<double> chirp(int64_t k, int64_t n) {
  int64_t reduced = static_cast<int64_t>(static_cast<unsigned __int128>(k) * static_cast<unsigned __int128>(k) %
                                         static_cast<unsigned __int128>(2 * n));
  return std::polar(1.0, -kTwoPi / 2 * static_cast<double>(reduced) / static_cast<double>(n));
}

}  // namespace

Fft::Fft(int64_t length) : n_(length), bluestein_(!smooth(length)) {
  if (!bluestein_) return;
  for (padded_ = 1; padded_ < 2 * n_ - 1;) padded_ *= 2;
}

int64_t Fft::table_size() const { return bluestein_ ? n_ + 3 * padded_ : n_; }

void Fft::prepare(Complex* table) const {
  if (!bluestein_) return fill_roots(n_, table);
  // The chirp, the roots of the padded transform, and the transform of the chirp's conjugate.
  Complex *roots = table + n_, *kernel = roots + padded_, *time = kernel + padded_;
  for (int64_t k = 0; k < n_; ++k) table[k] = chirp(k, n_);
  fill_roots(padded_, roots);
  std::fill_n(time, padded_, Complex());
  for (int64_t k = 0; k < n_; ++k) {
    time[k] = std::conj(table[k]);
    if (k > 0) time[padded_ - k] = std::conj(table[k]);
  }
  radix(time, 1, kernel, padded_, roots, padded_);
}

void Fft::radix(const Complex* in, int64_t stride, Complex* out, int64_t n, const Complex* roots, int64_t full) const {
  if (n == 1) {
    *out = *in;
    return;
  }
  const int64_t p = smallest_factor(n), m = n / p, step = full / n;
  for (int64_t q = 0; q < p; ++q) radix(in + q * stride, stride * p, out + q * m, m, roots, full);
  for (int64_t k = 0; k < m; ++k) {
    if (p == 2) {
      Complex even = out[k], odd = out[m + k] * roots[k * step];
      out[k] = even + odd;
      out[m + k] = even - odd;
      continue;
    }
    Complex terms[kLargestRadix];
    for (int64_t q = 0; q < p; ++q) terms[q] = out[q * m + k] * roots[q * k * step];
    for (int64_t r = 0; r < p; ++r) {
      Complex sum = terms[0];
      for (int64_t q = 1; q < p; ++q) sum += terms[q] * roots[q * r % p * m * step];
      out[r * m + k] = sum;
    }
  }
}

void Fft::bluestein(Complex* data, const Complex* table, Complex* scratch) const {
  const Complex *roots = table + n_, *kernel = roots + padded_;
  Complex *time = scratch, *frequency = scratch + padded_;
  std::fill(time + n_, time + padded_, Complex());
  for (int64_t k = 0; k < n_; ++k) time[k] = data[k] * table[k];
  radix(time, 1, frequency, padded_, roots, padded_);
  for (int64_t k = 0; k < padded_; ++k) frequency[k] = std::conj(frequency[k] * kernel[k]);
  radix(frequency, 1, time, padded_, roots, padded_);
  const double scale = 1.0 / static_cast<double>(padded_);
  for (int64_t k = 0; k < n_; ++k) data[k] = std::conj(time[k]) * scale * table[k];
}

void Fft::transform(Complex* data, bool inverse, const Complex* table, Complex* scratch) const {
  if (inverse)
    for (int64_t k = 0; k < n_; ++k) data[k] = std::conj(data[k]);
  if (bluestein_) {
    bluestein(data, table, scratch);
  } else {
    radix(data, 1, scratch, n_, table, n_);
    std::copy_n(scratch, n_, data);
  }
  if (inverse)
    for (int64_t k = 0; k < n_; ++k) data[k] = std::conj(data[k]);
}

}  // namespace epona
