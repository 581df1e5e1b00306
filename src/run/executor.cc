#include "run/executor.h"
#include "run/step_observer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace epona {
namespace {

// Frames kept for shapes seen before. They hold offsets and pointers, not memory, but a decoder makes one a step.
constexpr size_t kMaxFrames = 8;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool has_memory(const RuntimeValue& value) {
  return value.kind == RuntimeValue::Kind::tensor && value.tensor.data != nullptr;
}

/// Kernels were built for the planned element type: memory of another must not reach them.
void check_type(const SlotPlan& plan, const RuntimeValue& value) {
  if (value.kind == RuntimeValue::Kind::tensor && plan.type.is_tensor() && value.tensor.type != plan.type.elem)
    fail(Code::invalid_graph, "value '", plan.name, "' is declared as ", plan.type.to_string(), " and got a tensor of ",
         value.tensor.type);
}

uint64_t constant_inputs(const Plan& plan, const StepPlan& step) {
  uint64_t bits = 0;
  for (size_t i = 0; i < step.inputs.size() && i < 64; ++i)
    if (int slot = step.inputs[i]; slot >= 0 && plan.slots[slot].segment < 0 && !plan.slots[slot].is_input)
      bits |= uint64_t{1} << i;
  return bits;
}

}  // namespace

Executor::Executor(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {
  for (const PlanMemory& memory : plan_->memories) blocks_.push_back(std::make_unique<BlockPool>(memory.device));
}

std::unique_ptr<Frame> Executor::take_frame(std::span<const RuntimeValue> inputs,
                                            std::span<const RuntimeValue* const> captures) const {
  auto matches = [&](const Frame& frame) {
    size_t at = 0;
    for (const RuntimeValue& value : inputs)
      if (!(frame.input_dims[at++] == value.tensor.shape)) return false;
    for (const RuntimeValue* value : captures)
      if (!(frame.input_dims[at++] == value->tensor.shape)) return false;
    return true;
  };
  std::unique_ptr<Frame> frame;
  {
    std::lock_guard lock(mutex_);
    uint64_t now = ++clock_;
    auto pick = std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& idle) { return matches(*idle); });
    if (pick != idle_.rend()) {
      frame = std::move(*pick);
      idle_.erase(std::next(pick).base());
      frame->last_used = now;
      return frame;
    }
    if (idle_.size() >= kMaxFrames) {
      auto oldest = std::min_element(idle_.begin(), idle_.end(),
                                     [](const auto& a, const auto& b) { return a->last_used < b->last_used; });
      frame = std::move(*oldest);
      idle_.erase(oldest);
    }
    if (frame) frame->last_used = now;
  }
  if (!frame) frame = std::make_unique<Frame>(plan_, blocks_);
  frame->input_dims.clear();
  for (const RuntimeValue& value : inputs) frame->input_dims.push_back(value.tensor.shape);
  for (const RuntimeValue* value : captures) frame->input_dims.push_back(value->tensor.shape);
  return frame;
}

void Executor::feed(Frame& frame, std::span<const RuntimeValue> inputs,
                    std::span<const RuntimeValue* const> captures) const {
  for (size_t i = 0; i < plan_->inputs.size(); ++i) {
    const SlotPlan& plan = plan_->slots[plan_->inputs[i]];
    RuntimeValue& slot = frame.slot(plan_->inputs[i]);
    if (inputs[i].kind == RuntimeValue::Kind::none && plan.constant)
      slot = RuntimeValue(plan.constant);
    else
      slot = inputs[i];
    check_type(plan, slot);
  }
  for (size_t i = 0; i < plan_->captures.size(); ++i) {
    frame.slot(plan_->captures[i].second) = *captures[i];
    check_type(plan_->slots[plan_->captures[i].second], *captures[i]);
  }
}

void Executor::bind(Frame& frame, int segment, std::span<RuntimeValue> outputs) const {
  for (int root : plan_->segments[segment].bound_roots) {
    int index = plan_->slots[root].bound_output;
    RuntimeValue& output = outputs[index];
    Tensor& produced = frame.slot(root).tensor;
    const Tensor& shown = frame.slot(plan_->outputs[index]).tensor;
    if (has_memory(output)) {
      if (output.tensor.type != shown.type)
        fail(Code::invalid_argument, "Unexpected output data type for '", plan_->slots[plan_->outputs[index]].name,
             "'. Actual: (tensor(", output.tensor.type, ")) , expected: (tensor(", shown.type, "))");
      if (!(output.tensor.shape == shown.shape))
        fail(Code::invalid_argument, "Got invalid dimensions for output: ", plan_->slots[plan_->outputs[index]].name,
             " Got: ", output.tensor.shape, " Expected: ", shown.shape);
    } else {
      output = RuntimeValue(Tensor::allocate(shown.type, shown.shape));
    }
    produced.data = output.tensor.data;
  }
}

void Executor::run_segment(Frame& frame, int g, const RunEnv& env) const {
  SegmentFrame& segment = frame.segment(g);
  auto* shown = env.observer ? dynamic_cast<StepObserver*>(env.observer) : nullptr;
  size_t at = 0;
  try {
    for (; at < segment.calls.size(); ++at) {
      Call& call = segment.calls[at];
      if (env.terminate && env.terminate->load(std::memory_order_relaxed))
        throw Error(Code::fail, "Exiting due to terminate flag being set to true.");
      const StepPlan& step = plan_->steps[call.step];
      int64_t begin = env.observer ? now_ns() : 0;
      call.kernel->run(call.context);
      if (env.observer) {
        int64_t end = now_ns();
        if (shown) shown->values(call.context, constant_inputs(*plan_, step));
        env.observer->step(step.node, step.provider, begin, end);
      }
      if (step.dynamic)
        for (int output : step.outputs)
          if (output >= 0) check_type(plan_->slots[output], frame.slot(output));
    }
  } catch (const std::exception& error) {
    if (std::string_view(error.what()).starts_with("Exiting due to terminate")) throw;
    rethrow_kernel_error(plan_->steps[segment.calls[at].step], error);
  }
}

void Executor::collect(Frame& frame, std::span<RuntimeValue> outputs) const {
  for (size_t i = 0; i < plan_->outputs.size(); ++i) {
    int slot = plan_->outputs[i];
    const SlotPlan& root = plan_->slots[plan_->slots[slot].root];
    RuntimeValue& value = frame.slot(slot);
    if (root.bound_output == static_cast<int>(i)) {
      outputs[i].tensor.shape = value.tensor.shape;
      continue;
    }
    if (has_memory(outputs[i])) {
      Tensor& to = outputs[i].tensor;
      if (value.kind != RuntimeValue::Kind::tensor || to.type != value.tensor.type || !(to.shape == value.tensor.shape))
        fail(Code::invalid_argument, "Got invalid dimensions for output: ", plan_->slots[slot].name, " Got: ", to.shape,
             " Expected: ", value.tensor.shape);
      if (to.type == DataType::string)
        std::copy_n(value.tensor.as<std::string>(), value.tensor.size(), to.as<std::string>());
      else if (size_t bytes = to.bytes())
        std::memcpy(to.data, value.tensor.data, bytes);
      continue;
    }
    outputs[i] = value;
    if (value.kind != RuntimeValue::Kind::tensor) continue;
    if (root.dynamic) {
      // The kernel made this memory for us; an alias shares the owner of its root.
      outputs[i].tensor.owner = frame.slot(root.root).tensor.owner;
      if (outputs[i].tensor.owner) continue;
    }
    outputs[i].tensor = value.tensor.clone();
  }
}

void Executor::run(std::span<const RuntimeValue> inputs, std::span<const RuntimeValue* const> captures,
                   std::span<RuntimeValue> outputs, const RunEnv& env) const {
  std::unique_ptr<Frame> frame = take_frame(inputs, captures);
  feed(*frame, inputs, captures);
  auto give_back = [&] {
    frame->release();
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(frame));
  };
  try {
    for (int g = 0; g < static_cast<int>(plan_->segments.size()); ++g) {
      frame->prepare(g, env);
      bind(*frame, g, outputs);
      frame->update_aliases(g);
      run_segment(*frame, g, env);
    }
    collect(*frame, outputs);
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
}

void PlanSubgraph::run(const RunContext& outer, std::span<const RuntimeValue> inputs,
                       std::span<RuntimeValue> outputs) const {
  const Plan& plan = executor_.plan();
  constexpr size_t kFew = 16;
  const RuntimeValue* few[kFew];
  std::vector<const RuntimeValue*> many;
  const RuntimeValue** captures = few;
  if (plan.captures.size() > kFew) {
    many.resize(plan.captures.size());
    captures = many.data();
  }
  for (size_t i = 0; i < plan.captures.size(); ++i) captures[i] = &outer.capture(plan.captures[i].first);
  executor_.run(inputs, {captures, plan.captures.size()}, outputs, outer.env());
}

}  // namespace epona
