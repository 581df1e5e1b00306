#include "run/frame.h"

#include <algorithm>
#include <cstring>

namespace epona {
namespace {

// Known values up to this size are computed when the frame is built even if no shape needs them (bytes).
constexpr size_t kFoldBytes = 64 * 1024;

bool same_elements(const Tensor& a, const Tensor& b) {
  if (a.type != b.type || !(a.shape == b.shape)) return false;
  if (a.type == DataType::string)
    return std::equal(a.as<std::string>(), a.as<std::string>() + a.size(), b.as<std::string>());
  size_t bytes = a.bytes();
  return bytes == 0 || std::memcmp(a.data, b.data, bytes) == 0;
}

}  // namespace

void rethrow_kernel_error(const StepPlan& step, const std::exception& error) {
  Code code = Code::fail;
  if (auto* own = dynamic_cast<const Error*>(&error)) {
    code = own->code() == Code::invalid_argument ? Code::fail : own->code();
    if (auto* inner = dynamic_cast<const ProviderFailure*>(&error)) throw *inner;
    if (std::string_view(error.what()).starts_with("Non-zero status code")) throw Error(code, error.what());
  }
  if (code == Code::ep_fail)
    throw ProviderFailure(step.provider,
                          cat("Non-zero status code returned while running ", step.node.op, " node on ", step.provider,
                              ". Name:'", step.node.name, "' Status Message: ", error.what()));
  fail(code, "Non-zero status code returned while running ", step.node.op, " node. Name:'", step.node.name,
       "' Status Message: ", error.what());
}

Frame::Frame(std::shared_ptr<const Plan> plan, BlockPools& blocks)
    : plan_(std::move(plan)),
      blocks_(blocks),
      slots_(plan_->slots.size()),
      segments_(plan_->segments.size()),
      evaluated_(plan_->slots.size(), 0),
      offset_(plan_->slots.size(), -1),
      size_(plan_->slots.size(), 0),
      offsets_(plan_->memories.size()) {
  for (SegmentFrame& segment : segments_) segment.memories.resize(plan_->memories.size());
  for (size_t i = 0; i < slots_.size(); ++i) {
    const SlotPlan& slot = plan_->slots[i];
    if (slot.constant) {
      slots_[i].kind = RuntimeValue::Kind::tensor;
      slots_[i].tensor = slot.constant;
      evaluated_[i] = slot.constant.data && !slot.is_input && slot.memory == 0;
    } else if (!slot.is_input && slot.type.kind <= Type::Kind::tensor) {
      slots_[i].kind = RuntimeValue::Kind::tensor;
      slots_[i].tensor.type = slot.type.elem;
    }
  }
  size_t count = 0;
  for (const StepPlan& step : plan_->steps) count += step.inputs.size() + step.outputs.size() + step.captures.size();
  pointers_.reserve(count);
  args_.reserve(plan_->steps.size());
  auto list = [&](const std::vector<int>& ids) {
    size_t from = pointers_.size();
    for (int id : ids) pointers_.push_back(id < 0 ? nullptr : &slots_[id]);
    return std::span<RuntimeValue* const>(pointers_.data() + from, ids.size());
  };
  for (const StepPlan& step : plan_->steps) {
    StepArgs args;
    args.inputs = list(step.inputs);
    args.outputs = list(step.outputs);
    args.captures = list(step.captures);
    args_.push_back(args);
  }
}

bool Frame::fits(int g) const {
  const SegmentPlan& plan = plan_->segments[g];
  const SegmentFrame& frame = segments_[g];
  if (!frame.built || frame.places != places) return false;
  for (size_t i = 0; i < plan.dim_sources.size(); ++i)
    if (!(frame.dims[i] == slots_[plan.dim_sources[i]].tensor.shape)) return false;
  for (size_t i = 0; i < plan.content_sources.size(); ++i)
    if (!same_elements(frame.contents[i], slots_[plan.content_sources[i]].tensor)) return false;
  return true;
}

void Frame::remember(int g) {
  const SegmentPlan& plan = plan_->segments[g];
  SegmentFrame& frame = segments_[g];
  frame.places = places;
  frame.dims.clear();
  frame.contents.clear();
  for (int slot : plan.dim_sources) frame.dims.push_back(slots_[slot].tensor.shape);
  for (int slot : plan.content_sources) frame.contents.push_back(slots_[slot].tensor.clone());
}

void Frame::prepare(int g, const RunEnv& run_env) {
  env = run_env;
  SegmentFrame& frame = segments_[g];
  if (!fits(g)) {
    frame.built = false;
    build(g);
    remember(g);
    frame.built = true;
    for (MemoryFrame& memory : frame.memories) memory.base = nullptr;
  }
  for (size_t m = 0; m < frame.memories.size(); ++m) {
    MemoryFrame& memory = frame.memories[m];
    memory.block = blocks_[m]->take(memory.bytes, memory.base);
    if (memory.block.memory != memory.base || !memory.base) rebase(frame, static_cast<int>(m));
  }
}

void Frame::rebase(SegmentFrame& frame, int m) {
  MemoryFrame& memory = frame.memories[m];
  memory.base = memory.block.memory;
  char* base = static_cast<char*>(memory.base);
  for (auto& [slot, offset] : memory.placed) slots_[slot].tensor.data = base + offset;
  for (Call& call : frame.calls)
    if (plan_->steps[call.step].memory == m) call.context.set_workspace(base + call.workspace_offset);
}

void Frame::update_aliases(int g) {
  for (int s : plan_->segments[g].fed_copies)
    if (const StepPlan& step = plan_->steps[s]; fed_in_place(step))
      slots_[step.outputs[0]].tensor.data = fed[step.fed_input].data;
  for (int slot : plan_->segments[g].alias_slots) {
    int root = plan_->slots[slot].root;
    slots_[slot].tensor.data = slots_[root].tensor.data;
  }
}

void Frame::release() {
  for (SegmentFrame& frame : segments_) {
    for (size_t m = 0; m < frame.memories.size(); ++m) {
      blocks_[m]->give(frame.memories[m].block);
      frame.memories[m].block = {};
    }
  }
  auto drop = [&](RuntimeValue& value) {
    value.tensor.owner.reset();
    value.tensor.device = nullptr;
    value.items.reset();
    value.map.reset();
  };
  for (int slot : plan_->inputs) drop(slots_[slot]);
  fed.clear();
  for (auto& [index, slot] : plan_->captures) drop(slots_[slot]);
  for (int slot : plan_->dynamic_slots) {
    slots_[slot] = RuntimeValue();
    slots_[slot].tensor.type = plan_->slots[slot].type.is_tensor() ? plan_->slots[slot].type.elem : DataType::undefined;
  }
}

void Frame::build(int g) {
  SegmentFrame& frame = segments_[g];
  frame.calls.clear();
  for (MemoryFrame& memory : frame.memories) memory.placed.clear();
  for (OffsetAllocator& offsets : offsets_) offsets.reset();
  for (int s = plan_->segments[g].begin; s < plan_->segments[g].end; ++s) {
    try {
      build_step(frame, s);
    } catch (const std::exception& error) {
      rethrow_kernel_error(plan_->steps[s], error);
    }
  }
  for (size_t m = 0; m < offsets_.size(); ++m) frame.memories[m].bytes = offsets_[m].peak();
}

void Frame::build_step(SegmentFrame& frame, int s) {
  const StepPlan& step = plan_->steps[s];
  const StepArgs& args = args_[s];
  auto free_dead = [&] {
    for (int root : step.frees)
      if (offset_[root] >= 0) {
        offsets_[plan_->slots[root].memory].release(static_cast<size_t>(offset_[root]), size_[root]);
        offset_[root] = -1;
      }
  };
  if (step.dynamic) {
    frame.calls.push_back(
        {step.kernel, RunContext(step.node, env, args.inputs, args.outputs, args.captures, nullptr), 0, s});
    return free_dead();
  }
  uint64_t known = 0;
  for (size_t i = 0; i < step.inputs.size() && i < 64; ++i) {
    int slot = step.inputs[i];
    if (slot >= 0 && (evaluated_[slot] || (i < 32 && (step.shape_inputs >> i & 1)))) known |= uint64_t{1} << i;
  }
  ShapeContext shapes(step.node, args.inputs, args.outputs, known, env.pool ? env.pool->threads() : 1);
  step.kernel->shapes(shapes);
  for (int slot : step.outputs)
    if (slot >= 0) size_[slot] = type_bytes(slots_[slot].tensor.type, slots_[slot].tensor.shape.size());
  if (step.alias) return free_dead();  // update_aliases() lets the output follow its root
  if (fed_in_place(step) || (step.kept_output >= 0 && kept(step.kept_output))) {
    offset_[step.outputs[0]] = -1;
    return free_dead();
  }
  if (step.known) {
    size_t bytes = 0;
    bool ready = true, bound = false;
    for (int slot : step.outputs) {
      if (slot < 0) continue;
      bytes += size_[slot];
      bound |= is_bound(plan_->slots[slot]);
    }
    for (int slot : step.inputs) ready &= slot < 0 || step.shape_only || evaluated_[slot];
    if (ready && !bound && (step.shape_time || bytes <= kFoldBytes)) {
      evaluate_now(s, shapes.workspace());
      return;
    }
    for (int slot : step.outputs)
      if (slot >= 0) {
        evaluated_[slot] = 0;
        slots_[slot].tensor.owner.reset();
      }
  }
  auto will_free = [&](int root) { return std::find(step.frees.begin(), step.frees.end(), root) != step.frees.end(); };
  for (size_t o = 0; o < step.outputs.size(); ++o) {
    int slot = step.outputs[o];
    if (slot < 0) continue;
    if (is_bound(plan_->slots[slot])) {
      offset_[slot] = -1;
      continue;
    }
    if (slots_[slot].tensor.type == DataType::string) {
      // Strings are objects: they keep memory of their own, which runs assign over.
      slots_[slot].tensor = Tensor::allocate(DataType::string, slots_[slot].tensor.shape);
      offset_[slot] = -1;
      continue;
    }
    int64_t offset = -1;
    for (size_t i = 0; o == 0 && i < step.inputs.size() && i < 32; ++i) {
      if (!(step.inplace >> i & 1) || step.inputs[i] < 0) continue;
      int root = plan_->slots[step.inputs[i]].root;
      if (offset_[root] < 0 || size_[root] != size_[slot] || !will_free(root)) continue;
      if (plan_->slots[root].memory != step.memory) continue;
      offset = offset_[root];
      offset_[root] = -1;
      break;
    }
    offset_[slot] = offset >= 0 ? offset : static_cast<int64_t>(offsets_[step.memory].allocate(size_[slot]));
    frame.memories[step.memory].placed.emplace_back(slot, static_cast<size_t>(offset_[slot]));
  }
  size_t workspace = 0;
  if (shapes.workspace() > 0) {
    workspace = offsets_[step.memory].allocate(shapes.workspace());
    offsets_[step.memory].release(workspace, shapes.workspace());
  }
  frame.calls.push_back(
      {step.kernel, RunContext(step.node, env, args.inputs, args.outputs, args.captures, nullptr), workspace, s});
  free_dead();
}

void Frame::evaluate_now(int s, size_t workspace_bytes) {
  const StepPlan& step = plan_->steps[s];
  for (int slot : step.outputs) {
    if (slot < 0) continue;
    Tensor& tensor = slots_[slot].tensor;
    // Frames are rebuilt often with the same small sizes: keep the memory when it fits.
    if (tensor.owner && tensor.type != DataType::string && offset_[slot] == -2 && size_[slot] <= 64) continue;
    tensor = Tensor::allocate(tensor.type, tensor.shape);
    offset_[slot] = -2;
  }
  Tensor scratch;
  if (workspace_bytes) scratch = Tensor::allocate(DataType::uint8, Shape{static_cast<int64_t>(workspace_bytes)});
  const StepArgs& args = args_[s];
  step.kernel->run(RunContext(step.node, env, args.inputs, args.outputs, args.captures, scratch.data));
  for (int slot : step.outputs)
    if (slot >= 0) evaluated_[slot] = 1;
}

}  // namespace epona
