#pragma once
#include <array>
#include <span>
#include <vector>

#include "ops/kernel.h"

namespace epona {

/// The value, with memory of its own if it was a view of somebody else's.
RuntimeValue owned(RuntimeValue value);

/// A value that may become an output whatever its memory is: tensors are copied. (The memory of an input, even one with
/// an owner, may be written again by the next run.)
RuntimeValue own_copy(const RuntimeValue& value);

/// Throws when RunOptions.terminate is set: called once an iteration.
void check_terminate(const RunContext& c);

/// The inputs or outputs of a subgraph call: a list whose length is fixed at run time, without allocation up to 6.
class ValueList {
 public:
  explicit ValueList(int size) : size_(static_cast<size_t>(size)) {
    if (size_ > inline_.size()) heap_.resize(size_);
  }
  RuntimeValue& operator[](int i) { return data()[i]; }
  RuntimeValue* data() { return heap_.empty() ? inline_.data() : heap_.data(); }
  operator std::span<RuntimeValue>() { return {data(), size_}; }        // NOLINT: implicit by design
  operator std::span<const RuntimeValue>() { return {data(), size_}; }  // NOLINT

 private:
  size_t size_;
  std::array<RuntimeValue, 6> inline_;
  std::vector<RuntimeValue> heap_;
};

/// Collects one tensor an iteration as the rows of a tensor: the scan outputs of Loop and Scan.
class RowCollector {
 public:
  /// Appends a row; `expected` is the likely total, for the first allocation. All rows must have one shape.
  void add(const RunContext& c, int output, const Tensor& row, int64_t expected);
  /// The rows so far as [count, row dims]. Without any row the dims come from the body's declared type; unknown ones
  /// become 0.
  Tensor finish(const Type& row_type);

 private:
  Tensor rows_;  // its shape has the capacity as dim 0
  Shape row_;
  int64_t count_ = 0;
};

}  // namespace epona
