#include "session/profiler.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>

namespace epona {
namespace {

// A trace of a long-running service must not eat its memory.
constexpr size_t kMaxEvents = 1'000'000;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string file_name(const std::string& prefix, uint64_t wall_ns) {
  auto seconds = static_cast<time_t>(wall_ns / 1'000'000'000);
  tm parts{};
  localtime_r(&seconds, &parts);
  char when[64];
  std::strftime(when, sizeof when, "%Y-%m-%d_%H-%M-%S", &parts);
  char millis[8];
  std::snprintf(millis, sizeof millis, "_%03u", static_cast<unsigned>(wall_ns / 1'000'000 % 1000));
  return prefix + "_" + when + millis + ".json";
}

}  // namespace

int64_t Profiler::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Profiler::Profiler(std::string prefix)
    : prefix_(std::move(prefix)),
      start_ns_(now_ns()),
      wall_start_ns_(static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count())) {}

void Profiler::step(const Node& node, const std::string& provider, int64_t begin_ns, int64_t end_ns) {
  if (!active_) return;
  auto thread = static_cast<int>(syscall(SYS_gettid));
  std::lock_guard lock(mutex_);
  if (events_.size() >= kMaxEvents) return;
  int index = indices_.emplace(&node, static_cast<int>(indices_.size())).first->second;
  events_.push_back({true, thread, index, node.name, node.op, provider, begin_ns, end_ns});
}

void Profiler::session_event(const std::string& name, int64_t begin_ns, int64_t end_ns) {
  if (!active_) return;
  auto thread = static_cast<int>(syscall(SYS_gettid));
  std::lock_guard lock(mutex_);
  if (events_.size() < kMaxEvents) events_.push_back({false, thread, 0, name, "", "", begin_ns, end_ns});
}

std::string Profiler::finish() {
  if (!active_.exchange(false)) return "";
  std::lock_guard lock(mutex_);
  std::string name = file_name(prefix_, wall_start_ns_);
  std::ofstream out(name);
  out << "[\n";
  const char* separator = "";
  for (const Event& event : events_) {
    out << separator << "{\"cat\" : \"" << (event.is_node ? "Node" : "Session") << "\",\"pid\" :" << getpid()
        << ",\"tid\" :" << event.thread << ",\"dur\" :" << (event.end_ns - event.begin_ns) / 1000
        << ",\"ts\" :" << (event.begin_ns - start_ns_) / 1000
        << ",\"ph\" : \"X\",\"name\" :" << quoted(event.is_node ? event.name + "_kernel_time" : event.name)
        << ",\"args\" : {";
    if (event.is_node)
      out << "\"op_name\" : " << quoted(event.op) << ",\"provider\" : " << quoted(event.provider)
          << ",\"node_index\" : \"" << event.index << '"';
    out << "}}";
    separator = ",\n";
  }
  out << "\n]\n";
  out.close();
  if (!out) fail(Code::fail, "the profile cannot be written to '", name, "'");
  events_.clear();
  return name;
}

}  // namespace epona
