#include "kernels/view_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/view_copy.cc"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"
#include "kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace epona {
namespace HWY_NAMESPACE {
namespace {

void transpose_tile(const uint32_t* in, int64_t in_stride, uint32_t* out, int64_t out_stride, int64_t rows,
                    int64_t cols) {
  transpose_words(in, in_stride, out, out_stride, rows, cols);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace epona
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace epona {

HWY_EXPORT(transpose_tile);

namespace {

using TransposeWords = void (*)(const uint32_t*, int64_t, uint32_t*, int64_t, int64_t, int64_t);

// A tile of the two dims that change places: its rows and columns stay in the first-level cache and the TLB.
constexpr int64_t kTileRows = 32, kTileCols = 64;

/// Moves through all dims of a plan but two (or one), in order, keeping both offsets.
struct Walker {
  const ViewCopy& plan;
  int dims[ViewCopy::kMaxDims];
  int64_t index[ViewCopy::kMaxDims];
  int count = 0;
  int64_t in = 0, out = 0;

  Walker(const ViewCopy& p, int skip_a, int skip_b) : plan(p) {
    for (int d = p.rank - 1; d >= 0; --d)
      if (d != skip_a && d != skip_b) dims[count++] = d;
  }
  int64_t size() const {
    int64_t n = 1;
    for (int k = 0; k < count; ++k) n *= plan.dims[dims[k]];
    return n;
  }
  void seek(int64_t at) {
    in = out = 0;
    for (int k = 0; k < count; ++k) {
      const int d = dims[k];
      index[k] = at % plan.dims[d];
      at /= plan.dims[d];
      in += index[k] * plan.in_strides[d];
      out += index[k] * plan.out_strides[d];
    }
  }
  void next() {
    for (int k = 0; k < count; ++k) {
      const int d = dims[k];
      in += plan.in_strides[d];
      out += plan.out_strides[d];
      if (++index[k] < plan.dims[d]) return;
      in -= plan.in_strides[d] * plan.dims[d];
      out -= plan.out_strides[d] * plan.dims[d];
      index[k] = 0;
    }
  }
};

struct Wide {
  uint64_t low, high;
};

template <class T>
class Copier {
 public:
  Copier(const ViewCopy& plan, const void* in, void* out, ThreadPool& pool)
      : plan_(plan), in_(static_cast<const T*>(in)), out_(static_cast<T*>(out)), pool_(pool) {}

  void run() {
    const int last = plan_.rank - 1;
    if (plan_.out_strides[last] == 1) {
      if (plan_.in_strides[last] == 1) return runs();
      for (int d = 0; d < last; ++d)
        if (plan_.in_strides[d] == 1 && plan_.dims[d] > 1) return tiles(d);
    }
    elements();
  }

 private:
  static constexpr double kNsPerByte = 0.1;

  void runs() {
    const int last = plan_.rank - 1;
    const int64_t length = plan_.dims[last];
    const size_t bytes = static_cast<size_t>(length) * sizeof(T);
    if (plan_.rank == 1) {
      pool_.parallel_for(length, kNsPerByte * sizeof(T), [&](int64_t begin, int64_t end) {
        std::memcpy(out_ + begin, in_ + begin, static_cast<size_t>(end - begin) * sizeof(T));
      });
      return;
    }
    Walker all(plan_, last, last);
    pool_.parallel_for(all.size(), kNsPerByte * static_cast<double>(bytes) + 2, [&](int64_t begin, int64_t end) {
      Walker walk(plan_, last, last);
      walk.seek(begin);
      for (int64_t k = begin; k < end; ++k, walk.next()) std::memcpy(out_ + walk.out, in_ + walk.in, bytes);
    });
  }

  /// Dim `p` is contiguous in the input, the last one in the output.
  void tiles(int p) {
    const int q = plan_.rank - 1;
    const int64_t cols = plan_.dims[p], rows = plan_.dims[q];
    const int64_t col_tiles = (cols + kTileCols - 1) / kTileCols, row_tiles = (rows + kTileRows - 1) / kTileRows;
    const int64_t each = col_tiles * row_tiles;
    const TransposeWords words = HWY_DYNAMIC_POINTER(transpose_tile);
    const double ns = 2 * kNsPerByte * sizeof(T) * static_cast<double>(std::min(cols, kTileCols) * std::min(rows, kTileRows));
    Walker all(plan_, p, q);
    pool_.parallel_for(all.size() * each, ns, [&](int64_t begin, int64_t end) {
      Walker walk(plan_, p, q);
      walk.seek(begin / each);
      for (int64_t k = begin; k < end; ++k) {
        const int64_t row = k % each / col_tiles * kTileRows, col = k % col_tiles * kTileCols;
        const T* from = in_ + walk.in + row * plan_.in_strides[q] + col;
        T* to = out_ + walk.out + col * plan_.out_strides[p] + row;
        tile(words, from, plan_.in_strides[q], to, plan_.out_strides[p], std::min(kTileRows, rows - row),
             std::min(kTileCols, cols - col));
        if ((k + 1) % each == 0) walk.next();
      }
    });
  }

  static void tile([[maybe_unused]] TransposeWords words, const T* in, int64_t in_stride, T* out, int64_t out_stride,
                   int64_t rows, int64_t cols) {
    if constexpr (sizeof(T) == 4) {
      words(in, in_stride, out, out_stride, rows, cols);
    } else {
      for (int64_t j = 0; j < cols; ++j)
        for (int64_t i = 0; i < rows; ++i) std::memcpy(out + j * out_stride + i, in + i * in_stride + j, sizeof(T));
    }
  }

  void elements() {
    const int last = plan_.rank - 1;
    const int64_t length = plan_.dims[last], in_step = plan_.in_strides[last], out_step = plan_.out_strides[last];
    Walker all(plan_, last, last);
    pool_.parallel_for(all.size(), 1.0 * static_cast<double>(length), [&](int64_t begin, int64_t end) {
      Walker walk(plan_, last, last);
      walk.seek(begin);
      for (int64_t k = begin; k < end; ++k, walk.next()) {
        const T* from = in_ + walk.in;
        T* to = out_ + walk.out;
        for (int64_t i = 0; i < length; ++i) std::memcpy(to + i * out_step, from + i * in_step, sizeof(T));
      }
    });
  }

  const ViewCopy& plan_;
  const T* in_;
  T* out_;
  ThreadPool& pool_;
};

}  // namespace

void view_copy(const ViewCopy& plan, const void* in, void* out, ThreadPool& pool) {
  for (int d = 0; d < plan.rank; ++d)
    if (plan.dims[d] == 0) return;
  switch (plan.elem_bytes) {
    case 1: return Copier<uint8_t>(plan, in, out, pool).run();
    case 2: return Copier<uint16_t>(plan, in, out, pool).run();
    case 4: return Copier<uint32_t>(plan, in, out, pool).run();
    case 8: return Copier<uint64_t>(plan, in, out, pool).run();
    default: return Copier<Wide>(plan, in, out, pool).run();
  }
}

}  // namespace epona
#endif  // HWY_ONCE
