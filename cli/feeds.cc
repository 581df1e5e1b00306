#include <algorithm>
#include <random>

#include "commands.h"
#include "npy.h"
#include "ops/dispatch.h"

namespace epona::cli {
namespace {

/// Random elements: floats are normal, integers in [0, 10), booleans and strings simple.
void fill_random(Tensor& tensor, std::mt19937& generator) {
  std::normal_distribution<float> normal;
  if (tensor.type == DataType::string) {
    for (std::string& text : tensor.span<std::string>()) text = "text" + std::to_string(generator() % 10);
    return;
  }
  if (tensor.type == DataType::boolean) {
    for (bool& item : tensor.span<bool>()) item = generator() % 2;
    return;
  }
  bool known = dispatch(tensor.type, NumericTypes{}, [&]<class T>() {
    for (T& item : tensor.span<T>()) {
      if constexpr (std::is_integral_v<T>)
        item = static_cast<T>(generator() % 10);
      else
        item = static_cast<T>(normal(generator));
    }
  });
  if (!known) std::fill_n(tensor.as<char>(), tensor.bytes(), 0);
}

}  // namespace

std::vector<RuntimeValue> make_feeds(const Session& session, const Args& args, bool need_all) {
  std::map<std::string, std::string> files;
  for (const std::string& text : args.all("input"))
    if (auto [name, file] = split_pair(text, "input"); !files.emplace(name, file).second)
      throw UsageError{"--input gives '" + name + "' twice"};
  for (const auto& [name, file] : files) {
    auto given = [&name = name](const IoInfo& input) { return input.name == name; };
    if (std::any_of(session.inputs().begin(), session.inputs().end(), given)) continue;
    std::string known;
    for (const IoInfo& input : session.inputs()) known += (known.empty() ? "" : ", ") + input.name;
    throw UsageError{"the model has no input '" + name + "'; it has: " + known};
  }
  std::map<std::string, int64_t> dims = dims_of(args);
  check_dims(dims, session.inputs());
  std::mt19937 generator(static_cast<unsigned>(args.number("seed", 1234)));
  std::vector<RuntimeValue> feeds;
  for (const IoInfo& input : session.inputs()) {
    auto file = files.find(input.name);
    if (file != files.end()) {
      feeds.emplace_back(read_npy(file->second));
      continue;
    }
    if (need_all && !args.has("random"))
      throw UsageError{"input '" + input.name + "' (" + typed(input.type) + ") is not given: --input " + input.name +
                       "=FILE.npy, or --random for made-up inputs"};
    if (!input.type.is_tensor())
      throw UsageError{"input '" + input.name + "' is a " + input.type.to_string() + ": only tensors can be made up"};
    Shape shape;
    for (const Dim& dim : input.type.shape.value_or(std::vector<Dim>())) {
      auto given = dims.find(dim.symbol);
      shape.push_back(dim.known() ? dim.value : given != dims.end() ? given->second : 1);
    }
    Tensor tensor = Tensor::allocate(input.type.elem, shape);
    fill_random(tensor, generator);
    feeds.emplace_back(std::move(tensor));
  }
  return feeds;
}

}  // namespace epona::cli
