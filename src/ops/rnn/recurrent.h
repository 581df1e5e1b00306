#pragma once
#include <algorithm>
#include <cstring>

#include "ops/float_io.h"
#include "ops/product.h"
#include "ops/rnn/activation_function.h"

namespace epona {

/// What a cell's step for one batch entry works on. Every gate has `hidden` elements.
template <class T>
struct CellStep {
  int64_t hidden;
  T* gates;                 ///< h * R for all gates; scratch after the step
  const T* x;               ///< x * W plus biases for all gates
  T* h;                     ///< state, read and written
  T* c;                     ///< cell state of LSTM
  T* reset;                 ///< GRU: r * h, from phase one to phase two
  const T* peephole;        ///< LSTM, may be null
  const T* recurrent_bias;  ///< GRU with linear_before_reset: bias of h * R for the hidden gate
  const RnnActivation* f;
};

/// RNN, GRU and LSTM: everything but the step of the cell. A `Cell` has
///   static constexpr int kGates;   gates in W and R
///   static constexpr int kStates;  1, or 2 with a cell state
///   explicit Cell(const NodeInfo&), bool two_phases() const,
///   template <class T> void first(const CellStep<T>&) const, second(const CellStep<T>&) const:
/// with two phases the last gate's product with R is of `reset`, which first() writes, and second() finishes.
template <class Cell>
class Recurrent : public Kernel {
 public:
  Recurrent(const NodeInfo& info, const std::vector<std::string>& activations)
      : cell_(info), layout_(info.attr("layout", 0) != 0) {
    const std::string direction = info.attr("direction", "forward");
    directions_ = direction == "bidirectional" ? 2 : 1;
    reverse_ = direction == "reverse";
    if (directions_ == 1 && !reverse_ && direction != "forward")
      info.refuse(Code::invalid_graph, "direction is \"", direction, "\"; expected forward, reverse or bidirectional");
    functions_per_direction_ = static_cast<int>(activations.size());
    functions_ = rnn_activations(info, directions_, activations);
  }

  void shapes(ShapeContext& c) const override {
    const Sizes s = sizes(c, c.in(0), hidden_size(c));
    check(c, s);
    const Shape state = layout_ ? Shape{s.batch, s.directions, s.hidden} : Shape{s.directions, s.batch, s.hidden};
    const Shape y =
        layout_ ? Shape{s.batch, s.length, s.directions, s.hidden} : Shape{s.length, s.directions, s.batch, s.hidden};
    const size_t width = c.in_type(0) == DataType::float64 ? 8 : 4;
    c.workspace(own_bytes(s, width) + FloatIo::bytes(c, {y, state, state}));
    c.out(0, y);
    c.out(1, state);
    if (Cell::kStates == 2) c.out(2, state);
  }

  void run(const RunContext& c) const override {
    if (c.in(0).type == DataType::float64)
      compute_with_weights<double>(c);
    else
      compute_with_weights<float>(c);
  }

  bool reads_constant(int input) const override { return !packed_ || (input != kW && input != kR); }

 protected:
  struct Sizes {
    int64_t length, batch, input, hidden, directions;
  };
  static constexpr int kW = 1, kR = 2, kB = 3, kLengths = 4, kH0 = 5, kC0 = 6, kP = 7;

  virtual int64_t hidden_size(const ShapeContext& c) const { return c.in(kR).rank() == 3 ? c.in(kR)[2] : -1; }
  virtual int64_t hidden_size(const RunContext& c) const { return c.in(kR).shape[2]; }
  /// Scratch memory, for each direction, of the products with the weights: room to pack weights that are computed values
  /// (double uses them as they are).
  virtual size_t product_bytes(const Sizes& s, size_t width) const {
    return packed_ || width != 4 ? 0 : packed_floats(s.input, s.hidden) * 4;
  }
  virtual void check_weights(const ShapeContext& c, const Sizes& s) const {
    const int64_t rows = Cell::kGates * s.hidden;
    expect(c, kW, {s.directions, rows, s.input});
    expect(c, kR, {s.directions, rows, s.hidden});
  }
  static void expect(const ShapeContext& c, int input, const Shape& shape) {
    if (c.has(input) && c.in(input) != shape)
      c.refuse("input ", input, " has shape ", c.in(input), "; expected ", shape);
  }

  /// Packs the weights of a direction for float products: W, then R (its last gate apart with two phases). `w` and `r`
  /// are {gates, columns} row-major, or their transpose.
  void pack(const float* w, const float* r, bool transposed, int64_t input, int64_t hidden, float* to) const {
    const int64_t gates = Cell::kGates * hidden, first = first_gates() * hidden;
    pack_b(input, gates, w, transposed ? gates : input, !transposed, to);
    to += packed_b_floats(input, gates);
    pack_b(hidden, first, r, transposed ? gates : hidden, !transposed, to);
    if (first == gates) return;
    to += packed_b_floats(hidden, first);
    pack_b(hidden, hidden, r + first * (transposed ? 1 : hidden), transposed ? gates : hidden, !transposed, to);
  }
  size_t packed_floats(int64_t input, int64_t hidden) const {
    const int64_t first = first_gates() * hidden;
    return packed_b_floats(input, Cell::kGates * hidden) + packed_b_floats(hidden, first) +
           (cell_.two_phases() ? packed_b_floats(hidden, hidden) : 0);
  }
  /// Packs constant weights once and for all.
  void pack_constants(const NodeInfo& info) {
    const Tensor *w = info.constant(kW), *r = info.constant(kR);
    if (!w || !r || w->type == DataType::float64 || w->shape.rank() != 3 || r->shape.rank() != 3) return;
    const int64_t input = w->shape[2], hidden = r->shape[2], gates = Cell::kGates * hidden;
    if (w->shape != Shape{directions_, gates, input} || r->shape != Shape{directions_, gates, hidden}) return;
    ThreadPool alone({.threads = 1});
    Tensor wide_w = widen(*w, alone), wide_r = widen(*r, alone);
    allocate_packed(input, hidden);
    for (int d = 0; d < directions_; ++d)
      pack(wide_w.as<float>() + d * gates * input, wide_r.as<float>() + d * gates * hidden, false, input, hidden,
           packed_.as<float>() + static_cast<int64_t>(packed_floats(input, hidden)) * d);
  }
  void allocate_packed(int64_t input, int64_t hidden) {
    packed_ =
        Tensor::allocate(DataType::float32, Shape{directions_ * static_cast<int64_t>(packed_floats(input, hidden))});
  }

  /// `weights(s, d, scratch)` gives the products of direction d, with members x (input to gates), first and second (state
  /// to gates, the last gate apart with two phases). Each has run(rows_in, rows, rows_out, bias, pool).
  template <class T, class F>
  void compute(const RunContext& c, FloatIo& io, const Sizes& s, F&& weights) const {
    const Scratch scratch(s, sizeof(T), product_bytes(s, sizeof(T)));
    const T *x = io.in<T>(0), *b = io.in<T>(kB);
    const T *h0 = io.in<T>(kH0), *c0 = Cell::kStates == 2 ? io.in<T>(kC0) : nullptr;
    const T* p = Cell::kStates == 2 ? io.in<T>(kP) : nullptr;
    T *y = io.out<T>(0), *y_h = io.out<T>(1), *y_c = Cell::kStates == 2 ? io.out<T>(2) : nullptr;
    const int32_t* lengths = c.data<int32_t>(kLengths);
    for (int64_t i = 0; lengths && i < s.batch; ++i)
      if (lengths[i] < 0 || lengths[i] > s.length)
        c.refuse("sequence_lens holds ", lengths[i], "; expected 0 to ", s.length);

    auto direction = [&](int64_t d) {
      char* base = c.workspace_as<char>() + scratch.total * static_cast<size_t>(d);
      auto at = [&](size_t offset) { return reinterpret_cast<T*>(base + offset); };
      run_direction(c, s, d, x, weights(s, d, at(scratch.weights)), b, h0, c0, p, lengths, y, y_h, y_c,
                    State<T>{at(scratch.bias), at(scratch.recurrent), at(scratch.xw), at(scratch.gates), at(scratch.h),
                             at(scratch.c), at(scratch.reset)});
    };
    // Small steps do not pay a hand-over each; the two directions then share the threads.
    const bool small = s.batch * s.hidden * s.hidden * Cell::kGates < (1 << 20) || c.pool().threads() == 2;
    if (directions_ == 2 && small)
      c.pool().run(2, direction);
    else
      for (int64_t d = 0; d < directions_; ++d) direction(d);
    io.store();
  }
  /// Bytes of the workspace before those of the FloatIo.
  size_t own_bytes(const Sizes& s, size_t width) const {
    return Scratch(s, width, product_bytes(s, width)).total * static_cast<size_t>(directions_);
  }
  Sizes sizes(const RunContext& c) const { return sizes(c, c.in(0).shape, hidden_size(c)); }

  Cell cell_;
  int directions_;
  Tensor packed_;  // weights of all directions, when they are constant

 private:
  int64_t first_gates() const { return Cell::kGates - (cell_.two_phases() ? 1 : 0); }

  static Tensor widen(const Tensor& t, ThreadPool& pool) {
    if (t.type == DataType::float32) return t;
    Tensor wide = Tensor::allocate(DataType::float32, t.shape);
    convert_floats(t.type, t.data, DataType::float32, wide.data, t.size(), pool);
    return wide;
  }

  template <class Context>
  Sizes sizes(const Context& c, const Shape& x, int64_t hidden) const {
    if (x.rank() != 3 || hidden < 0) c.refuse("X has shape ", x, "; expected rank 3, and weights too");
    return {x[layout_ ? 1 : 0], x[layout_ ? 0 : 1], x[2], hidden, directions_};
  }

  void check(const ShapeContext& c, const Sizes& s) const {
    check_weights(c, s);
    const Shape state = layout_ ? Shape{s.batch, s.directions, s.hidden} : Shape{s.directions, s.batch, s.hidden};
    expect(c, kB, {s.directions, 2 * Cell::kGates * s.hidden});
    expect(c, kLengths, {s.batch});
    expect(c, kH0, state);
    if (Cell::kStates == 2) {
      expect(c, kC0, state);
      expect(c, kP, {s.directions, 3 * s.hidden});
    }
  }

  /// Offsets in the workspace of one direction, in bytes.
  struct Scratch {
    size_t bias, recurrent, xw, gates, h, c, reset, weights, total = 0;
    Scratch(const Sizes& s, size_t width, size_t products) {
      const int64_t gates_size = Cell::kGates * s.hidden;
      auto take = [&](int64_t n) {
        size_t at = total;
        total += FloatIo::align(static_cast<size_t>(n) * width);
        return at;
      };
      bias = take(gates_size);
      recurrent = take(s.hidden);
      xw = take(checked_mul(checked_mul(s.length, s.batch), gates_size));
      gates = take(s.batch * gates_size);
      h = take(s.batch * s.hidden);
      c = take(s.batch * s.hidden);
      reset = take(s.batch * s.hidden);
      weights = total;
      total += FloatIo::align(products);
    }
  };

  template <class T>
  void compute_with_weights(const RunContext& c) const {
    const Sizes s = sizes(c);
    FloatIo io(c, own_bytes(s, sizeof(T)));
    const bool dense = !packed_;
    const T *w = dense ? io.in<T>(kW) : nullptr, *r = dense ? io.in<T>(kR) : nullptr;
    compute<T>(c, io, s, [&](const Sizes&, int64_t d, T* scratch) { return weights(s, d, w, r, scratch); });
  }

  template <class T>
  struct Weights {
    Product<T> x, first, second;
  };

  template <class T>
  Weights<T> weights(const Sizes& s, int64_t d, const T* w, const T* r, T* scratch) const {
    const int64_t gates = Cell::kGates * s.hidden, first = first_gates() * s.hidden;
    Weights<T> out{{s.input, gates, nullptr}, {s.hidden, first, nullptr}, {s.hidden, gates - first, nullptr}};
    if constexpr (std::is_same_v<T, float>) {
      const float* packed =
          packed_ ? packed_.as<float>() + static_cast<int64_t>(packed_floats(s.input, s.hidden)) * d : scratch;
      if (!packed_) pack(w + d * gates * s.input, r + d * gates * s.hidden, false, s.input, s.hidden, scratch);
      out.x.b = packed;
      out.first.b = packed + packed_b_floats(s.input, gates);
      out.second.b = out.first.b + packed_b_floats(s.hidden, first);
    } else {
      out.x.b = w + d * gates * s.input;
      out.first.b = r + d * gates * s.hidden;
      out.second.b = out.first.b + first * s.hidden;
    }
    return out;
  }

  template <class T>
  struct State {
    T *bias, *recurrent, *xw, *gates, *h, *c, *reset;
  };

  template <class T, class W>
  void run_direction(const RunContext& c, const Sizes& s, int64_t d, const T* x, const W& weights, const T* b,
                     const T* h0, const T* c0, const T* p, const int32_t* lengths, T* y, T* y_h, T* y_c,
                     const State<T>& state) const {
    const int64_t hidden = s.hidden, gates = Cell::kGates * hidden, first = first_gates() * hidden;
    const bool reverse = reverse_ || d == 1;
    // All biases go to the x side, but for the one that linear_before_reset multiplies.
    if (b) b += d * 2 * gates;
    const int64_t split = cell_.recurrent_bias_apart() ? gates - hidden : gates;
    for (int64_t i = 0; b && i < gates; ++i) state.bias[i] = b[i] + (i < split ? b[gates + i] : T(0));
    for (int64_t i = 0; b && i < hidden; ++i) state.recurrent[i] = b[2 * gates - hidden + i];
    weights.x.run(x, s.length * s.batch, state.xw, b ? state.bias : nullptr, c.pool());

    auto at = [&](int64_t i) { return layout_ ? (i * directions_ + d) * hidden : (d * s.batch + i) * hidden; };
    for (int64_t i = 0; i < s.batch; ++i) {
      if (h0) std::copy_n(h0 + at(i), hidden, state.h + i * hidden);
      if (c0) std::copy_n(c0 + at(i), hidden, state.c + i * hidden);
    }
    if (!h0) std::fill_n(state.h, s.batch * hidden, T(0));
    if (!c0) std::fill_n(state.c, s.batch * hidden, T(0));
    std::fill_n(state.reset, s.batch * hidden, T(0));  // rows of ended sequences go through the product too

    auto y_at = [&](int64_t t, int64_t i) {
      return layout_ ? ((i * s.length + t) * directions_ + d) * hidden : ((t * directions_ + d) * s.batch + i) * hidden;
    };
    T* second = state.gates + s.batch * first;
    auto step_of = [&](int64_t t, int64_t i) {
      const int64_t row = layout_ ? i * s.length + t : t * s.batch + i;
      return CellStep<T>{hidden,
                         state.gates + i * first,
                         state.xw + row * gates,
                         state.h + i * hidden,
                         state.c + i * hidden,
                         state.reset + i * hidden,
                         p ? p + d * 3 * hidden : nullptr,
                         b ? state.recurrent : nullptr,
                         functions_.data() + d * functions_per_direction_};
    };
    int64_t longest = lengths ? 0 : s.length;
    for (int64_t i = 0; lengths && i < s.batch; ++i) longest = std::max<int64_t>(longest, lengths[i]);
    const double cost = 8.0 * static_cast<double>(gates);
    for (int64_t step = 0; step < longest; ++step) {
      auto each = [&](auto&& fn) {
        c.pool().parallel_for(s.batch, cost, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t length = lengths ? lengths[i] : s.length;
            if (step >= length) continue;
            const int64_t t = reverse ? length - 1 - step : step;
            fn(step_of(t, i), t, i);
          }
        });
      };
      auto store = [&](int64_t t, int64_t i) {
        if (y) std::copy_n(state.h + i * hidden, hidden, y + y_at(t, i));
      };
      weights.first.run(state.h, s.batch, state.gates, nullptr, c.pool());
      each([&](const CellStep<T>& cell, int64_t t, int64_t i) {
        cell_.first(cell);
        if (!cell_.two_phases()) store(t, i);
      });
      if (!cell_.two_phases()) continue;
      weights.second.run(state.reset, s.batch, second, nullptr, c.pool());
      each([&](const CellStep<T>& cell, int64_t t, int64_t i) {
        cell_.second(cell, second + i * hidden);
        store(t, i);
      });
    }
    for (int64_t i = 0; lengths && y && i < s.batch; ++i)
      for (int64_t t = lengths[i]; t < s.length; ++t) std::fill_n(y + y_at(t, i), hidden, T(0));
    for (int64_t i = 0; i < s.batch; ++i) {
      if (y_h) std::copy_n(state.h + i * hidden, hidden, y_h + at(i));
      if (y_c) std::copy_n(state.c + i * hidden, hidden, y_c + at(i));
    }
  }

  bool layout_, reverse_;
  int functions_per_direction_;
  std::vector<RnnActivation> functions_;
};

}  // namespace epona
