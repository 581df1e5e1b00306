#include <algorithm>
#include <cmath>

#include "ops/convert.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

double hertz_to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double mel_to_hertz(double mel) { return 700 * (std::pow(10.0, mel / 2595) - 1); }

/// A bank of triangular filters on the mel scale: {dft_length / 2 + 1, num_mel_bins}. Inputs, all scalars: num_mel_bins,
/// dft_length, sample_rate, lower_edge_hertz, upper_edge_hertz.
class MelWeightMatrix final : public Kernel {
 public:
  explicit MelWeightMatrix(const NodeInfo&) {}
  void shapes(ShapeContext& c) const override {
    int64_t bins = one_int(c, *c.value(0), "num_mel_bins"), length = one_int(c, *c.value(1), "dft_length");
    if (bins < 0 || length < 0) c.refuse("num_mel_bins ", bins, " or dft_length ", length, " is negative");
    for (int i : {3, 4})
      if (c.in(i).size() != 1) c.refuse("input ", i, " of shape ", c.in(i), ", expected a scalar");
    c.out(0, Shape{length / 2 + 1, bins});
  }
  void run(const RunContext& c) const override {
    Tensor& y = c.out(0);
    const int64_t rows = y.shape[0], bins = y.shape[1];
    const int64_t length = one_int(c, c.in(1), "dft_length"), rate = one_int(c, c.in(2), "sample_rate");
    if (rate <= 0) c.refuse("sample_rate ", rate, " is not positive");
    double low, high;
    convert_elements(c.in(3).type, c.in(3).data, DataType::float64, &low, 0, 1);
    convert_elements(c.in(4).type, c.in(4).data, DataType::float64, &high, 0, 1);
    low = hertz_to_mel(low);
    const double step = (hertz_to_mel(high) - low) / static_cast<double>(bins + 2);
    auto bin_of = [&](int64_t i) {
      double bin = std::floor(static_cast<double>(length + 1) * mel_to_hertz(static_cast<double>(i) * step + low) /
                              static_cast<double>(rate));
      if (!(bin >= 0 && bin < static_cast<double>(rows)))
        c.refuse("the filters reach beyond the spectrum: bin ", bin, " of ", rows);
      return static_cast<int64_t>(bin);
    };
    const size_t bytes = type_bits(y.type) / 8;
    for (int64_t i = 0; i < bins; ++i) {
      const int64_t left = bin_of(i), middle = bin_of(i + 1), right = bin_of(i + 2);
      for (int64_t j = 0; j < rows; ++j) {
        double value = 0;
        if (j >= middle && j < right)
          value = static_cast<double>(right - j) / static_cast<double>(right - middle);
        else if (j >= left && j < middle)
          value = static_cast<double>(j - left) / static_cast<double>(middle - left);
        else if (j == middle)
          value = 1;
        convert_elements(DataType::float64, &value, y.type,
                         static_cast<char*>(y.data) + static_cast<size_t>(j * bins + i) * bytes, 0, 1);
      }
    }
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(mel_weight_matrix) {
  r.add({.name = "MelWeightMatrix", .since = 17, .make = make_kernel<MelWeightMatrix>, .shape_inputs = 3});
}
