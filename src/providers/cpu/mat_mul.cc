#include "passes/activation_attribute.h"
#include "providers/cpu/cpu_registry.h"
#include "providers/cpu/float_mat_mul.h"

namespace epona::cpu {
namespace {

KernelPtr make(const NodeInfo& info, const MatMulForm& form, std::string& reason) {
  if (!FloatMatMul::supports(info, form, reason)) return nullptr;
  return std::make_unique<FloatMatMul>(info, form);
}

KernelPtr make_mat_mul(const NodeInfo& info, KernelPtr&, std::string& reason) { return make(info, {}, reason); }

KernelPtr make_gemm(const NodeInfo& info, KernelPtr&, std::string& reason) {
  MatMulForm form;
  form.trans_a = info.attr("transA", 0) != 0;
  form.trans_b = info.attr("transB", 0) != 0;
  form.alpha = info.attr("alpha", 1.0f);
  form.beta = info.attr("beta", 1.0f);
  form.bias = info.has(2) && form.beta != 0 ? 2 : -1;
  form.matrices_only = true;
  return make(info, form, reason);
}

/// com.microsoft
KernelPtr make_fused_mat_mul(const NodeInfo& info, KernelPtr&, std::string& reason) {
  if (info.attr("transBatchA", 0) != 0 || info.attr("transBatchB", 0) != 0) {
    reason = "transposed batches";
    return nullptr;
  }
  MatMulForm form;
  form.trans_a = info.attr("transA", 0) != 0;
  form.trans_b = info.attr("transB", 0) != 0;
  form.alpha = info.attr("alpha", 1.0f);
  return make(info, form, reason);
}

/// FusedMatMul(A, B, bias?, residual?) of domain epona, made by pass fuse_mat_mul.
KernelPtr make_internal(const NodeInfo& info) {
  MatMulForm form;
  form.trans_a = info.attr("transA", 0) != 0;
  form.trans_b = info.attr("transB", 0) != 0;
  form.alpha = info.attr("alpha", 1.0f);
  form.beta = info.attr("beta", 1.0f);
  form.bias = info.has(2) ? 2 : -1;
  form.residual = info.has(3) ? 3 : -1;
  form.residual_last = info.attr("residual_last", 0) != 0;
  form.activation = read_activation(info);
  form.matrices_only = info.attr("matrices_only", 0) != 0;
  return std::make_unique<FloatMatMul>(info, form);
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(mat_mul) {
  r.add({.name = "MatMul", .make = make_mat_mul});
  r.add({.name = "Gemm", .since = 7, .make = make_gemm});
  r.add({.name = "FusedMatMul", .domain = "com.microsoft", .make = make_fused_mat_mul});
  r.add_internal({.name = "FusedMatMul", .make = make_internal, .inplace = 1u << 3});
}
