#pragma once
#include <map>
#include <memory>
#include <utility>

#include "base/device.h"
#include "ops/kernel.h"
#include "plan/plan.h"

namespace epona {

/// Copies one tensor between a device and the host's memory.
class CopyKernel final : public Kernel {
 public:
  CopyKernel(Device* from, Device* to) : from_(from), to_(to) {}
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override;

 private:
  Device* from_;  // one of them is null: the host
  Device* to_;
};

/// Adds the slots and steps that bring values to the memories in which they are read.
class CopyInserter {
 public:
  explicit CopyInserter(Plan& plan) : plan_(plan) {}
  /// The slot that holds `slot`'s value in a memory (an index of Plan::memories); copies are appended to the steps when
  /// there is none yet. Constants are copied once, now.
  int bring(int slot, int memory);

 private:
  int new_slot(int like, int memory);
  int copy_constant(int slot, int memory);
  int copy(int slot, int memory);

  Plan& plan_;
  std::map<std::pair<int, int>, int> made_;  // {slot, memory} -> slot
};

}  // namespace epona
