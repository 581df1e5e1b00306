#pragma once
#include <cstdint>

namespace epona {

/// What may follow a matrix product, a convolution or a normalisation before the result is stored.
enum class ActivationKind : uint8_t {
  none,
  relu,
  clip,          ///< min(max(x, a), b)
  leaky_relu,    ///< x < 0 ? a * x : x
  hard_sigmoid,  ///< clip(a * x + b, 0, 1)
  hard_swish,    ///< x * clip(a * x + b, 0, 1); ONNX: a = 1/6, b = 1/2
  sigmoid,
  tanh,
  silu,              ///< x * sigmoid(a * x); plain SiLU: a = 1
  gelu,              ///< 0.5 x (1 + erf(x / sqrt 2))
  gelu_tanh,         ///< the tanh approximation of gelu
  thresholded_relu,  ///< x <= a ? 0 : x
  elu,               ///< x < 0 ? a (e^x - 1) : x
  celu,              ///< x < 0 ? a (e^(x/a) - 1) : x
  selu,              ///< x < 0 ? a b (e^x - 1) : b x
  softplus,
  softsign,
  mish,
  fake_quant8,  ///< QuantizeLinear to 8 bits and back: a * clip(round(x / a), b, b + 255); b = lowest - zero point
};

/// A function and its parameters. NaN in gives NaN out.
struct Activation {
  ActivationKind kind = ActivationKind::none;
  float a = 0;
  float b = 0;

  static Activation relu() { return {ActivationKind::relu, 0, 0}; }
  static Activation clip(float low, float high) { return {ActivationKind::clip, low, high}; }
  static Activation leaky_relu(float slope) { return {ActivationKind::leaky_relu, slope, 0}; }
  static Activation hard_sigmoid(float a, float b) { return {ActivationKind::hard_sigmoid, a, b}; }
  static Activation hard_swish() { return {ActivationKind::hard_swish, 1.0f / 6, 0.5f}; }
  static Activation sigmoid() { return {ActivationKind::sigmoid, 0, 0}; }
  static Activation tanh() { return {ActivationKind::tanh, 0, 0}; }
  static Activation silu(float a = 1) { return {ActivationKind::silu, a, 0}; }
  static Activation gelu() { return {ActivationKind::gelu, 0, 0}; }
  static Activation gelu_tanh() { return {ActivationKind::gelu_tanh, 0, 0}; }

  explicit operator bool() const { return kind != ActivationKind::none; }
  friend bool operator==(const Activation&, const Activation&) = default;
};

/// Estimated cost of one element on one thread, in nanoseconds.
double activation_ns(ActivationKind kind);

/// out[i] = f(in[i]) on the calling thread; in == out is allowed.
void activate(const Activation& activation, const float* in, float* out, int64_t n);

/// Applies f in place to a tile of `rows` rows of `cols` floats that lie `stride` floats apart: the epilogue of a
/// kernel that has just written the tile.
void activate_tile(const Activation& activation, float* data, int64_t rows, int64_t cols, int64_t stride);

}  // namespace epona
