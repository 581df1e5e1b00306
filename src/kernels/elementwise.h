#pragma once
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "base/types.h"
#include "kernels/activation.h"
#include "kernels/broadcast_plan.h"

namespace epona {

/// Element-wise functions on fp32. NaN and infinity follow IEEE 754 and numpy; truth values are 0 and 1.
enum class EwOp : uint8_t {
  activation,  ///< the step's Activation
  copy,
  neg,
  abs,
  sign,
  floor,
  ceil,
  round,  ///< half to even
  sqrt,
  pow_half,  ///< x^0.5 as pow has it: -inf gives inf, -0 gives 0
  rsqrt,
  reciprocal,
  square,
  cube,
  exp,
  log,
  erf,
  sin,
  cos,
  is_nan,
  logical_not,
  // two operands
  add,
  sub,
  mul,
  div,
  max,  ///< NaN if either is
  min,
  pow,
  equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or,
  logical_xor,
  prelu,  ///< x < 0 ? x y : x
  // three operands
  mul_add,  ///< x y + z
  where,    ///< x != 0 ? y : z
};
int operands(EwOp op);

/// One instruction. Values are numbered: the inputs first, then the result of each step.
struct EwStep {
  EwOp op = EwOp::copy;
  int src[3] = {0, 0, 0};
  Activation activation{};
};

/// A list of element-wise instructions that runs over tiles small enough for the first-level cache. The last step's
/// value is the result. Holds code of the instruction-set tier in force when it was made.
class EwProgram {
 public:
  static constexpr int kMaxInputs = BroadcastPlan::kMaxOperands;
  static constexpr int kMaxSteps = 48;
  static constexpr int kMaxSlots = 8;  ///< intermediate values alive at once
  static constexpr int64_t kTile = 512;

  /// Whether a program fits the limits above.
  static bool fits(int inputs, const std::vector<EwStep>& steps);
  EwProgram(int inputs, const std::vector<EwStep>& steps);

  int inputs() const { return inputs_; }
  double ns_per_item() const { return ns_per_item_; }

  /// Computes the whole output. Inputs and the output may be float32, float16, bfloat16 or boolean (0 and 1). The
  /// output may be an input that is dense and as wide per element.
  void run(const BroadcastPlan& plan, const void* const* inputs, const DataType* types, void* out, DataType out_type,
           ThreadPool& pool) const;

 private:
  struct Instruction {
    void (*fn)(const Activation& activation, const float* const* src, const int* inc, float* dst, int64_t n);
    Activation activation;
    int sources;
    int src[3];
    int slot;  ///< where the result goes; -1: the output
  };
  struct Tile;
  void run_range(const BroadcastPlan& plan, const void* const* inputs, const DataType* types, void* out,
                 DataType out_type, int64_t begin, int64_t end) const;
  void run_tile(Tile& tile, void* out, DataType out_type, int64_t n) const;

  int inputs_;
  double ns_per_item_ = 0;
  std::vector<Instruction> code_;
};

}  // namespace epona
