#include <algorithm>

#include "kernels/gemm_int8_columns.h"
#include "kernels/parallel.h"
#include "ops/nn/columns.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

bool is_byte(DataType type) { return type == DataType::uint8 || type == DataType::int8; }
size_t round_up(size_t bytes) { return (bytes + 63) / 64 * 64; }

/// ConvInteger in plain layout, and ConvIntegerToFloat (x, w, x_zero, w_zero, bias, x_scale, w_scale), which is
/// float(sums + bias) * (x_scale * w_scale): the image's windows are gathered as columns of a matrix, a block of output
/// positions at a time.
class ConvIntegerGemm final : public Kernel {
 public:
  explicit ConvIntegerGemm(const NodeInfo& info)
      : window_(info),
        group_(info.attr("group", 1)),
        x_signed_(info.in_type(0) == DataType::int8),
        w_signed_(info.in_type(1) == DataType::int8),
        to_float_(info.node().op == "ConvIntegerToFloat") {
    if (group_ < 1) info.refuse(Code::invalid_graph, "group is ", group_);
  }

  void shapes(ShapeContext& c) const override {
    const Shape &x = c.in(0), &w = c.in(1);
    if (x.rank() < 3 || w.rank() != x.rank())
      c.refuse("input ", x, " and weights ", w, " should have the same rank of 3 or more");
    if (w[0] % group_ != 0 || x[1] != checked_mul(w[1], group_))
      c.refuse("input ", x, " and weights ", w, " do not fit ", group_, " groups");
    if (!window_.kernel.empty() && Shape(window_.kernel) != kernel_dims(w))
      c.refuse("kernel_shape is ", Shape(window_.kernel), " but weights have shape ", w);
    if (c.has(2) && c.in(2).size() != 1) c.refuse("x_zero_point has shape ", c.in(2), "; expected a scalar");
    if (c.has(3) && c.in(3).size() != 1 && c.in(3).size() != w[0])
      c.refuse("w_zero_point has shape ", c.in(3), "; expected a scalar or {", w[0], "}");
    for (int i : {4, 5, 6})
      if (c.has(i) && c.in(i).size() != (i == 4 ? w[0] : 1)) c.refuse("input ", i, " has shape ", c.in(i));
    const Window window = slide(window_, c.node(), x, kernel_dims(w));
    Shape y{x[0], w[0]};
    for (int64_t d : window.out) y.push_back(d);
    c.workspace(Layout(window, w, group_, c.threads()).total(c.threads()));
    c.out(0, std::move(y));
  }

  void run(const RunContext& c) const override {
    const Tensor &x = c.in(0), &w = c.in(1);
    const Window window = slide(window_, c.node(), x.shape, kernel_dims(w.shape));
    const Layout at(window, w.shape, group_, c.pool().threads());
    char* const memory = c.workspace_as<char>();
    Int8Columns product;
    product.m = at.rows, product.k = at.k;
    product.a = memory;
    product.a_signed = w_signed_, product.b_signed = x_signed_;
    if (c.has(3)) product.a_zero_stride = c.in(3).size() == 1 ? 0 : 1;
    if (c.has(2)) product.b_zero = x_signed_ ? *c.data<int8_t>(2) : *c.data<uint8_t>(2);
    product.ldc = at.out_size;
    if (to_float_) {
      product.output = Int8Output::f32;
      product.scale = *c.data<float>(5) * *c.data<float>(6);
    }
    const auto padding = static_cast<uint8_t>(product.b_zero);
    const int64_t blocks = (at.out_size + at.block - 1) / at.block;
    const double cost = static_cast<double>(at.block * at.k) * (0.02 * static_cast<double>(at.rows) + 0.3);
    for (int64_t g = 0; g < group_; ++g) {
      pack_a_int8(at.rows, at.k, w.as<uint8_t>() + g * at.rows * at.k, at.k, w_signed_, memory, c.pool());
      if (c.has(3)) product.a_zero = c.in(3).as<uint8_t>() + g * at.rows * product.a_zero_stride;
      if (c.has(4)) product.add = c.data<int32_t>(4) + g * at.rows;
      for (int64_t n = 0; n < x.shape[0]; ++n) {
        const uint8_t* image = x.as<uint8_t>() + (n * group_ + g) * at.channels * at.in_size;
        int32_t* y = static_cast<int32_t*>(c.out(0).data) + (n * group_ + g) * at.rows * at.out_size;
        parallel_items(c.pool(), blocks, cost, [&](int slot, int64_t item) {
          uint8_t* columns = reinterpret_cast<uint8_t*>(memory) + at.packed + at.slot * static_cast<size_t>(slot);
          const int64_t begin = item * at.block;
          Int8Columns part = product;
          part.n = std::min(at.block, at.out_size - begin);
          for (int64_t row = 0; row < at.k; ++row)
            gather_row(window, image + row / at.taps * at.in_size, row % at.taps, begin, part.n, padding,
                       columns + row * part.n);
          part.b = columns;
          part.c = y + begin;
          gemm_int8_columns(part, columns + at.columns);
        });
      }
    }
  }

 private:
  static Shape kernel_dims(const Shape& w) { return Shape(w.dims().subspan(2)); }

  /// Sizes of one group, and of the workspace: packed weights, then for each thread columns and scratch.
  struct Layout {
    int64_t channels, taps, k, rows, in_size, out_size, block;
    size_t packed, columns, slot;

    Layout(const Window& window, const Shape& w, int64_t group, int threads)
        : channels(w[1]),
          taps(window.kernel_size()),
          k(checked_mul(channels, taps)),
          rows(w[0] / group),
          in_size(window.in_size()),
          out_size(window.out_size()) {
      const int64_t fits = int8_columns_block(k);
      // All threads end together.
      const int64_t rounds = std::max<int64_t>(1, (out_size + fits * threads - 1) / (fits * threads));
      const int64_t share = (out_size + rounds * threads - 1) / (rounds * threads);
      block = std::max<int64_t>(16, (share + 15) / 16 * 16);
      packed = round_up(packed_a_int8_bytes(rows, k));
      columns = round_up(static_cast<size_t>(checked_mul(k, block)));
      slot = columns + round_up(int8_columns_workspace(rows, block, k));
    }
    size_t total(int threads) const { return packed + slot * static_cast<size_t>(threads); }
  };

  WindowAttributes window_;
  int64_t group_;
  bool x_signed_, w_signed_, to_float_;
};

KernelPtr make(const NodeInfo& info, KernelPtr&, std::string& reason) {
  if (is_byte(info.in_type(0)) && is_byte(info.in_type(1))) return std::make_unique<ConvIntegerGemm>(info);
  reason = "element types";
  return nullptr;
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(conv_integer_gemm) {
  r.add({.name = "ConvInteger", .make = make});
  r.add_internal({.name = "ConvIntegerToFloat", .make = make_kernel<ConvIntegerGemm>});
}
