#include "kernels/strided_copy.h"
#include "ops/control/control_util.h"
#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Part `i` of dim 0 of a tensor: a view, or a copy where it does not begin at a whole byte.
Tensor part(const Tensor& tensor, int64_t i) {
  Tensor out;
  out.type = tensor.type;
  out.shape = tensor.shape;
  out.shape.erase(0);
  int64_t size = out.shape.size(), bits = static_cast<int64_t>(type_bits(tensor.type));
  if (size * bits % 8) {
    out = Tensor::allocate(out.type, out.shape);
    copy_elements(out.type, size, tensor.data, i * size, out.data, 0);
  } else {
    out.data = static_cast<char*>(tensor.data) + i * (size * bits / 8);
  }
  return out;
}

/// The tensor with dim `from` moved to place `to`; a view of it when there is nothing to move.
Tensor move_dim(const RunContext& c, const Tensor& tensor, int from, int to) {
  if (from == to) return tensor;
  Shape strides = row_major_strides(tensor.shape), dims = tensor.shape;
  int64_t dim = dims[from], stride = strides[from];
  dims.erase(from);
  strides.erase(from);
  dims.insert(to, dim);
  strides.insert(to, stride);
  Tensor out = Tensor::allocate(tensor.type, dims);
  Shape out_strides = row_major_strides(dims);
  StridedCopy copy(tensor.type);
  for (int i = 0; i < dims.rank(); ++i) copy.dim(dims[i], strides[i], out_strides[i]);
  copy.run(c.pool(), tensor.data, 0, out.data, 0);
  return out;
}

/// Dim 0 in reverse order.
Tensor reversed(const RunContext& c, const Tensor& tensor) {
  int64_t n = tensor.shape[0], row = tensor.shape.size(1, tensor.shape.rank());
  Tensor out = Tensor::allocate(tensor.type, tensor.shape);
  StridedCopy copy(tensor.type);
  copy.dim(n, -row, row);
  copy.dim(row, 1, 1);
  copy.run(c.pool(), tensor.data, (n - 1) * row, out.data, 0);
  return out;
}

class ScanBase : public Kernel {
 public:
  ScanBase(const NodeInfo& info, int first)
      : body_(info.subgraph("body")),
        first_(first),
        scans_(static_cast<int>(info.attr("num_scan_inputs", 0))),
        states_(body_->inputs() - scans_),
        rows_(body_->outputs() - states_) {
    if (scans_ < 1 || states_ < 0 || rows_ < 0 || info.inputs() != first + states_ + scans_ ||
        info.outputs() > body_->outputs())
      info.refuse(Code::invalid_graph, "a body with ", body_->inputs(), " inputs and ", body_->outputs(),
                  " outputs does not fit a node with ", info.inputs(), " inputs, of which ", scans_,
                  " are scanned, and ", info.outputs(), " outputs");
  }
  void shapes(ShapeContext&) const override {}

 protected:
  std::vector<int64_t> list(const NodeInfo& info, const char* key, int count) const {
    auto values = info.ints(key, std::vector<int64_t>(static_cast<size_t>(count), 0));
    if (static_cast<int>(values.size()) != count)
      info.refuse(Code::invalid_graph, key, " has ", values.size(), " numbers, expected ", count);
    return values;
  }
  /// Runs the body over `steps` parts of the scanned inputs. `states` are replaced by the final ones.
  void iterate(const RunContext& c, std::span<RuntimeValue> states, std::span<const Tensor> scanned,
               std::span<const int64_t> backward, int64_t steps, std::span<RowCollector> collectors) const {
    ValueList in(states_ + scans_), out(body_->outputs());
    for (int i = 0; i < states_; ++i) in[i] = std::move(states[static_cast<size_t>(i)]);
    for (int64_t t = 0; t < steps; ++t) {
      check_terminate(c);
      for (int i = 0; i < scans_; ++i) {
        auto k = static_cast<size_t>(i);
        in[states_ + i] = part(scanned[k], backward[k] ? steps - 1 - t : t);
      }
      for (int i = 0; i < body_->outputs(); ++i) out[i] = {};  // a value with memory would be written in place
      body_->run(c, in, out);
      for (int i = 0; i < rows_; ++i)
        if (c.wants(states_ + i))
          collectors[static_cast<size_t>(i)].add(c, states_ + i, out[states_ + i].tensor, steps);
      for (int i = 0; i < states_; ++i) in[i] = owned(std::move(out[i]));
    }
    for (int i = 0; i < states_; ++i) states[static_cast<size_t>(i)] = steps ? std::move(in[i]) : own_copy(in[i]);
  }

  std::shared_ptr<Subgraph> body_;
  int first_;  ///< inputs before the states
  int scans_, states_, rows_;
};

/// Scan from opset 9: states, then inputs scanned along any axis in either direction.
class Scan final : public ScanBase {
 public:
  explicit Scan(const NodeInfo& info)
      : ScanBase(info, 0),
        in_axes_(list(info, "scan_input_axes", scans_)),
        in_backward_(list(info, "scan_input_directions", scans_)),
        out_axes_(list(info, "scan_output_axes", rows_)),
        out_backward_(list(info, "scan_output_directions", rows_)) {}

  void run(const RunContext& c) const override {
    std::vector<Tensor> scanned;
    scanned.reserve(static_cast<size_t>(scans_));
    for (int i = 0; i < scans_; ++i) {
      const Tensor& in = c.in(states_ + i);
      int axis = resolve_axis(c, in_axes_[static_cast<size_t>(i)], in.shape.rank());
      scanned.push_back(move_dim(c, in, axis, 0));
      if (scanned.back().shape[0] != scanned[0].shape[0])
        c.refuse("scanned inputs differ in length: ", scanned[0].shape[0], " and ", scanned.back().shape[0]);
    }
    std::vector<RuntimeValue> states;
    states.reserve(static_cast<size_t>(states_));
    for (int i = 0; i < states_; ++i) states.push_back(c.value(i));
    std::vector<RowCollector> collectors(static_cast<size_t>(rows_));
    iterate(c, states, scanned, in_backward_, scanned[0].shape[0], collectors);
    for (int i = 0; i < states_; ++i) c.set(i, std::move(states[static_cast<size_t>(i)]));
    for (int i = 0; i < rows_; ++i) {
      if (!c.wants(states_ + i)) continue;
      auto k = static_cast<size_t>(i);
      Tensor rows = collectors[k].finish(body_->output_type(states_ + i));
      if (out_backward_[k]) rows = reversed(c, rows);
      c.set(states_ + i, move_dim(c, rows, 0, resolve_axis(c, out_axes_[k], rows.shape.rank())));
    }
  }

 private:
  std::vector<int64_t> in_axes_, in_backward_, out_axes_, out_backward_;
};

/// Scan of opset 8: sequence_lens, then states [batch, ...] and inputs [batch, sequence, ...]. Each batch is scanned by
/// itself; its rows past its length are zero.
class Scan8 final : public ScanBase {
 public:
  explicit Scan8(const NodeInfo& info) : ScanBase(info, 1), backward_(list(info, "directions", scans_)) {}

  void run(const RunContext& c) const override {
    const Shape& first = c.in(1 + states_).shape;
    if (first.rank() < 2) c.refuse("a scanned input needs the dims [batch, sequence, ...], found ", first);
    int64_t batch = first[0], length = first[1];
    for (int i = 1; i < 1 + states_ + scans_; ++i) {
      const Shape& in = c.in(i).shape;
      if (in.rank() < 1 || in[0] != batch || (i > states_ && (in.rank() < 2 || in[1] != length)))
        c.refuse("input ", i, " of shape ", in, " does not fit batch ", batch, " and sequence length ", length);
    }
    if (c.has(0) && c.in(0).size() != batch) c.refuse("sequence_lens must have one number a batch of ", batch);
    std::vector<RowCollector> final_states(static_cast<size_t>(states_)), final_rows(static_cast<size_t>(rows_));
    for (int64_t b = 0; b < batch; ++b) {
      int64_t steps = c.has(0) ? int_at(c.in(0), b) : length;
      if (steps < 0 || steps > length) c.refuse("sequence length ", steps, " is out of range [0,", length, "]");
      std::vector<RuntimeValue> states;
      std::vector<Tensor> scanned;
      states.reserve(static_cast<size_t>(states_));
      scanned.reserve(static_cast<size_t>(scans_));
      for (int i = 0; i < states_; ++i) states.push_back(part(c.in(1 + i), b));
      for (int i = 0; i < scans_; ++i) scanned.push_back(part(c.in(1 + states_ + i), b));
      std::vector<RowCollector> collectors(static_cast<size_t>(rows_));
      iterate(c, states, scanned, backward_, steps, collectors);
      for (int i = 0; i < states_; ++i)
        final_states[static_cast<size_t>(i)].add(c, i, states[static_cast<size_t>(i)].tensor, batch);
      for (int i = 0; i < rows_; ++i) {
        if (!c.wants(states_ + i)) continue;
        Tensor rows = collectors[static_cast<size_t>(i)].finish(body_->output_type(states_ + i));
        Shape shape = rows.shape;
        shape[0] = length;
        Tensor full = Tensor::allocate(rows.type, shape);
        if (full.type != DataType::string) std::fill_n(full.as<char>(), full.bytes(), char{0});
        copy_elements(rows.type, rows.size(), rows.data, 0, full.data, 0);
        final_rows[static_cast<size_t>(i)].add(c, states_ + i, full, batch);
      }
    }
    for (int i = 0; i < body_->outputs(); ++i) {
      if (!c.wants(i)) continue;
      auto k = static_cast<size_t>(i < states_ ? i : i - states_);
      c.set(i, (i < states_ ? final_states : final_rows)[k].finish(body_->output_type(i)));
    }
  }

 private:
  std::vector<int64_t> backward_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(scan) {
  r.add({.name = "Scan", .since = 8, .until = 8, .make = make_kernel<Scan8>, .dynamic = true});
  r.add({.name = "Scan", .since = 9, .make = make_kernel<Scan>, .dynamic = true});
}
