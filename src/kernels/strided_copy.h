#pragma once
#include <array>
#include <cstdint>

#include "base/shape.h"
#include "base/thread_pool.h"
#include "base/types.h"

namespace epona {

/// Copies an n-dimensional block between two strided layouts: the engine of Transpose, Slice, Expand, Concat, Tile, ...
/// Dims are added from the outermost to the innermost and merge as they come. Input strides may be zero (broadcast) or
/// negative; no two output positions may coincide.
class StridedCopy {
 public:
  explicit StridedCopy(DataType type) : type_(type) {}

  /// Adds a dim of n elements; strides count elements.
  void dim(int64_t n, int64_t in_stride, int64_t out_stride);
  /// Copies; the offsets, in elements, are where the first element is read and written.
  void run(ThreadPool& pool, const void* in, int64_t in_offset, void* out, int64_t out_offset) const;

 private:
  struct Dim {
    int64_t n, in, out;
  };
  static constexpr int kMaxDims = 32;  // after merging

  void run_subbyte(const void* in, int64_t in_offset, void* out, int64_t out_offset) const;
  void run_strings(const std::string* in, std::string* out) const;

  DataType type_;
  int rank_ = 0;
  bool empty_ = false;
  std::array<Dim, kMaxDims> dims_;
};

/// Strides, in elements, of a dense row-major tensor.
Shape row_major_strides(const Shape& dims);

/// Copies `count` elements of any type between buffers that do not overlap; nothing when they are the same.
void copy_elements(DataType type, int64_t count, const void* in, int64_t in_offset, void* out, int64_t out_offset);

/// Writes one element, at `value`, to `count` positions from out[offset].
void fill_elements(DataType type, int64_t count, const void* value, void* out, int64_t offset = 0);

}  // namespace epona
