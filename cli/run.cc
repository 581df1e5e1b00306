#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/json.h"
#include "commands.h"
#include "npy.h"

namespace epona::cli {
namespace {

/// Shape, and minimum, maximum and mean of a float tensor's elements.
void print_value(const std::string& name, const RuntimeValue& value) {
  if (value.kind == RuntimeValue::Kind::sequence) {
    std::printf("%s: sequence of %zu\n", name.c_str(), value.items->size());
    return;
  }
  if (value.kind != RuntimeValue::Kind::tensor) {
    std::printf("%s: %s\n", name.c_str(), value.kind == RuntimeValue::Kind::map ? "map" : "nothing");
    return;
  }
  const Tensor& tensor = value.tensor;
  std::printf("%s: %s%s", name.c_str(), type_name(tensor.type), cat(tensor.shape).c_str());
  if (tensor.type == DataType::float32 && tensor.size() > 0) {
    double sum = 0;
    float low = tensor.as<float>()[0], high = low;
    for (float x : tensor.span<float>()) {
      sum += x;
      low = std::min(low, x);
      high = std::max(high, x);
    }
    std::printf("  min %g  max %g  mean %g", static_cast<double>(low), static_cast<double>(high),
                sum / static_cast<double>(tensor.size()));
  }
  std::printf("\n");
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
    std::filesystem::create_directories(folder);
    for (size_t i = 0; i < results.size(); ++i) save(folder, session->outputs()[i].name, results[i]);
  }
  if (args.has("json")) {
    JsonWriter json;
    json.begin_object().field("model", path).field("milliseconds", ms).key("outputs").begin_array();
    for (size_t i = 0; i < results.size(); ++i) {
      json.begin_object().field("name", session->outputs()[i].name);
      if (results[i].kind == RuntimeValue::Kind::tensor) {
        json.field("type", type_name(results[i].tensor.type)).key("shape").begin_array();
        for (int64_t dim : results[i].tensor.shape) json.value(dim);
        json.end_array();
      }
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
