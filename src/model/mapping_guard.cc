#include "model/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>

#include "base/error.h"
#include "model/mapping.h"
#include "model/model.h"

namespace epona {
namespace {

/// Read by the signal handler, so it is never freed, only used again.
struct Entry {
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<bool> used{true}, cut{false};
  Entry* next = nullptr;
};

std::atomic<Entry*> entries{nullptr};

Entry& free_entry() {
  for (Entry* entry = entries; entry; entry = entry->next)
    if (bool unused = false; entry->used.compare_exchange_strong(unused, true)) return *entry;
  auto* fresh = new Entry;
  fresh->next = entries;
  while (!entries.compare_exchange_weak(fresh->next, fresh)) {
  }
  return *fresh;
}

struct sigaction previous{};

/// A page that the file has no more: the rest of the mapping is gone with it.
bool fill_with_zeros(uintptr_t address) {
  for (Entry* entry = entries; entry; entry = entry->next) {
    uintptr_t end = entry->end;
    if (address < entry->begin || address >= end) continue;
    auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    uintptr_t from = address / page * page;
    size_t bytes = (end - from + page - 1) / page * page;
    void* memory =
        mmap(reinterpret_cast<void*>(from), bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) return false;
    entry->cut = true;
    return true;
  }
  return false;
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  int saved = errno;
  bool filled = fill_with_zeros(reinterpret_cast<uintptr_t>(info->si_addr));
  errno = saved;
  if (filled) return;
  if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(number, info, context);
  if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(number);
  sigaction(SIGBUS, &previous, nullptr);  // the instruction is tried again, and fails as it would have without us
}

std::mutex guards_mutex;
int guards = 0;

}  // namespace

WatchedRange::WatchedRange(const void* begin, size_t bytes) {
  Entry& entry = free_entry();
  entry.cut = false;
  entry.end = reinterpret_cast<uintptr_t>(begin) + bytes;
  entry.begin = reinterpret_cast<uintptr_t>(begin);
  entry_ = &entry;
}

WatchedRange::~WatchedRange() {
  auto* entry = static_cast<Entry*>(entry_);
  entry->begin = UINTPTR_MAX;
  entry->end = 0;
  entry->used = false;
}

bool WatchedRange::cut_short() const { return static_cast<Entry*>(entry_)->cut; }

MappingGuard::MappingGuard() {
  std::lock_guard lock(guards_mutex);
  if (guards++ > 0) return;
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, &previous);
}

MappingGuard::~MappingGuard() {
  std::lock_guard lock(guards_mutex);
  if (--guards > 0) return;
  struct sigaction now{};
  sigaction(SIGBUS, nullptr, &now);
  // Somebody else's, set meanwhile, stays.
  if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error) sigaction(SIGBUS, &previous, nullptr);
}

void refuse_changed_files(const ModelSource& source) {
  auto check = [](const FileMapping& file) {
    if (file.written_since())
      fail(Code::fail, file.path().string(),
           " was written to or cut short while it was read: write a new file and rename it over the old one");
  };
  if (!source.path.empty() && source.owner) check(*std::static_pointer_cast<FileMapping>(source.owner));
  for (auto& [name, file] : source.external) check(*file);
}

}  // namespace epona
