#pragma once
#include <cstdint>

namespace epona {

/// One step of an LSTM with sigmoid gates and tanh, for one batch entry; gates in the order i, o, f, c, `hidden` each.
struct LstmStep {
  int64_t hidden;
  const float* gates;     ///< h * R
  const float* x;         ///< x * W plus biases
  const float* peephole;  ///< for i, o, f; may be null
  float* h;               ///< written
  float* c;               ///< read and written
};

/// c = sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c).
void lstm_step(const LstmStep& step);

}  // namespace epona
