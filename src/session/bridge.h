#pragma once
// The library's inside as the public C++ API (include/epona/epona.h) sees it. Both sides have classes named Session, so
// neither header includes the other's: this one names no class of either.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace epona::bridge {

/// A failure on its way out: code and message.
struct Failure {
  int code;
  std::string message;
};

using Handle = std::shared_ptr<void>;  ///< to a RuntimeValue or a Session of the inside

struct Options {
  int threads, optimization_level, log_severity;
  std::string optimized_model_path;
  std::map<std::string, int64_t> dims;
  std::map<std::string, std::string> config;
  std::vector<std::pair<std::string, std::map<std::string, std::string>>> providers;
};

struct Info {
  std::string name, type;
  std::vector<int64_t> shape;
  std::vector<std::string> dims;
};

// Every function throws Failure.
Handle make_none();
Handle make_tensor(int type, void* elements, size_t count,
                   std::span<const int64_t> shape);  ///< null elements: allocate
Handle make_tensor_on(int type, std::span<const int64_t> shape, const std::string& device);  ///< allocated there
Handle make_wanted_on(const std::string& device);  ///< no elements yet: asks a run to leave an output there
std::string device(const Handle& value);           ///< "cpu", "cuda:0"
Handle brought_to(const Handle& value, const std::string& device);
void assign(const Handle& to, const Handle& from);
int kind(const Handle& value);  ///< as RuntimeValue::Kind
int type(const Handle& value);
std::span<const int64_t> shape(const Handle& value);
size_t size(const Handle& value);
void* data(const Handle& value);
std::vector<Handle> items(const Handle& value);
std::pair<Handle, Handle> map_entries(const Handle& value);

Handle open(const std::string* path, std::span<const std::byte> bytes, const Options& options);
std::vector<Info> inputs(const Handle& session);
std::vector<Info> outputs(const Handle& session);
std::vector<std::string> providers(const Handle& session);
std::vector<std::array<std::string, 3>> placement(const Handle& session);
void run(const Handle& session, std::span<const Handle> inputs, std::span<Handle> outputs);

}  // namespace epona::bridge
