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

/// [{"float":[2,3]},{"int64":[1]}]
std::string list_text(const std::vector<std::pair<DataType, Shape>>& values) {
  std::string text = "[";
  for (auto& [type, shape] : values) {
    text += cat(text.size() > 1 ? "," : "", "{\"", type, "\":[");
    for (int i = 0; i < shape.rank(); ++i) text += cat(i ? "," : "", shape[i]);
    text += "]}";
  }
  return text + "]";
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

Profiler::Profiler(std::string prefix, int64_t begin_ns)
    : prefix_(std::move(prefix)),
      start_ns_(begin_ns),
      wall_start_ns_(static_cast<uint64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count() -
          (now_ns() - begin_ns))) {}

thread_local Profiler::Values Profiler::shown_;

void Profiler::values(const RunContext& context, uint64_t constants) {
  shown_ = {};
  if (!active_) return;
  auto add = [](Typed& list, const Tensor& tensor, size_t& bytes) {
    if (tensor.type == DataType::undefined) return;  // a sequence or map
    list.emplace_back(tensor.type, tensor.shape);
    bytes += tensor.bytes();
  };
  for (int i = 0; i < context.inputs(); ++i)
    if (context.has(i))
      add(shown_.inputs, context.in(i), i < 64 && constants >> i & 1 ? shown_.constant_bytes : shown_.input_bytes);
  for (int o = 0; o < context.outputs(); ++o)
    if (context.wants(o)) add(shown_.outputs, context.out(o), shown_.output_bytes);
}

void Profiler::step(const Node& node, const std::string& provider, int64_t begin_ns, int64_t end_ns) {
  if (!active_) return;
  auto thread = static_cast<int>(syscall(SYS_gettid));
  std::lock_guard lock(mutex_);
  if (events_.size() >= kMaxEvents) return;
  int index = indices_.emplace(&node, static_cast<int>(indices_.size())).first->second;
  events_.push_back({true, thread, index, node.name, node.op, provider, begin_ns, end_ns, std::move(shown_)});
}

void Profiler::session_event(const std::string& name, int64_t begin_ns, int64_t end_ns) {
  if (!active_) return;
  auto thread = static_cast<int>(syscall(SYS_gettid));
  std::lock_guard lock(mutex_);
  if (events_.size() < kMaxEvents) events_.push_back({false, thread, 0, name, "", "", begin_ns, end_ns, {}});
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
    if (event.is_node) {
      const Values& values = event.values;
      out << "\"op_name\" : " << quoted(event.op) << ",\"provider\" : " << quoted(event.provider)
          << ",\"node_index\" : \"" << event.index << "\",\"input_type_shape\" : " << list_text(values.inputs)
          << ",\"output_type_shape\" : " << list_text(values.outputs) << ",\"activation_size\" : \""
          << values.input_bytes << "\",\"parameter_size\" : \"" << values.constant_bytes << "\",\"output_size\" : \""
          << values.output_bytes << '"';
    }
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
