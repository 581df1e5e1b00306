#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/json.h"
#include "commands.h"
#include "npy.h"
#include "ops/dispatch.h"

namespace epona::cli {
namespace {

struct Range {
  double low, high, mean;
};

/// Of the elements of a tensor of numbers; nothing when it has none.
std::optional<Range> range_of(const Tensor& tensor) {
  std::optional<Range> range;
  dispatch(tensor.type, NumericTypes{}, [&]<class T>() {
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (T element : tensor.span<T>()) {
      auto x = static_cast<double>(element);
      sum += x;
      low = std::min(low, x);
      high = std::max(high, x);
    }
    if (tensor.size() > 0) range = Range{low, high, sum / static_cast<double>(tensor.size())};
  });
  return range;
}

const char* kind_name(RuntimeValue::Kind kind) {
  switch (kind) {
    case RuntimeValue::Kind::tensor:
      return "tensor";
    case RuntimeValue::Kind::sequence:
      return "sequence";
    case RuntimeValue::Kind::map:
      return "map";
    default:
      return "nothing";
  }
}

/// Shape, and minimum, maximum and mean of the elements.
void print_value(const std::string& name, const RuntimeValue& value) {
  std::printf("%s: ", name.c_str());
  if (value.kind == RuntimeValue::Kind::sequence) {
    std::printf("sequence of %zu", value.items->size());
  } else if (value.kind != RuntimeValue::Kind::tensor) {
    std::printf("%s", kind_name(value.kind));
  } else {
    std::string shape = cat(value.tensor.shape);
    std::printf("%s[%s]", type_name(value.tensor.type), shape.substr(1, shape.size() - 2).c_str());
    if (auto range = range_of(value.tensor))
      std::printf("  min %g  max %g  mean %g", range->low, range->high, range->mean);
  }
  std::printf("\n");
}

/// What a program can read of a result: a tensor's type, shape and, where it has numbers, their range.
void describe(JsonWriter& json, const RuntimeValue& value) {
  if (value.kind != RuntimeValue::Kind::tensor) {
    json.field("type", kind_name(value.kind));
    if (value.kind == RuntimeValue::Kind::sequence) json.field("length", value.items->size());
    return;
  }
  const Tensor& tensor = value.tensor;
  json.field("type", type_name(tensor.type)).key("shape").begin_array();
  for (int64_t dim : tensor.shape) json.value(dim);
  json.end_array();
  if (auto range = range_of(tensor)) json.field("min", range->low).field("max", range->high).field("mean", range->mean);
}

void save(const std::string& folder, const std::string& name, const RuntimeValue& value) {
  std::string safe = name;
  for (char& c : safe)
    if (c == '/' || c == '\\' || c == ':') c = '_';
  if (value.kind == RuntimeValue::Kind::tensor) {
    write_npy(std::filesystem::path(folder) / (safe + ".npy"), value.tensor);
  } else if (value.kind == RuntimeValue::Kind::sequence) {
    for (size_t i = 0; i < value.items->size(); ++i) save(folder, name + "." + std::to_string(i), (*value.items)[i]);
  } else if (value.kind == RuntimeValue::Kind::map) {
    save(folder, name + ".keys", value.map->keys);
    save(folder, name + ".values", value.map->values);
  }
}

}  // namespace

int command_run(const std::vector<std::string>& words) {
  Args args = parse(words, session_specs({{"input", true}, {"random", false}, {"seed", true}, {"save", true}}));
  std::string path = model_argument(args);
  auto session = [&] {
    Progress progress("loading " + path);
    return std::make_unique<Session>(path, session_options(args));
  }();
  auto feeds = make_feeds(*session, args, true);
  std::vector<RuntimeValue> results(session->outputs().size());
  auto start = std::chrono::steady_clock::now();
  {
    Progress progress("running " + path);
    session->run_positional(feeds, results);
  }
  double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  std::string folder = args.get("save");
  if (!folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail(Code::fail, "--save ", folder, ": the folder cannot be made: ", error.message());
    for (size_t i = 0; i < results.size(); ++i) save(folder, session->outputs()[i].name, results[i]);
  }
  if (args.has("json")) {
    JsonWriter json;
    json.begin_object().field("model", path).field("milliseconds", ms).key("outputs").begin_array();
    for (size_t i = 0; i < results.size(); ++i) {
      json.begin_object().field("name", session->outputs()[i].name);
      describe(json, results[i]);
      json.end_object();
    }
    json.end_array().end_object();
    std::printf("%s\n", json.text().c_str());
    return 0;
  }
  for (size_t i = 0; i < results.size(); ++i) print_value(session->outputs()[i].name, results[i]);
  std::printf("%.3f ms\n", ms);
  return 0;
}

}  // namespace epona::cli
