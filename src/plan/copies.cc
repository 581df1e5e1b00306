#include "plan/copies.h"

namespace epona {

void CopyKernel::run(const RunContext& c) const {
  const Tensor& from = c.in(0);
  Tensor& to = c.out(0);
  size_t bytes = from.bytes();
  copy_bytes(to.data, to_, from.data, from_, bytes);
}

int CopyInserter::bring(int slot, int memory) {
  if (plan_.slots[slot].memory == memory) return slot;
  auto [made, fresh] = made_.try_emplace({slot, memory}, -1);
  if (!fresh) return made->second;
  const SlotPlan& from = plan_.slots[slot];
  int result = from.constant && !from.is_input ? copy_constant(slot, memory)
               // Between two devices the way leads through the host.
               : from.memory != 0 && memory != 0 ? copy(bring(slot, 0), memory)
                                                 : copy(slot, memory);
  return made_[{slot, memory}] = result;
}

int CopyInserter::new_slot(int like, int memory) {
  SlotPlan slot;
  slot.name = plan_.slots[like].name;
  slot.type = plan_.slots[like].type;
  slot.memory = memory;
  slot.root = static_cast<int>(plan_.slots.size());
  plan_.slots.push_back(std::move(slot));
  return plan_.slots.back().root;
}

int CopyInserter::copy_constant(int slot, int memory) {
  int made = new_slot(slot, memory);
  Device* device = plan_.memories[static_cast<size_t>(memory)].device;
  const Tensor& host = plan_.slots[slot].constant;
  size_t bytes = host.bytes();
  plan_.slots[made].constant = host.in_memory_of(device);
  plan_.slots[made].constant.device = nullptr;  // as all values of a plan: the slot says where it is
  plan_.copies.push_back({slot, 0, memory, static_cast<int64_t>(bytes), true});
  return made;
}

int CopyInserter::copy(int slot, int memory) {
  const Type type = plan_.slots[slot].type;  // a copy: the new slot moves the old ones
  int source = plan_.slots[slot].memory;
  const PlanMemory& device = plan_.memories[static_cast<size_t>(memory ? memory : source)];
  if (!type.is_tensor() || type.elem == DataType::string)
    fail(Code::not_implemented, "value '", plan_.slots[slot].name, "' of type ", type.to_string(),
         " cannot be copied to or from ", device.device->name());
  int made = new_slot(slot, memory);
  plan_.kernels.push_back(
      std::make_unique<CopyKernel>(source ? device.device : nullptr, memory ? device.device : nullptr));
  StepPlan step;
  step.kernel = plan_.kernels.back().get();
  step.node.name = plan_.slots[slot].name;
  step.node.op = memory ? "MemcpyFromHost" : "MemcpyToHost";  // the names that profiles of onnxruntime show
  step.provider = device.provider;
  step.inputs = {slot};
  step.outputs = {made};
  step.memory = memory;
  step.copy = true;
  plan_.steps.push_back(std::move(step));
  auto shape = type.static_shape();
  plan_.copies.push_back(
      {slot, source, memory, shape ? static_cast<int64_t>(type_bytes(type.elem, shape->size())) : int64_t{-1}, false});
  return made;
}

}  // namespace epona
