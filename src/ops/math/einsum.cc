#include <algorithm>

#include "ops/convert.h"
#include "ops/dispatch.h"
#include "ops/math/einsum_equation.h"
#include "ops/multiply.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Labels in an order, for nested loops.
struct Order {
  int labels[kEinsumLabels];
  int count = 0;
  void push(int label) { labels[count++] = label; }
  int64_t size(const EinsumView& view) const {
    int64_t product = 1;
    for (int i = 0; i < count; ++i) product = checked_mul(product, view.dims[labels[i]]);
    return product;
  }
};

/// The labels of `mask` by falling stride.
Order by_stride(const EinsumView& view, uint64_t mask) {
  Order order;
  for (int label = 0; label < kEinsumLabels; ++label)
    if (mask >> label & 1) order.push(label);
  std::stable_sort(order.labels, order.labels + order.count,
                   [&](int a, int b) { return view.strides[a] > view.strides[b]; });
  return order;
}

/// A loop nest over labels of a source.
struct Nest {
  int64_t dims[kEinsumLabels], strides[kEinsumLabels];
  int count = 0;
  void add(int64_t dim, int64_t stride) {
    dims[count] = dim;
    strides[count++] = stride;
  }
  /// Steps to the next position; false at the end.
  bool next(int64_t* index, int64_t& offset) const {
    for (int d = count - 1; d >= 0; --d) {
      offset += strides[d];
      if (++index[d] < dims[d]) return true;
      offset -= dims[d] * strides[d];
      index[d] = 0;
    }
    return false;
  }
};

/// Copies a source into the order of `targets`, summing over the labels that are not in it.
template <class T>
void gather(const T* from, const EinsumView& view, const Order& targets, T* to) {
  Nest kept, summed;
  uint64_t target_mask = 0;
  int64_t size = 1, terms = 1;
  for (int i = 0; i < targets.count; ++i) {
    const int label = targets.labels[i];
    target_mask |= uint64_t{1} << label;
    kept.add(view.dims[label], view.has(label) ? view.strides[label] : 0);
    size *= view.dims[label];
  }
  for (int label = 0; label < kEinsumLabels; ++label)
    if (view.has(label) && !(target_mask >> label & 1)) {
      summed.add(view.dims[label], view.strides[label]);
      terms *= view.dims[label];
    }
  if (size == 0) return;
  int64_t index[kEinsumLabels] = {}, offset = 0;
  do {
    T sum = 0;
    if (summed.count == 0) {
      sum = from[offset];
    } else if (terms > 0) {
      int64_t inner[kEinsumLabels] = {}, at = offset;
      do sum += from[at];
      while (summed.next(inner, at));
    }
    *to++ = sum;
  } while (kept.next(index, offset));
}

/// How two views meet: labels of both that are kept, of one only, and of both that are summed.
struct Contraction {
  Order batch, m, n, k;  // by the first operand's strides; n by the second's
  EinsumView a, b, result;
  Order a_order, b_order;
  int64_t batches, rows, cols, depth;

  Contraction(const Node& node, const EinsumView& first, const EinsumView& second, uint64_t needed)
      : a(first), b(second) {
    // Either side of a shared label may be a broadcast one.
    const uint64_t both = a.labels & b.labels;
    for (int label = 0; label < kEinsumLabels; ++label)
      if (both >> label & 1) {
        int64_t &x = a.dims[label], &y = b.dims[label];
        if (x != y && x != 1 && y != 1)
          fail(Code::invalid_argument, describe(node), ": a label has sizes ", x, " and ", y);
        x = y = x == 1 ? y : x;
      }
    batch = by_stride(a, both & needed);
    k = by_stride(a, both & ~needed);
    m = by_stride(a, a.labels & ~b.labels & needed);
    n = by_stride(b, b.labels & ~a.labels & needed);
    for (const Order* part : {&batch, &m, &k})
      for (int i = 0; i < part->count; ++i) a_order.push(part->labels[i]);
    for (const Order* part : {&batch, &k, &n})
      for (int i = 0; i < part->count; ++i) b_order.push(part->labels[i]);
    batches = batch.size(a);
    rows = m.size(a);
    cols = n.size(b);
    depth = k.size(a);
    int64_t stride = 1;
    auto place = [&](const Order& part, const EinsumView& from) {
      for (int i = part.count - 1; i >= 0; --i) {
        const int label = part.labels[i];
        result.labels |= uint64_t{1} << label;
        result.dims[label] = from.dims[label];
        result.strides[label] = from.dims[label] == 1 ? 0 : stride;
        stride = checked_mul(stride, from.dims[label]);
      }
    };
    place(n, b);
    place(m, a);
    place(batch, a);
  }
  int64_t a_size() const { return checked_mul(checked_mul(batches, rows), depth); }
  int64_t b_size() const { return checked_mul(checked_mul(batches, cols), depth); }
  int64_t size() const { return checked_mul(checked_mul(batches, rows), cols); }
};

/// Operands are taken two at a time, left to right, each pair as a stack of matrix products of packed copies.
class Einsum final : public Kernel {
 public:
  explicit Einsum(const NodeInfo& info) {
    std::string text = info.attr("equation", "");
    if (std::string problem = equation_.parse(text); !problem.empty())
      info.refuse(Code::invalid_argument, "equation \"", text, "\": ", problem);
    if (static_cast<int>(equation_.terms.size()) != info.inputs())
      info.refuse(Code::invalid_argument, "equation \"", text, "\" has ", equation_.terms.size(), " terms for ",
                  info.inputs(), " inputs");
    DataType type = info.in_type(0);
    if (is_float(type))
      compute_ = type == DataType::float64 ? type : DataType::float32;
    else if (is_integer(type))
      compute_ = type_bits(type) == 64 ? DataType::uint64 : DataType::uint32;
    else
      info.refuse(Code::not_implemented, "element type ", type);
  }

  void shapes(ShapeContext& c) const override {
    EinsumView current = operand(c, 0, c.in(0));
    int64_t elements = 0;
    auto grow = [&](int64_t count) { elements = checked_add(elements, (count + 15) / 16 * 16); };
    const bool native = is_native(c.in_type(0));
    if (!native) grow(c.in(0).size());
    for (int i = 1; i < c.inputs(); ++i) {
      Contraction step(c.node(), current, operand(c, i, c.in(i)), needed_after(i));
      if (!native) grow(c.in(i).size());
      grow(step.a_size());
      grow(step.b_size());
      grow(step.size());
      current = step.result;
    }
    // An output label that no operand has is one of the ellipsis where all are shorter: it cannot be.
    Shape out;
    const Order order = output_order(current);
    for (int i = 0; i < order.count; ++i) out.push_back(current.dims[order.labels[i]]);
    if (!native) grow(out.size());
    c.workspace(type_bytes(compute_, elements));
    c.out(0, std::move(out));
  }

  void run(const RunContext& c) const override {
    dispatch(compute_, Types<float, double, uint32_t, uint64_t>{}, [&]<class T>() { go<T>(c); });
  }

 private:
  template <class Context>
  EinsumView operand(const Context& c, int i, const Shape& shape) const {
    EinsumView view;
    if (auto problem = view_operand(equation_.terms[static_cast<size_t>(i)], shape, view); !problem.empty())
      c.refuse("input ", i, ": ", problem);
    return view;
  }
  /// Labels that the output or an operand after the i-th still asks for.
  uint64_t needed_after(int i) const {
    constexpr uint64_t kEllipsis = ~uint64_t{0} << kEinsumLetters;
    uint64_t mask = 0;
    auto add = [&](const std::vector<int>& term) {
      for (int label : term) mask |= label == kEinsumEllipsis ? kEllipsis : uint64_t{1} << label;
    };
    add(equation_.output);
    for (size_t t = static_cast<size_t>(i) + 1; t < equation_.terms.size(); ++t) add(equation_.terms[t]);
    return mask;
  }
  Order output_order(const EinsumView& view) const {
    Order order;
    for (int label : equation_.output) {
      if (label != kEinsumEllipsis) {
        order.push(label);
        continue;
      }
      for (int e = kEinsumLetters; e < kEinsumLabels; ++e)
        if (view.has(e)) order.push(e);
    }
    return order;
  }
  bool is_native(DataType type) const { return type == compute_ || type == DataType::int32 || type == DataType::int64; }

  template <class T>
  void go(const RunContext& c) const {
    T* next = c.workspace_as<T>();
    auto take = [&](int64_t count) {
      T* memory = next;
      next += (count + 15) / 16 * 16;
      return memory;
    };
    auto load = [&](const Tensor& x) -> const T* {
      if (is_native(x.type)) return static_cast<const T*>(x.data);
      T* wide = take(x.size());
      convert_elements(x.type, x.data, compute_, wide, 0, x.size());
      return wide;
    };
    EinsumView view = operand(c, 0, c.in(0).shape);
    const T* values = load(c.in(0));
    for (int i = 1; i < c.inputs(); ++i) {
      const Contraction step(c.node(), view, operand(c, i, c.in(i).shape), needed_after(i));
      const T* other = load(c.in(i));
      T *a = take(step.a_size()), *b = take(step.b_size()), *result = take(step.size());
      gather(values, step.a, step.a_order, a);
      gather(other, step.b, step.b_order, b);
      each_row_block(
          c.pool(), step.batches, step.rows, step.cols, step.depth, [&](int64_t batch, int64_t row, int64_t rows) {
            multiply<T, T>(rows, step.cols, step.depth, {a + (batch * step.rows + row) * step.depth, step.depth, 1},
                           {b + batch * step.depth * step.cols, step.cols, 1},
                           result + (batch * step.rows + row) * step.cols, step.cols);
          });
      view = step.result;
      values = result;
    }
    Tensor& y = c.out(0);
    const bool native = is_native(y.type);
    T* to = native ? static_cast<T*>(y.data) : take(y.size());
    gather(values, view, output_order(view), to);
    if (!native) convert_elements(compute_, to, y.type, y.data, 0, y.size());
  }

  EinsumEquation equation_;
  DataType compute_ = DataType::float32;
};

}  // namespace
}  // namespace epona

EPONA_OPS(einsum) { r.add({.name = "Einsum", .since = 12, .make = make_kernel<Einsum>}); }
