#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "kernels/convert.h"
#include "kernels/elementwise.h"
#include "kernels/elementwise_steps.h"

namespace epona {
namespace {

// Rows shorter than this are not worth a tile of their own: tiles then span rows, and operands that are repeated within
// them are written out.
constexpr int64_t kShortRow = 128;
constexpr int kSplat = 16;  // a scalar operand is repeated as often as the widest vector has lanes

size_t bytes_of(DataType type) { return type_bits(type) / 8; }

const char* at(const void* base, int64_t index, DataType type) {
  return static_cast<const char*>(base) + index * static_cast<int64_t>(bytes_of(type));
}

double step_ns(const EwStep& step) {
  switch (step.op) {
    case EwOp::activation:
      return activation_ns(step.activation.kind);
    case EwOp::exp:
      return 0.6;
    case EwOp::log:
    case EwOp::erf:
      return 1.1;
    case EwOp::sin:
    case EwOp::cos:
      return 2;
    case EwOp::pow:
      return 5;
    case EwOp::div:
    case EwOp::sqrt:
    case EwOp::rsqrt:
    case EwOp::reciprocal:
      return 0.25;
    default:
      return 0.12;
  }
}

/// Assigns each step's value a slot that is free from there to its last reader; -1 when they run out.
int assign_slots(int inputs, const std::vector<EwStep>& steps, std::vector<int>& slots) {
  const int count = static_cast<int>(steps.size());
  std::vector<int> last(count, -1);
  for (int s = 0; s < count; ++s)
    for (int k = 0; k < operands(steps[s].op); ++k)
      if (steps[s].src[k] >= inputs) last[steps[s].src[k] - inputs] = s;
  slots.assign(count, -1);
  int free_at[EwProgram::kMaxSlots] = {};  // step from which the slot may be written
  int used = 0;
  for (int s = 0; s + 1 < count; ++s) {
    int slot = 0;
    while (slot < EwProgram::kMaxSlots && free_at[slot] > s) ++slot;
    if (slot == EwProgram::kMaxSlots) return -1;
    slots[s] = slot;
    free_at[slot] = std::max(last[s], s + 1);  // the step that reads it last may overwrite it
    used = std::max(used, slot + 1);
  }
  return used;
}

}  // namespace

int operands(EwOp op) {
  if (op >= EwOp::mul_add) return 3;
  return op >= EwOp::add ? 2 : 1;
}

bool EwProgram::fits(int inputs, const std::vector<EwStep>& steps) {
  std::vector<int> slots;
  return inputs >= 1 && inputs <= kMaxInputs && !steps.empty() && static_cast<int>(steps.size()) <= kMaxSteps &&
         assign_slots(inputs, steps, slots) >= 0;
}

EwProgram::EwProgram(int inputs, const std::vector<EwStep>& steps) : inputs_(inputs) {
  std::vector<int> slots;
  if (inputs < 1 || inputs > kMaxInputs || steps.empty() || static_cast<int>(steps.size()) > kMaxSteps ||
      assign_slots(inputs, steps, slots) < 0)
    fail(Code::invalid_argument, "element-wise program of ", inputs, " inputs and ", steps.size(),
         " steps is too large");
  for (size_t s = 0; s < steps.size(); ++s) {
    const EwStep& step = steps[s];
    Instruction code{
        ew_step_function(step.op, step.activation.kind), step.activation, operands(step.op), {0, 0, 0}, slots[s]};
    for (int k = 0; k < code.sources; ++k) {
      if (step.src[k] < 0 || step.src[k] >= inputs + static_cast<int>(s))
        fail(Code::invalid_argument, "element-wise step ", s, " reads value ", step.src[k], " before it is computed");
      // Inputs are numbered first, slots after them.
      code.src[k] = step.src[k] < inputs ? step.src[k] : kMaxInputs + slots[step.src[k] - inputs];
    }
    ns_per_item_ += step_ns(step);
    code_.push_back(code);
  }
}

struct EwProgram::Tile {
  const float* value[kMaxInputs + kMaxSlots];
  int inc[kMaxInputs + kMaxSlots];
  float* slots;
};

void EwProgram::run_tile(Tile& tile, void* out, DataType out_type, int64_t n) const {
  float result[kTile];
  for (const Instruction& code : code_) {
    const float* src[3];
    int inc[3];
    for (int k = 0; k < code.sources; ++k) {
      src[k] = tile.value[code.src[k]];
      inc[k] = tile.inc[code.src[k]];
    }
    if (code.slot >= 0)
      code.fn(code.activation, src, inc, tile.slots + code.slot * kTile, n);
    else if (out_type == DataType::float32)
      code.fn(code.activation, src, inc, static_cast<float*>(out), n);
    else
      code.fn(code.activation, src, inc, result, n);
  }
  if (out_type != DataType::float32) from_float(out_type, result, out, n);
}

void EwProgram::run_range(const BroadcastPlan& plan, const void* const* inputs, const DataType* types, void* out,
                          DataType out_type, int64_t begin, int64_t end) const {
  alignas(64) float slots[kMaxSlots * kTile];
  alignas(64) float splats[kMaxInputs][kSplat];
  alignas(64) float buffers[kMaxInputs][kTile];
  alignas(64) char raw[kTile * 4];
  Tile tile;
  tile.slots = slots;
  for (int s = 0; s < kMaxSlots; ++s) {
    tile.value[kMaxInputs + s] = slots + s * kTile;
    tile.inc[kMaxInputs + s] = 1;
  }

  enum class Mode { dense, scalar, row, gather };
  Mode mode[kMaxInputs];
  const int last = plan.rank - 1;
  const bool by_row = plan.rank > 1 && plan.dims[last] >= kShortRow;
  bool any_row = false;
  for (int i = 0; i < inputs_; ++i) {
    if (plan.dense(i)) {
      mode[i] = Mode::dense;
    } else if (plan.scalar(i)) {
      mode[i] = Mode::scalar;
      to_float(types[i], inputs[i], splats[i], 1);
      std::fill_n(splats[i] + 1, kSplat - 1, splats[i][0]);
      tile.value[i] = splats[i];
      tile.inc[i] = 0;
    } else {
      mode[i] = by_row ? Mode::row : Mode::gather;
      any_row = any_row || by_row;
    }
  }

  int64_t row_end = any_row ? begin : end;
  int64_t row_offset[kMaxInputs] = {};  // element of operand i under `begin`
  while (begin < end) {
    if (any_row && begin == row_end) {
      row_end = (begin / plan.dims[last] + 1) * plan.dims[last];
      for (int i = 0; i < inputs_; ++i) {
        if (mode[i] != Mode::row) continue;
        row_offset[i] = plan.offset(i, begin);
        if (plan.strides[i][last] != 0) continue;
        to_float(types[i], at(inputs[i], row_offset[i], types[i]), splats[i], 1);
        std::fill_n(splats[i] + 1, kSplat - 1, splats[i][0]);
        tile.value[i] = splats[i];
        tile.inc[i] = 0;
      }
    }
    const int64_t n = std::min({kTile, end - begin, row_end - begin});
    for (int i = 0; i < inputs_; ++i) {
      if (mode[i] == Mode::scalar || (mode[i] == Mode::row && plan.strides[i][last] == 0)) continue;
      const void* from = at(inputs[i], mode[i] == Mode::dense ? begin : row_offset[i], types[i]);
      row_offset[i] += n;
      tile.inc[i] = 1;
      if (mode[i] == Mode::gather) {
        const bool floats = types[i] == DataType::float32;
        gather_broadcast(plan, i, inputs[i], static_cast<int>(bytes_of(types[i])), begin, n,
                         floats ? static_cast<void*>(buffers[i]) : raw);
        from = floats ? static_cast<const void*>(buffers[i]) : raw;
      }
      if (types[i] == DataType::float32) {
        tile.value[i] = static_cast<const float*>(from);
      } else {
        to_float(types[i], from, buffers[i], n);
        tile.value[i] = buffers[i];
      }
    }
    run_tile(tile, const_cast<char*>(at(out, begin, out_type)), out_type, n);
    begin += n;
  }
}

void EwProgram::run(const BroadcastPlan& plan, const void* const* inputs, const DataType* types, void* out,
                    DataType out_type, ThreadPool& pool) const {
  pool.parallel_for(plan.size, ns_per_item_,
                    [&](int64_t begin, int64_t end) { run_range(plan, inputs, types, out, out_type, begin, end); });
}

}  // namespace epona
