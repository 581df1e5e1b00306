#pragma once
#include <cstddef>

namespace epona {

struct ModelSource;

/// A range of memory into which a file is mapped.
class WatchedRange {
 public:
  WatchedRange(const void* begin, size_t bytes);
  ~WatchedRange();
  WatchedRange(const WatchedRange&) = delete;
  WatchedRange& operator=(const WatchedRange&) = delete;
  /// Whether pages of it were read that the file has no more.
  bool cut_short() const;

 private:
  void* entry_;
};

/// While one lives, reading a page of a watched range that the file has no more (another process cut it short) gives zeros
/// instead of ending this process with SIGBUS. The handler of the signal is put back when the last one goes.
class MappingGuard {
 public:
  MappingGuard();
  ~MappingGuard();
  MappingGuard(const MappingGuard&) = delete;
  MappingGuard& operator=(const MappingGuard&) = delete;
};

/// Throws when a file of the model was written to or cut short since it was opened: what was read of it may be anything.
void refuse_changed_files(const ModelSource& source);

}  // namespace epona
