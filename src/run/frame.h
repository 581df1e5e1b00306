#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "run/block_pool.h"
#include "run/offsets.h"

namespace epona {

/// One kernel call of a frame, with everything it needs already looked up.
struct Call {
  const Kernel* kernel;
  RunContext context;
  size_t workspace_offset;
  int step;
};

/// What one segment needs of one memory (Plan::memories).
struct MemoryFrame {
  std::vector<std::pair<int, size_t>> placed;  ///< slot and offset in the block
  size_t bytes = 0;
  Block block;
  void* base = nullptr;  ///< where calls and slots point to now
};

using BlockPools = std::vector<std::unique_ptr<BlockPool>>;  ///< one a memory

/// One segment made concrete.
struct SegmentFrame {
  bool built = false;
  std::vector<int> places;       ///< Frame::places, as it was built for
  std::vector<Shape> dims;       ///< of dim_sources, as it was built for
  std::vector<Tensor> contents;  ///< of content_sources, as it was built for
  std::vector<Call> calls;
  std::vector<MemoryFrame> memories;
};

/// A plan made concrete for one set of input shapes: used by one run at a time.
class Frame {
 public:
  Frame(std::shared_ptr<const Plan> plan, BlockPools& blocks);

  RuntimeValue& slot(int id) { return slots_[id]; }
  /// Makes segment `g` fit the values that its sources have now (building it when they changed) and gives it memory.
  /// Everything before it has run.
  void prepare(int g, const RunEnv& env);
  SegmentFrame& segment(int g) { return segments_[g]; }
  /// After bound outputs got their memory: lets aliases of them, and of slots from outside, follow; takes over inputs that
  /// are fed in a device's memory.
  void update_aliases(int g);
  /// Gives back the memory and what dynamic kernels made.
  void release();

  RunEnv env;  ///< kernels keep pointers to it
  uint64_t last_used = 0;
  std::vector<Shape> input_dims;
  /// The memories that inputs are fed in, then those that outputs are wanted in (-1: one that they cannot be left in);
  /// empty when all is the host's.
  std::vector<int> places;
  std::vector<Tensor> fed;  ///< inputs fed in the memory of a device

  /// Whether an output stays in the memory of the device that made it.
  bool kept(int output) const { return place_of_output(output) > 0; }
  /// Whether it is written into the caller's host memory.
  bool bound(int output) const { return place_of_output(output) == 0; }

 private:
  int place_of_output(int output) const { return places.empty() ? 0 : places[plan_->inputs.size() + output]; }
  bool fed_in_place(const StepPlan& step) const {
    return step.fed_input >= 0 && !places.empty() && places[step.fed_input] == step.memory;
  }
  /// Lies in the memory of a graph output.
  bool is_bound(const SlotPlan& slot) const {
    return (slot.bound_output >= 0 && bound(slot.bound_output)) || (slot.kept_output >= 0 && kept(slot.kept_output));
  }
  bool fits(int g) const;
  void remember(int g);
  void build(int g);
  void rebase(SegmentFrame& segment, int memory);
  void build_step(SegmentFrame& segment, int s);
  void evaluate_now(int s, size_t workspace);

  struct StepArgs {
    std::span<RuntimeValue* const> inputs, outputs, captures;
  };

  std::shared_ptr<const Plan> plan_;
  BlockPools& blocks_;
  std::vector<RuntimeValue> slots_;
  std::vector<RuntimeValue*> pointers_;
  std::vector<StepArgs> args_;
  std::vector<SegmentFrame> segments_;
  std::vector<char> evaluated_;  ///< slot has its elements when the frame is built
  std::vector<int64_t> offset_;  ///< of roots placed in the segment being built; -1 otherwise
  std::vector<size_t> size_;
  std::vector<OffsetAllocator> offsets_;  ///< one a memory
};

/// The message that wraps a kernel's error.
[[noreturn]] void rethrow_kernel_error(const StepPlan& step, const std::exception& error);

}  // namespace epona
