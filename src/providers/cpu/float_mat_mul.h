#pragma once
#include <memory>

#include "kernels/gemm.h"
#include "ops/kernel.h"

namespace epona::cpu {

/// What a matrix product computes besides the product; inputs 0 and 1 are A and B.
struct MatMulForm {
  bool trans_a = false, trans_b = false;  ///< of the last two dims
  float alpha = 1, beta = 1;              ///< beta scales the bias
  int bias = -1;                          ///< input: broadcast to the output, as in Gemm; -1: none
  int residual = -1;                      ///< input of the output's shape; -1: none
  bool residual_last = false;
  Activation activation;
  bool matrices_only = false;  ///< Gemm: operands of rank 2
};

/// Products of float32, float16 or bfloat16 matrices, with numpy's rules for batches and vectors. A constant B without
/// batch is packed once. 16-bit floats are widened: sums are of float32.
class FloatMatMul final : public Kernel {
 public:
  /// Whether there is a kernel for the node; otherwise the reason.
  static bool supports(const NodeInfo& info, const MatMulForm& form, std::string& reason);
  FloatMatMul(const NodeInfo& info, const MatMulForm& form);

  void shapes(ShapeContext& c) const override;
  void run(const RunContext& c) const override;
  bool reads_constant(int input) const override { return !(input == 1 && packed_); }

 private:
  struct Problem;
  Problem describe(const Shape& a, const Shape& b, const Shape& out) const;
  Shape output_shape(const ShapeContext& c) const;
  void add_epilogue(Gemm& g, const Shape* bias, const Shape* residual) const;

  MatMulForm form_;
  DataType type_;
  std::shared_ptr<void> packed_;
};

}  // namespace epona::cpu
