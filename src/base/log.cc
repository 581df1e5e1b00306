#include "base/log.h"

#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>

namespace epona {
namespace {

std::atomic<int> severity_default{static_cast<int>(Severity::warning)};

struct Sink {
  std::mutex mutex;
  std::shared_ptr<const LogSink> fn;
};
Sink& sink() {
  static Sink instance;
  return instance;
}

void print(Severity severity, std::string_view log_id, std::string_view message) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  localtime_r(&now.tv_sec, &parts);
  char when[32];
  std::strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &parts);
  const char letter = "VIWEF"[static_cast<int>(severity)];
  bool colour = isatty(STDERR_FILENO) && severity >= Severity::warning;
  const char* on = !colour ? "" : severity == Severity::warning ? "\033[0;93m" : "\033[1;31m";
  std::fprintf(stderr, "%s%s.%06ld [%c:epona:%.*s] %.*s%s\n", on, when, now.tv_nsec / 1000, letter,
               static_cast<int>(log_id.size()), log_id.data(), static_cast<int>(message.size()), message.data(),
               colour ? "\033[m" : "");
}

}  // namespace

void set_default_severity(Severity severity) { severity_default = static_cast<int>(severity); }
Severity default_severity() { return static_cast<Severity>(severity_default.load()); }

void set_log_sink(LogSink fn) {
  std::lock_guard lock(sink().mutex);
  sink().fn = fn ? std::make_shared<const LogSink>(std::move(fn)) : nullptr;
}

void log(Severity severity, Severity threshold, std::string_view log_id, std::string_view message) {
  if (severity < threshold) return;
  std::shared_ptr<const LogSink> fn;
  {
    std::lock_guard lock(sink().mutex);
    fn = sink().fn;
    if (!fn) print(severity, log_id, message);
  }
  // Not under the lock: the sink may wait for another lock, whose owner may be logging.
  if (fn) (*fn)(severity, log_id, message);
}

}  // namespace epona
