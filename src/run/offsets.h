#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace epona {

/// Hands out offsets in one block: best fit among the gaps, else the end grows. Sizes are rounded up to 64 bytes.
class OffsetAllocator {
 public:
  void reset() {
    gaps_.clear();
    end_ = peak_ = 0;
  }
  size_t peak() const { return peak_; }

  static size_t rounded(size_t bytes) { return (std::max<size_t>(bytes, 1) + 63) / 64 * 64; }

  size_t allocate(size_t bytes) {
    bytes = rounded(bytes);
    size_t best = gaps_.size();
    for (size_t i = 0; i < gaps_.size(); ++i)
      if (gaps_[i].bytes >= bytes && (best == gaps_.size() || gaps_[i].bytes < gaps_[best].bytes)) best = i;
    if (best < gaps_.size()) {
      size_t offset = gaps_[best].offset;
      gaps_[best].offset += bytes;
      gaps_[best].bytes -= bytes;
      if (gaps_[best].bytes == 0) gaps_.erase(gaps_.begin() + static_cast<std::ptrdiff_t>(best));
      return offset;
    }
    // A gap that touches the end grows into the new space.
    if (!gaps_.empty() && gaps_.back().offset + gaps_.back().bytes == end_) {
      size_t offset = gaps_.back().offset;
      gaps_.pop_back();
      end_ = offset + bytes;
      peak_ = std::max(peak_, end_);
      return offset;
    }
    size_t offset = end_;
    end_ += bytes;
    peak_ = std::max(peak_, end_);
    return offset;
  }

  void release(size_t offset, size_t bytes) {
    bytes = rounded(bytes);
    auto at = std::lower_bound(gaps_.begin(), gaps_.end(), offset,
                               [](const Gap& gap, size_t value) { return gap.offset < value; });
    bool joins_left = at != gaps_.begin() && (at - 1)->offset + (at - 1)->bytes == offset;
    bool joins_right = at != gaps_.end() && offset + bytes == at->offset;
    if (joins_left && joins_right) {
      (at - 1)->bytes += bytes + at->bytes;
      gaps_.erase(at);
    } else if (joins_left) {
      (at - 1)->bytes += bytes;
    } else if (joins_right) {
      at->offset = offset;
      at->bytes += bytes;
    } else {
      gaps_.insert(at, {offset, bytes});
    }
  }

 private:
  struct Gap {
    size_t offset, bytes;
  };
  std::vector<Gap> gaps_;  // by offset
  size_t end_ = 0, peak_ = 0;
};

}  // namespace epona
