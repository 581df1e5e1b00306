#include "run/executor.h"
#include "run/interrupter.h"
#include "run/step_observer.h"

#include <algorithm>
#include <chrono>

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

std::vector<int> Executor::places(std::span<const RuntimeValue> inputs, std::span<const RuntimeValue> outputs) const {
  auto elsewhere = [](const RuntimeValue& value) { return value.tensor.device != nullptr; };
  if (std::none_of(inputs.begin(), inputs.end(), elsewhere) && std::none_of(outputs.begin(), outputs.end(), elsewhere))
    return {};
  std::vector<int> places;
  places.reserve(inputs.size() + outputs.size());
  for (const RuntimeValue& value : inputs) places.push_back(plan_->memory_of(value.tensor.device));
  for (size_t i = 0; i < outputs.size(); ++i) {
    int source = plan_->kept_sources[i], wanted = plan_->memory_of(outputs[i].tensor.device);
    places.push_back(wanted == 0 || (source >= 0 && plan_->slots[source].memory == wanted) ? wanted : -1);
  }
  return places;
}

std::unique_ptr<Frame> Executor::take_frame(std::span<const RuntimeValue> inputs,
                                            std::span<const RuntimeValue* const> captures,
                                            std::vector<int> places) const {
  auto matches = [&](const Frame& frame) {
    if (frame.places != places) return false;
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
  frame->places = std::move(places);
  return frame;
}

void Executor::feed(Frame& frame, std::span<const RuntimeValue> inputs,
                    std::span<const RuntimeValue* const> captures) const {
  for (size_t i = 0; i < plan_->inputs.size(); ++i) {
    const SlotPlan& plan = plan_->slots[plan_->inputs[i]];
    RuntimeValue& slot = frame.slot(plan_->inputs[i]);
    if (inputs[i].kind == RuntimeValue::Kind::none && plan.constant)
      slot = RuntimeValue(plan.constant);
    else if (inputs[i].tensor.device)
      slot = feed_from_device(frame, i, inputs[i].tensor);
    else
      slot = inputs[i];
    check_type(plan, slot);
  }
  for (size_t i = 0; i < plan_->captures.size(); ++i) {
    frame.slot(plan_->captures[i].second) = *captures[i];
    check_type(plan_->slots[plan_->captures[i].second], *captures[i]);
  }
}

/// Remembers the tensor for the steps that would have brought it to its device, and returns what the others read: a copy
/// in the host's memory where they need one.
RuntimeValue Executor::feed_from_device(Frame& frame, size_t input, const Tensor& tensor) const {
  int memory = frame.places[input];
  const SlotPlan& plan = plan_->slots[plan_->inputs[input]];
  bool needed = plan.read_on_host;
  for (const SegmentPlan& segment : plan_->segments)
    for (int s : segment.fed_copies)
      needed |= plan_->steps[s].fed_input == static_cast<int>(input) && plan_->steps[s].memory != memory;
  if (memory > 0) {
    // Another session's work on it may be under way.
    if (plan_->memories[memory].device != tensor.device) tensor.device->synchronize();
    frame.fed.resize(plan_->inputs.size());
    frame.fed[input] = tensor;
  }
  return needed ? tensor.in_memory_of(nullptr) : tensor;
}

void Executor::give_memory(RuntimeValue& output, int index, const Tensor& shown, Device* device) const {
  if (!has_memory(output)) {
    output = RuntimeValue(device ? Tensor::allocate(shown.type, shown.shape, device)
                                 : output_pool_->make(shown.type, shown.shape));
    return;
  }
  if (output.tensor.type != shown.type)
    fail(Code::invalid_argument, "Unexpected output data type for '", plan_->slots[plan_->outputs[index]].name,
         "'. Actual: (tensor(", output.tensor.type, ")) , expected: (tensor(", shown.type, "))");
  if (!(output.tensor.shape == shown.shape))
    fail(Code::invalid_argument, "Got invalid dimensions for output: ", plan_->slots[plan_->outputs[index]].name,
         " Got: ", output.tensor.shape, " Expected: ", shown.shape);
}

void Executor::bind(Frame& frame, int segment, std::span<RuntimeValue> outputs) const {
  for (int root : plan_->segments[segment].bound_roots) {
    int index = plan_->slots[root].bound_output;
    if (!frame.bound(index)) continue;
    give_memory(outputs[index], index, frame.slot(plan_->outputs[index]).tensor, nullptr);
    frame.slot(root).tensor.data = outputs[index].tensor.data;
  }
  for (int root : plan_->segments[segment].kept_roots) {
    int index = plan_->slots[root].kept_output;
    if (!frame.kept(index)) continue;
    give_memory(outputs[index], index, frame.slot(plan_->kept_sources[index]).tensor,
                plan_->memories[plan_->slots[root].memory].device);
    frame.slot(root).tensor.data = outputs[index].tensor.data;
  }
}

void Executor::run_segment(Frame& frame, int g, const RunEnv& env) const {
  SegmentFrame& segment = frame.segment(g);
  auto* shown = env.observer ? dynamic_cast<StepObserver*>(env.observer) : nullptr;
  size_t at = 0;
  try {
    for (; at < segment.calls.size(); ++at) {
      Call& call = segment.calls[at];
      if (env.interrupter) env.interrupter->between_kernels();
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
    if (frame.kept(static_cast<int>(i))) continue;
    if (root.bound_output == static_cast<int>(i) && frame.bound(static_cast<int>(i))) {
      outputs[i].tensor.shape = value.tensor.shape;
      continue;
    }
    if (has_memory(outputs[i])) {
      Tensor& to = outputs[i].tensor;
      if (value.kind != RuntimeValue::Kind::tensor || to.type != value.tensor.type || !(to.shape == value.tensor.shape))
        fail(Code::invalid_argument, "Got invalid dimensions for output: ", plan_->slots[slot].name, " Got: ", to.shape,
             " Expected: ", value.tensor.shape);
      to.assign(value.tensor);
      continue;
    }
    Device* wanted = outputs[i].tensor.device;
    if (wanted && value.kind == RuntimeValue::Kind::tensor && value.tensor.type != DataType::string) {
      outputs[i] = RuntimeValue(value.tensor.in_memory_of(wanted));
      continue;
    }
    outputs[i] = value;
    if (value.kind != RuntimeValue::Kind::tensor) continue;
    if (root.dynamic) {
      // The kernel made this memory for us; an alias shares the owner of its root.
      outputs[i].tensor.owner = frame.slot(root.root).tensor.owner;
      if (outputs[i].tensor.owner) continue;
    }
    outputs[i].tensor = output_pool_->make(value.tensor.type, value.tensor.shape);
    outputs[i].tensor.assign(value.tensor);
  }
}

void Executor::run(std::span<const RuntimeValue> inputs, std::span<const RuntimeValue* const> captures,
                   std::span<RuntimeValue> outputs, const RunEnv& env) const {
  std::unique_ptr<Frame> frame = take_frame(inputs, captures, places(inputs, outputs));
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
