#include <charconv>

#include "model/tensor_proto.h"

namespace epona {
namespace {

namespace fs = std::filesystem;

template <class... Parts>
[[noreturn]] void refuse(const onnx::TensorProto& proto, const Parts&... parts) {
  fail(Code::fail, "External data path validation failed for initializer: ", proto.name(), ". Error: ", parts...);
}

uint64_t parse_number(const onnx::TensorProto& proto, const std::string& key, const std::string& text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    refuse(proto, "'", key, "' is not a number: \"", text, "\"");
  return value;
}

bool inside(const fs::path& path, const fs::path& folder) {
  auto [rest, at] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return rest == folder.end();
}

}  // namespace

std::span<const std::byte> WeightSource::external(const onnx::TensorProto& proto, size_t expected,
                                                  std::shared_ptr<void>& owner) {
  std::string location;
  uint64_t offset = 0, length = expected;
  bool has_location = false;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") {
      location = entry.value();
      has_location = true;
    } else if (entry.key() == "offset") {
      offset = parse_number(proto, "offset", entry.value());
    } else if (entry.key() == "length") {
      length = parse_number(proto, "length", entry.value());
      if (length != expected)
        fail(Code::fail, "Initializer '", proto.name(), "': external data size mismatch. Computed size: ", expected,
             ", external_data.length: ", length);
    }
  }
  if (!has_location) refuse(proto, "model format error! Missing 'location'");
  if (location.empty()) refuse(proto, "External data location cannot be empty");
  if (location.starts_with("*/_ORT_MEM_ADDR_/*"))
    refuse(proto, "it references an in-memory address marker, which is not allowed in a model");
  if (memory_files) {
    if (auto file = memory_files->find(location); file != memory_files->end()) {
      const Tensor& content = file->second;
      if (offset > content.bytes() || length > content.bytes() - offset)
        fail(Code::fail, "External initializer: ", proto.name(), " offset: ", offset, " size to read: ", length,
             " given length of '", location, "' in memory: ", content.bytes(), " are out of bounds.");
      owner = content.owner;
      return {static_cast<const std::byte*>(content.data) + offset, length};
    }
  }
  auto cut = [&](const std::shared_ptr<FileMapping>& file) {
    auto bytes = file->bytes();
    if (offset > bytes.size() || length > bytes.size() - offset)
      fail(Code::fail, "External initializer: ", proto.name(), " offset: ", offset, " size to read: ", length,
           " given file_length: ", bytes.size(), " are out of bounds or can not be read in full.");
    owner = file;
    return bytes.subspan(offset, length);
  };
  if (auto known = locations.find(location); known != locations.end()) return cut(known->second);
  if (folder.empty())
    refuse(proto, "model_path must not be empty: a model given as bytes has no folder for external data ('", location,
           "'). Load it from a file");
  fs::path relative(location);
  if (relative.is_absolute() || location.find('\0') != std::string::npos)
    refuse(proto, "Absolute path not allowed for external data location: \"", location, "\"");
  std::error_code error;
  fs::path root = fs::canonical(folder, error);
  if (error) refuse(proto, "the model's folder ", folder.string(), " cannot be resolved: ", error.message());
  fs::path wanted = (root / relative).lexically_normal();
  if (!inside(wanted, root))
    refuse(proto, "External data path escapes model directory. External data path: \"", location, "\"");
  fs::path resolved = fs::canonical(wanted, error);
  if (error) refuse(proto, "External data path does not exist: ", wanted.string());
  if (!inside(resolved, root))
    refuse(proto, "External data path escapes model directory through a symbolic link. External data path: \"",
           location, "\" resolved path: ", resolved.string());
  auto& mapping = files[resolved.string()];
  if (!mapping) mapping = FileMapping::open(resolved);
  locations[location] = mapping;
  return cut(mapping);
}

}  // namespace epona
