#pragma once
#include "ops/kernel.h"

namespace epona {

/// An observer that is also shown what each kernel call read and wrote.
class StepObserver : public RunObserver {
 public:
  /// Called after the kernel has run and before step(). Bit i of `constants`: input i is a constant.
  virtual void values(const RunContext& context, uint64_t constants) = 0;
};

}  // namespace epona
