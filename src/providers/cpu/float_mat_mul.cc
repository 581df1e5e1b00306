#include "providers/cpu/float_mat_mul.h"

#include <algorithm>

#include "base/half_block.h"
#include "base/weight_memory.h"
#include "ops/broadcast.h"

namespace epona::cpu {
namespace {

constexpr size_t kAlign = 64;

size_t round_up(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }
size_t float_bytes(int64_t count) { return round_up(static_cast<size_t>(count) * sizeof(float)); }

/// Rows and columns of the matrix that an operand is, after its transposition; a vector is one row, or one column.
struct Matrix {
  int64_t rows, cols;
};

Matrix matrix_of(const Shape& shape, bool transposed, bool is_left) {
  const int rank = shape.rank();
  if (rank == 1) return is_left ? Matrix{1, shape[0]} : Matrix{shape[0], 1};
  Matrix m{shape[rank - 2], shape[rank - 1]};
  if (transposed) std::swap(m.rows, m.cols);
  return m;
}

int batch_rank(const Shape& shape) { return std::max(shape.rank() - 2, 0); }

/// For every entry of the output's batch, in elements, where the operand's matrix starts.
void fill_offsets(const Shape& out, int out_batch_rank, const Shape& operand, int64_t* offsets) {
  const int rank = batch_rank(operand);
  const int64_t matrix = operand.size(rank, operand.rank());
  int64_t count = 1;
  offsets[0] = 0;
  // The dims are taken from the last one on: each repeats what is there with its own stride.
  int64_t stride = matrix;
  for (int d = out_batch_rank - 1; d >= 0; --d) {
    const int own = d - (out_batch_rank - rank);
    const int64_t dim = out[d], mine = own >= 0 ? operand[own] : 1;
    for (int64_t i = dim - 1; i >= 0; --i) {
      for (int64_t j = 0; j < count; ++j) offsets[i * count + j] = offsets[j] + (mine == 1 ? 0 : i * stride);
    }
    count *= dim;
    stride *= mine;
  }
}

}  // namespace

/// The product as the kernel takes it, and the batch of the operands.
struct FloatMatMul::Problem {
  Gemm gemm;
  bool a_offsets = false, b_offsets = false;  // their batch is broadcast in some dims only
  int out_batch_rank = 0;

  size_t offsets_bytes() const {
    return round_up(static_cast<size_t>(gemm.batch * (a_offsets + b_offsets)) * sizeof(int64_t));
  }
};

bool FloatMatMul::supports(const NodeInfo& info, const MatMulForm& form, std::string& reason) {
  const DataType type = info.in_type(0);
  if (type == DataType::float32 || is_half(type)) return true;
  (void)form;
  reason = cat("no fast product of ", type);
  return false;
}

FloatMatMul::FloatMatMul(const NodeInfo& info, const MatMulForm& form) : form_(form), type_(info.in_type(0)) {
  const Tensor* b = info.constant(1);
  if (!b || b->shape.rank() < 1 || b->shape.size(0, batch_rank(b->shape)) != 1 || b->size() == 0) return;
  if (form.matrices_only && b->shape.rank() != 2) return;
  const bool trans = form.trans_b && b->shape.rank() > 1;
  const Matrix m = matrix_of(b->shape, trans, false);
  packed_ = allocate_weights(packed_b_floats(m.rows, m.cols) * sizeof(float));
  const float* values = b->as<float>();  // at any address: the model file does not align its weights
  Tensor wide;
  if (is_half(type_)) {
    wide = Tensor::allocate(DataType::float32, b->shape);
    widen_half(type_, b->data, wide.as<float>(), b->size());
    values = wide.as<float>();
  }
  pack_b(m.rows, m.cols, values, trans ? m.rows : m.cols, trans, static_cast<float*>(packed_.get()));
}

Shape FloatMatMul::output_shape(const ShapeContext& c) const {
  const Shape &a = c.in(0), &b = c.in(1);
  if (form_.matrices_only && (a.rank() != 2 || b.rank() != 2))
    c.refuse("matrices of shapes ", a, " and ", b, ", expected rank 2");
  if (a.rank() < 1 || b.rank() < 1) c.refuse("a product of shapes ", a, " and ", b, ": scalars are not allowed");
  const Matrix left = matrix_of(a, form_.trans_a, true), right = matrix_of(b, form_.trans_b, false);
  if (left.cols != right.rows) {
    c.refuse("matrices of shapes ", a, form_.trans_a ? " (transposed)" : "", " and ", b,
             form_.trans_b ? " (transposed)" : "", " do not multiply: ", left.cols, " columns against ", right.rows,
             " rows");
  }
  Shape out(a.dims().first(static_cast<size_t>(batch_rank(a))));
  if (!broadcast_into(out, Shape(b.dims().first(static_cast<size_t>(batch_rank(b))))))
    c.refuse("batches of shapes ", a, " and ", b, " do not broadcast");
  if (a.rank() > 1) out.push_back(left.rows);
  if (b.rank() > 1) out.push_back(right.cols);
  return out;
}

FloatMatMul::Problem FloatMatMul::describe(const Shape& a, const Shape& b, const Shape& out) const {
  Problem p;
  Gemm& g = p.gemm;
  const Matrix left = matrix_of(a, form_.trans_a, true), right = matrix_of(b, form_.trans_b, false);
  g.m = left.rows;
  g.k = left.cols;
  g.n = right.cols;
  g.trans_a = form_.trans_a && a.rank() > 1;
  g.trans_b = form_.trans_b && b.rank() > 1;
  g.lda = g.trans_a ? g.m : g.k;
  g.ldb = g.trans_b ? g.k : g.n;
  g.ldc = g.n;
  g.b_packed = packed_ != nullptr;
  p.out_batch_rank = std::max(batch_rank(a), batch_rank(b));
  g.batch = out.size(0, p.out_batch_rank);
  g.c_stride = g.m * g.n;
  const int64_t a_batch = a.size(0, batch_rank(a)), b_batch = b.size(0, batch_rank(b));
  g.a_stride = a_batch == 1 ? 0 : g.m * g.k;
  g.b_stride = b_batch == 1 ? 0 : g.k * g.n;
  p.a_offsets = a_batch != 1 && a_batch != g.batch;
  p.b_offsets = b_batch != 1 && b_batch != g.batch;
  // Without elements there is nothing to compute, whatever the batches.
  if (g.batch == 0) p.a_offsets = p.b_offsets = false;
  return p;
}

void FloatMatMul::add_epilogue(Gemm& g, const Shape* bias, const Shape* residual) const {
  GemmEpilogue& e = g.epilogue;
  e.alpha = form_.alpha;
  e.bias_scale = form_.beta;
  e.activation = form_.activation;
  e.residual_last = form_.residual_last;
  if (bias) {
    const int rank = bias->rank();
    const int64_t cols = rank >= 1 ? (*bias)[rank - 1] : 1, rows = rank >= 2 ? (*bias)[rank - 2] : 1;
    e.bias_col_stride = cols == 1 ? 0 : 1;
    e.bias_row_stride = rows == 1 ? 0 : cols;
    g.bias_stride = bias->size() > rows * cols ? rows * cols : 0;
  }
  if (residual) {
    e.residual_ld = g.n;
    g.residual_stride = g.m * g.n;
  }
}

void FloatMatMul::shapes(ShapeContext& c) const {
  Shape out = output_shape(c);
  const Shape *bias = nullptr, *residual = nullptr;
  Problem p = describe(c.in(0), c.in(1), out);
  size_t bytes = p.offsets_bytes();
  if (form_.bias >= 0 && c.has(form_.bias)) {
    bias = &c.in(form_.bias);
    // A bias with a batch of its own has to have the whole batch.
    const bool batched = bias->size(0, std::max(bias->rank() - 2, 0)) != 1;
    if (!broadcasts_to(*bias, out) || (batched && !(*bias == out)))
      c.refuse("C of shape ", *bias, " does not broadcast to ", out);
  }
  if (form_.residual >= 0 && c.has(form_.residual)) {
    residual = &c.in(form_.residual);
    if (!(*residual == out)) c.refuse("a residual of shape ", *residual, " is not of the output's shape, ", out);
  }
  add_epilogue(p.gemm, bias, residual);
  int64_t unused = 0;
  p.gemm.a_offsets = p.a_offsets ? &unused : nullptr;
  p.gemm.b_offsets = p.b_offsets ? &unused : nullptr;
  // The workspace depends on whether there is a bias, not on where.
  float some = 0;
  p.gemm.epilogue.bias = bias ? &some : nullptr;
  p.gemm.epilogue.residual = residual ? &some : nullptr;
  bytes += round_up(gemm_workspace(p.gemm, c.threads()));
  if (is_half(type_)) {
    bytes += float_bytes(c.in(0).size()) + float_bytes(out.size()) + (packed_ ? 0 : float_bytes(c.in(1).size()));
    bytes += (bias ? float_bytes(bias->size()) : 0) + (residual ? float_bytes(residual->size()) : 0);
  }
  c.workspace(bytes);
  c.out(0, std::move(out));
}

void FloatMatMul::run(const RunContext& c) const {
  const Tensor &a = c.in(0), &b = c.in(1);
  Tensor& y = c.out(0);
  Problem p = describe(a.shape, b.shape, y.shape);
  Gemm& g = p.gemm;
  const bool with_bias = form_.bias >= 0 && c.has(form_.bias),
             with_residual = form_.residual >= 0 && c.has(form_.residual);
  add_epilogue(g, with_bias ? &c.in(form_.bias).shape : nullptr, with_residual ? &c.in(form_.residual).shape : nullptr);

  char* scratch = c.workspace_as<char>();
  int64_t* offsets = reinterpret_cast<int64_t*>(scratch);
  scratch += p.offsets_bytes();
  for (const bool left : {true, false}) {
    if (!(left ? p.a_offsets : p.b_offsets)) continue;
    fill_offsets(y.shape, p.out_batch_rank, left ? a.shape : b.shape, offsets);
    (left ? g.a_offsets : g.b_offsets) = offsets;
    offsets += g.batch;
  }
  const bool half = is_half(type_);
  const auto take = [&](int64_t count) {
    float* here = reinterpret_cast<float*>(scratch);
    scratch += float_bytes(count);
    return here;
  };
  const auto widen = [&](const Tensor& t) -> const float* {
    if (!half) return t.as<float>();
    float* to = take(t.size());
    constexpr int64_t kBlock = 4096;
    c.pool().parallel_for((t.size() + kBlock - 1) / kBlock, kBlock * 0.5, [&](int64_t begin, int64_t end) {
      const int64_t from = begin * kBlock, count = std::min(end * kBlock, t.size()) - from;
      widen_half(type_, static_cast<const char*>(t.data) + from * 2, to + from, count);
    });
    return to;
  };
  g.a = widen(a);
  g.b = packed_ ? static_cast<const float*>(packed_.get()) : widen(b);
  if (with_bias) g.epilogue.bias = widen(c.in(form_.bias));
  if (with_residual) g.epilogue.residual = widen(c.in(form_.residual));
  g.c = half ? take(y.size()) : y.as<float>();
  gemm(g, scratch, c.pool());
  if (!half) return;
  constexpr int64_t kBlock = 4096;
  c.pool().parallel_for((y.size() + kBlock - 1) / kBlock, kBlock * 0.5, [&](int64_t begin, int64_t end) {
    const int64_t from = begin * kBlock, count = std::min(end * kBlock, y.size()) - from;
    narrow_half(type_, g.c + from, static_cast<char*>(y.data) + from * 2, count);
  });
}

}  // namespace epona::cpu
