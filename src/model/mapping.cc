#include "model/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace epona {

namespace {

int64_t modified_ns(const struct stat& info) {
  return info.st_mtim.tv_sec * int64_t{1000000000} + info.st_mtim.tv_nsec;
}

}  // namespace

std::shared_ptr<FileMapping> FileMapping::open(const std::filesystem::path& path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      fail(Code::no_such_file, "Load model from ", path.string(), " failed: the file does not exist");
    fail(Code::fail, "cannot open ", path.string(), ": ", std::strerror(errno));
  }
  struct stat info{};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    fail(Code::invalid_protobuf, "Load model from ", path.string(), " failed: not a regular file");
  }
  auto mapping = std::shared_ptr<FileMapping>(new FileMapping);
  mapping->size_ = static_cast<size_t>(info.st_size);
  mapping->path_ = path;
  mapping->device_ = info.st_dev;
  mapping->inode_ = info.st_ino;
  mapping->modified_ns_ = modified_ns(info);
  if (mapping->size_ > 0) {
    void* address = mmap(nullptr, mapping->size_, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    if (address == MAP_FAILED) {
      ::close(fd);
      fail(Code::fail, "cannot map ", path.string(), ": ", std::strerror(error));
    }
    mapping->data_ = static_cast<const std::byte*>(address);
    mapping->watched_.emplace(address, mapping->size_);
  }
  ::close(fd);
  return mapping;
}

bool FileMapping::written_since() const {
  if (watched_ && watched_->cut_short()) return true;
  struct stat info{};
  if (::stat(path_.c_str(), &info) != 0 || info.st_dev != device_ || info.st_ino != inode_) return false;
  return static_cast<size_t>(info.st_size) != size_ || modified_ns(info) != modified_ns_;
}

FileMapping::~FileMapping() {
  watched_.reset();
  if (data_) munmap(const_cast<std::byte*>(data_), size_);
}

void FileMapping::release_pages(const void* from, size_t count) const {
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto begin = (reinterpret_cast<uintptr_t>(from) + page - 1) / page * page;
  auto end = (reinterpret_cast<uintptr_t>(from) + count) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace epona
