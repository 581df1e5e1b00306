#include "providers/openvino/kernel.h"

#include <algorithm>

namespace epona::openvino {
namespace {

constexpr size_t kMaxVariants = 8;  // compiled models kept with disable_dynamic_shapes

}  // namespace

void reshape_model(const Core& core, const ov_model& model, const std::map<std::string, ReshapeDims>& inputs) {
  if (inputs.empty()) return;
  std::vector<const char*> names;
  std::vector<std::vector<ov_dimension>> dims;
  std::vector<ov_partial_shape> shapes;
  for (auto& [name, wanted] : inputs) {
    names.push_back(name.c_str());
    auto& list = dims.emplace_back();
    for (auto& [low, high] : wanted) list.push_back({low, high});
    auto rank = static_cast<int64_t>(list.size());
    shapes.push_back({{rank, rank}, list.data()});
  }
  core.api().check(core.api().model_reshape(&model, names.data(), shapes.data(), names.size()), "reshaping inputs");
}

OpenVinoKernel::OpenVinoKernel(std::shared_ptr<const Core> core, std::shared_ptr<const Cache> cache, const Digest& key,
                               const Graph& group, const Read& read, const Config& config)
    : core_(std::move(core)), cache_(std::move(cache)), key_(key) {
  std::map<std::string, ReshapeDims> reshaped;
  bool unknown = false;
  for (ValueId id : group.inputs) {
    auto it = config.reshape.find(group.values[id].name);
    if (it != config.reshape.end()) reshaped.insert(*it);
    unknown |= !group.values[id].type.static_shape();
  }
  bool later = config.static_shapes && unknown;
  if (!later && (model_ = cached(key_, group))) return;
  Source source = read(group);
  graph_ = std::move(source.graph);
  reshape_model(*core_, *source.model, reshaped);
  if (!later) model_ = compiled(key_, *source.model);
}

std::shared_ptr<const CompiledModel> OpenVinoKernel::cached(const Digest& key, const Graph& group) const {
  if (!cache_) return nullptr;
  auto blob = cache_->find_blob(key);
  if (!blob) return nullptr;
  try {
    return std::make_shared<CompiledModel>(core_, core_->import(blob->bytes), group, blob->file);
  } catch (const std::exception& error) {
    cache_->report_useless(key, error.what());
    return nullptr;
  }
}

std::shared_ptr<const CompiledModel> OpenVinoKernel::compiled(const Digest& key, const ov_model& model) const {
  Owned<ov_compiled_model> made = core_->compile(model);
  if (cache_) cache_->keep_blob(key, *core_, *made);
  return std::make_shared<CompiledModel>(core_, std::move(made), graph_);
}

void OpenVinoKernel::shapes(ShapeContext& c) const {
  for (int o = 0; o < c.outputs(); ++o) c.out(o, *model_->output_shape(static_cast<size_t>(o)));
}

void OpenVinoKernel::run(const RunContext& c) const {
  if (model_) return model_->run(c);
  variant(c)->run(c);
}

std::shared_ptr<const CompiledModel> OpenVinoKernel::variant(const RunContext& c) const {
  std::vector<Shape> shapes;
  shapes.reserve(static_cast<size_t>(c.inputs()));
  for (int i = 0; i < c.inputs(); ++i) shapes.push_back(c.in(i).shape);
  // Held while compiling: runs with the same new shapes wait instead of compiling as well.
  std::lock_guard lock(mutex_);
  auto known = std::find_if(variants_.begin(), variants_.end(), [&](const Variant& v) { return v.shapes == shapes; });
  if (known != variants_.end()) {
    variants_.splice(variants_.begin(), variants_, known);
    return variants_.front().model;
  }
  Digest key = Cache::with_shapes(key_, shapes);
  std::shared_ptr<const CompiledModel> model = cached(key, graph_);
  if (!model) {
    std::map<std::string, ReshapeDims> dims;
    for (size_t i = 0; i < shapes.size(); ++i) {
      ReshapeDims& list = dims[graph_.values[graph_.inputs[i]].name];
      for (int64_t dim : shapes[i]) list.emplace_back(dim, dim);
    }
    Owned<ov_model> read = core_->read(graph_);
    reshape_model(*core_, *read, dims);
    model = compiled(key, *read);
  }
  variants_.push_front({shapes, std::move(model)});
  if (variants_.size() > kMaxVariants) variants_.pop_back();
  return variants_.front().model;
}

}  // namespace epona::openvino
