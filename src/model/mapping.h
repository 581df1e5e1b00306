#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "model/mapping_guard.h"

namespace epona {

/// A file mapped read-only into memory, kept alive by shared_ptr (weights are views into it).
class FileMapping {
 public:
  /// Throws Error(no_such_file) or Error(fail) with the system's reason.
  static std::shared_ptr<FileMapping> open(const std::filesystem::path& path);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  /// Lets the kernel drop the pages inside [from, from+count): they are read again from the file when touched.
  void release_pages(const void* from, size_t count) const;
  /// Whether the file was written to or cut short since it was opened, which shows in the mapping. (A file that was replaced by
  /// another of its name stays as it was.)
  bool written_since() const;
  const std::filesystem::path& path() const { return path_; }

 private:
  FileMapping() = default;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::filesystem::path path_;
  uint64_t device_ = 0, inode_ = 0;
  int64_t modified_ns_ = 0;
  std::optional<WatchedRange> watched_;
};

}  // namespace epona
