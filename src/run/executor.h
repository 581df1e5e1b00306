#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "graph/output_pool.h"
#include "plan/plan.h"
#include "run/block_pool.h"
#include "run/frame.h"

namespace epona {

/// Runs a plan. Any number of threads may call run() at once; each takes a frame of its own.
class Executor {
 public:
  explicit Executor(std::shared_ptr<const Plan> plan);

  const Plan& plan() const { return *plan_; }

  /// Inputs in the plan's order; a value of kind none takes the initialiser's default. Captures in the order of
  /// Plan::captures. An output that comes in as a tensor with memory is written there (its shape must fit); an empty one
  /// gets its own memory. Outputs never point into a frame.
  /// Inputs may be in the memory of any device, and outputs are left on the device that `outputs[i].tensor.device` names:
  /// in the memory that comes in, or in new memory. Where the plan works on that device, nothing is copied.
  void run(std::span<const RuntimeValue> inputs, std::span<const RuntimeValue* const> captures,
           std::span<RuntimeValue> outputs, const RunEnv& env) const;

 private:
  std::unique_ptr<Frame> take_frame(std::span<const RuntimeValue> inputs, std::span<const RuntimeValue* const> captures,
                                    std::vector<int> places) const;
  std::vector<int> places(std::span<const RuntimeValue> inputs, std::span<const RuntimeValue> outputs) const;
  RuntimeValue feed_from_device(Frame& frame, size_t input, const Tensor& tensor) const;
  void feed(Frame& frame, std::span<const RuntimeValue> inputs, std::span<const RuntimeValue* const> captures) const;
  void bind(Frame& frame, int segment, std::span<RuntimeValue> outputs) const;
  void give_memory(RuntimeValue& output, int index, const Tensor& shown, Device* device) const;
  void run_segment(Frame& frame, int segment, const RunEnv& env) const;
  void collect(Frame& frame, std::span<RuntimeValue> outputs) const;

  std::shared_ptr<const Plan> plan_;
  mutable BlockPools blocks_;
  std::shared_ptr<OutputPool> output_pool_ = std::make_shared<OutputPool>();
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Frame>> idle_;  // at most kMaxFrames; the least recently used goes first
  mutable uint64_t clock_ = 0;
};

/// A subgraph as kernels see it: an executor over the body's plan.
class PlanSubgraph final : public Subgraph {
 public:
  explicit PlanSubgraph(std::shared_ptr<const Plan> plan) : executor_(std::move(plan)) {}
  int inputs() const override { return static_cast<int>(executor_.plan().inputs.size()); }
  int outputs() const override { return static_cast<int>(executor_.plan().outputs.size()); }
  const Type& input_type(int i) const override { return executor_.plan().slots[executor_.plan().inputs[i]].type; }
  const Type& output_type(int i) const override { return executor_.plan().slots[executor_.plan().outputs[i]].type; }
  void run(const RunContext& outer, std::span<const RuntimeValue> inputs,
           std::span<RuntimeValue> outputs) const override;

 private:
  Executor executor_;
};

}  // namespace epona
