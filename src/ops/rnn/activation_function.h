#pragma once
#include <string>
#include <vector>

#include "ops/kernel.h"

namespace epona {

/// An activation of RNN, GRU and LSTM, with its parameters and the clip of its input.
struct RnnActivation {
  enum Kind : uint8_t {
    relu,
    tanh,
    sigmoid,
    affine,
    leaky_relu,
    thresholded_relu,
    scaled_tanh,
    hard_sigmoid,
    elu,
    softsign,
    softplus
  } kind = sigmoid;
  float alpha = 0, beta = 0;
  float clip = 0;  ///< 0: none

  /// Applies it to n elements in place (float or double).
  template <class T>
  void apply(T* x, int64_t n) const;
};

/// The activations of all directions, `per_direction` for each: attributes activations, activation_alpha,
/// activation_beta and clip, or the defaults of the operator.
std::vector<RnnActivation> rnn_activations(const NodeInfo& info, int directions,
                                           const std::vector<std::string>& defaults);

}  // namespace epona
