#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "model/check.h"
#include "model/from_proto.h"
#include "model/model.h"
#include "model/replace_initializers.h"
#include "model/wire.h"

namespace epona {
namespace {

void apply_overrides(onnx::GraphProto& graph, const LoadOptions& options, std::vector<std::string>& warnings) {
  std::set<std::string> used, symbols;
  for (auto& input : *graph.mutable_input()) {
    if (!input.type().has_tensor_type() || !input.type().tensor_type().has_shape()) continue;
    for (auto& dim : *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim()) {
      auto by_symbol = options.dim_by_symbol.find(dim.dim_param());
      auto by_denotation = options.dim_by_denotation.find(dim.denotation());
      if (dim.has_dim_param()) symbols.insert(dim.dim_param());
      if (by_symbol != options.dim_by_symbol.end()) used.insert(by_symbol->first);
      if (dim.has_dim_param() && by_symbol != options.dim_by_symbol.end())
        dim.set_dim_value(by_symbol->second);
      else if (!dim.denotation().empty() && by_denotation != options.dim_by_denotation.end())
        dim.set_dim_value(by_denotation->second);
    }
  }
  std::string known;
  for (const std::string& symbol : symbols) known += (known.empty() ? "'" : ", '") + symbol + "'";
  for (auto& [name, size] : options.dim_by_symbol) {
    if (used.contains(name)) continue;
    if (options.refuse_unknown_dims)
      throw UnknownDimension(
          cat("no input has a symbolic dimension '", name, "'; ",
              known.empty() ? "all of their dimensions are fixed or nameless" : "they have: ", known));
    warnings.push_back(cat("the free dimension override '", name,
                           "' has no effect: no input has a dimension of that name",
                           known.empty() ? std::string() : "; they have: " + known));
  }
}

Model load(std::span<const std::byte> bytes, std::shared_ptr<void> owner, const std::filesystem::path& path,
           const LoadOptions& options, std::map<std::string, std::shared_ptr<FileMapping>> external = {}) {
  const std::string from = path.empty() ? "" : cat("Load model from ", path.string(), " failed: ");
  onnx::ModelProto proto;
  auto skeleton = make_skeleton(bytes);
  if (!skeleton || !proto.ParseFromString(skeleton->bytes))
    fail(Code::invalid_protobuf, from, "Protobuf parsing failed.",
         bytes.empty() ? "" : " The file is damaged, incomplete, or not an ONNX model.");
  if (!proto.has_graph()) fail(Code::invalid_argument, from, "No graph was found in the protobuf.");
  try {
    stop_if_cancelled(options.cancel);
    ensure_schemas();
    Model model;
    owner = replace_initializers(*proto.mutable_graph(), options.initializers, skeleton->blobs, std::move(owner),
                                 model.warnings);
    auto opsets = check_model_header(proto, model.warnings);
    check_nodes(proto, opsets);
    apply_overrides(*proto.mutable_graph(), options, model.warnings);
    inline_functions(proto, opsets);
    if (!proto.functions().empty()) proto.clear_functions();
    for (const auto& import : proto.opset_import())
      opsets.emplace(import.domain() == "ai.onnx" ? "" : import.domain(), static_cast<int>(import.version()));
    stop_if_cancelled(options.cancel);
    infer_types(proto);
    stop_if_cancelled(options.cancel);
    WeightSource source;
    source.blobs = std::move(skeleton->blobs);
    source.blob_owner = std::move(owner);
    source.memory_files = &options.files;
    source.cancel = options.cancel;
    source.locations = std::move(external);
    source.folder = path.empty() ? "" : std::filesystem::absolute(path).parent_path();
    model.graph = graph_from_proto(proto.graph(), opsets, source, model.warnings);
    for (auto& [location, mapping] : source.locations)
      if (std::find(model.mappings.begin(), model.mappings.end(), mapping) == model.mappings.end())
        model.mappings.push_back(mapping);
    model.source.path = path;
    model.source.external = source.locations;
    model.ir_version = proto.ir_version();
    model.model_version = proto.model_version();
    model.producer_name = proto.producer_name();
    model.producer_version = proto.producer_version();
    model.domain = proto.domain();
    model.description = proto.doc_string();
    model.graph_description = proto.graph().doc_string();
    model.graph_name = proto.graph().name();
    for (const auto& entry : proto.metadata_props()) model.metadata[entry.key()] = entry.value();
    return model;
  } catch (const UnknownDimension&) {
    throw;
  } catch (const Error& error) {
    throw Error(error.code(), from + error.what());
  } catch (const std::bad_alloc&) {
    fail(Code::fail, from, "out of memory while the model was read");
  } catch (const std::exception& error) {
    fail(Code::fail, from, error.what());
  }
}

bool lies_in(const Tensor& tensor, std::span<const std::byte> bytes) {
  auto* data = static_cast<const std::byte*>(tensor.data);
  return tensor.type != DataType::string && data >= bytes.data() && data < bytes.data() + bytes.size();
}

}  // namespace

void Model::release(const Tensor& constant) const {
  for (auto& mapping : mappings)
    if (lies_in(constant, mapping->bytes())) mapping->release_pages(constant.data, constant.bytes());
}

void Model::release_pages() const {
  for (auto& mapping : mappings) mapping->release_pages(mapping->bytes().data(), mapping->bytes().size());
}

void Model::keep(Tensor& constant) const {
  const bool in_file = std::any_of(mappings.begin(), mappings.end(),
                                   [&](const auto& mapping) { return lies_in(constant, mapping->bytes()); });
  if (!in_file) return;
  // In pieces, given back one by one: never is the whole held twice.
  constexpr size_t kPiece = 4 << 20;
  Tensor copy = Tensor::allocate(constant.type, constant.shape), piece = constant;
  for (size_t at = 0, bytes = constant.bytes(); at < bytes; at += kPiece) {
    const size_t count = std::min(kPiece, bytes - at);
    piece.data = static_cast<std::byte*>(constant.data) + at;
    piece.type = DataType::uint8;
    piece.shape = Shape{static_cast<int64_t>(count)};
    std::memcpy(static_cast<std::byte*>(copy.data) + at, piece.data, count);
    release(piece);
  }
  constant = std::move(copy);
}

Model load_model(const std::filesystem::path& path, const LoadOptions& options) {
  MappingGuard guard;
  auto mapping = FileMapping::open(path);
  ModelSource source;
  source.path = path;
  source.owner = mapping;
  try {
    Model model = load(mapping->bytes(), mapping, path, options);
    model.mappings.push_back(mapping);
    model.source.bytes = mapping->bytes();
    model.source.owner = mapping;
    refuse_changed_files(model.source);
    return model;
  } catch (...) {
    refuse_changed_files(source);  // which then is the cause
    throw;
  }
}

Model load_model(std::span<const std::byte> bytes, const LoadOptions& options) {
  // The caller's bytes may go away: keep a copy, into which the weights point. It lives as long as they do, so the model
  // cannot be read from it again.
  auto copy = std::shared_ptr<std::byte[]>(new std::byte[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), copy.get());
  return load({copy.get(), bytes.size()}, copy, {}, options);
}

Model load_model(std::span<const std::byte> bytes, std::shared_ptr<void> owner, const LoadOptions& options) {
  Model model = load(bytes, owner, {}, options);
  model.source.bytes = bytes;
  model.source.owner = std::move(owner);
  return model;
}

Model load_again(const ModelSource& source, const LoadOptions& options) {
  if (source.bytes.empty())
    fail(
        Code::fail,
        "the model cannot be planned again: a session of the CPU alone that is made of bytes does not keep them. Open it "
        "from a file, give the bytes with an owner, or name the providers when the session is made");
  const auto refuse_changed = [](const FileMapping& file) {
    if (file.written_since())
      fail(Code::fail, "the model cannot be planned again: ", file.path().string(),
           " was written to since the session was made. Make a new session");
  };
  if (!source.path.empty()) refuse_changed(*std::static_pointer_cast<FileMapping>(source.owner));
  for (auto& [name, file] : source.external) refuse_changed(*file);
  Model model = load(source.bytes, source.owner, source.path, options, source.external);
  model.source.bytes = source.bytes;
  model.source.owner = source.owner;
  // The mapping of the file itself, for giving back pages of packed weights.
  if (!source.path.empty()) model.mappings.push_back(std::static_pointer_cast<FileMapping>(source.owner));
  return model;
}

}  // namespace epona
