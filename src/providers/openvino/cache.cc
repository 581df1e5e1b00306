#include "providers/openvino/cache.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>

#include "model/model.h"
#include "providers/openvino/claim_record.h"

namespace epona::openvino {
namespace {

constexpr size_t kInline = 256;  // constants of fewer bytes are part of the serialised graph

/// What every file of the cache ends with.
struct Seal {
  char magic[8] = {'E', 'P', 'O', 'N', 'A', 'O', 'V', '2'};
  uint64_t bytes = 0;  ///< before this
  Digest key, digest;
};
static_assert(sizeof(Seal) == 48);

bool stands_apart(const Value& value) {
  return value.constant && value.constant.type != DataType::string && value.constant.bytes() >= kInline;
}

Digest digest_of_file(std::span<const std::byte> bytes) { return digests_of({&bytes, 1}).front(); }

}  // namespace

Cache::Cache(std::filesystem::path folder, const std::string& settings, Severity severity, std::string log_id)
    : folder_(std::move(folder)), settings_(digest_of(settings)), severity_(severity), log_id_(std::move(log_id)) {}

void Cache::read_weights(const Graph& graph) {
  std::vector<std::span<const std::byte>> unread;
  for (const Value& value : graph.values) {
    if (!stands_apart(value)) continue;
    std::span bytes(value.constant.as<std::byte>(), value.constant.bytes());
    if (weights_.try_emplace({bytes.data(), bytes.size()}).second) unread.push_back(bytes);
  }
  std::vector<Digest> digests = digests_of(unread);
  for (size_t i = 0; i < unread.size(); ++i) weights_[{unread[i].data(), unread[i].size()}] = digests[i];
}

Digest Cache::key(const Graph& graph, std::string_view purpose) {
  read_weights(graph);
  Graph small = graph;  // constants are views
  for (Value& value : small.values) {
    if (!stands_apart(value)) continue;
    const Tensor& weight = value.constant;
    std::string digest = cat(weight.type, weight.shape, weights_.at({weight.data, weight.bytes()}).hex());
    value.constant = Tensor::of<uint8_t>(Shape{static_cast<int64_t>(digest.size())},
                                         std::span(reinterpret_cast<const uint8_t*>(digest.data()), digest.size()));
  }
  Model model;
  model.ir_version = 10;
  std::string text = cat(settings_.hex(), " ", purpose, " ");
  for (const Node& node : small.nodes)
    if (!node.removed) text += cat(node.opset, node.captures.empty() ? "," : ";");
  return digest_of(text + save_model(model, small));
}

Digest Cache::with_shapes(const Digest& key, std::span<const Shape> shapes) {
  std::string text = key.hex();
  for (const Shape& shape : shapes) text += cat(" ", shape);
  return digest_of(text);
}

std::filesystem::path Cache::file(const Digest& key, const char* ending) const {
  return folder_ / ("epona-" + key.hex() + ending);
}

std::filesystem::path Cache::temporary(const Digest& key) const {
  static std::atomic<int> count{0};
  return folder_ / cat("epona-", key.hex(), ".", getpid(), ".", count++, ".part");
}

void Cache::warn(const std::string& text) const { log(Severity::warning, severity_, log_id_, text); }

void Cache::report_useless(const Digest& key, const std::string& why) const {
  warn(cat("OpenVINOExecutionProvider: the cache file ", file(key, ".blob").string(),
           " is of no use and is made anew: ", why));
}

std::optional<Cache::Blob> Cache::open(const std::filesystem::path& path, const Digest& key) const {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const char* wrong = "it is damaged";
  try {
    Blob blob{FileMapping::open(path), {}};
    blob.bytes = blob.file->bytes();
#ifdef MADV_POPULATE_READ
    // All of it is read at once: a page fault for every few pages would cost as much as the digest.
    madvise(const_cast<std::byte*>(blob.bytes.data()), blob.bytes.size(), MADV_POPULATE_READ);
#endif
    Seal seal, expected;
    if (blob.bytes.size() > sizeof(Seal)) {
      std::memcpy(&seal, blob.bytes.data() + blob.bytes.size() - sizeof(Seal), sizeof(Seal));
      blob.bytes = blob.bytes.first(blob.bytes.size() - sizeof(Seal));
      if (std::memcmp(seal.magic, expected.magic, sizeof(seal.magic)) == 0 && seal.bytes == blob.bytes.size() &&
          seal.digest == digest_of_file(blob.bytes)) {
        if (seal.key == key) {
          // So that files not used for long can be told, and deleted.
          std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now(), ignored);
          return blob;
        }
        wrong = "it was made for something else";
      }
    }
  } catch (const Error& error) {
    warn(cat("OpenVINOExecutionProvider: ", error.what()));
    return std::nullopt;
  }
  warn(cat("OpenVINOExecutionProvider: the cache file ", path.string(), " is of no use and is made anew: ", wrong));
  return std::nullopt;
}

/// What writers that did not live to rename them left behind.
void Cache::remove_leftovers() const {
  std::error_code ignored;
  auto yesterday = std::filesystem::file_time_type::clock::now() - std::chrono::hours(24);
  for (auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    std::string name = entry.path().filename().string();
    if (name.starts_with("epona-") && name.ends_with(".part") && entry.last_write_time(ignored) < yesterday)
      std::filesystem::remove(entry.path(), ignored);
  }
}

/// Appends the seal and gives the file its name. A cache that cannot be written costs time, not results.
void Cache::seal(const std::filesystem::path& temporary, const std::filesystem::path& path, const Digest& key) const {
  std::error_code ignored;
  try {
    auto file = FileMapping::open(temporary);
    Seal seal;
    seal.bytes = file->bytes().size();
    seal.key = key;
    seal.digest = digest_of_file(file->bytes());
    std::ofstream out(temporary, std::ios::binary | std::ios::app);
    out.write(reinterpret_cast<const char*>(&seal), sizeof(seal));
    out.close();
    if (!out || std::filesystem::file_size(temporary) != seal.bytes + sizeof(seal))
      fail(Code::fail, "cannot write ", temporary.string());
    std::filesystem::rename(temporary, path);
    remove_leftovers();
  } catch (const std::exception& error) {
    std::filesystem::remove(temporary, ignored);
    warn(cat("OpenVINOExecutionProvider: nothing was added to the cache: ", error.what()));
  }
}

std::optional<Claim> Cache::find_claim(const Digest& key, const Graph& graph, const Core& core) const {
  auto found = open(file(key, ".claim"), key);
  if (!found) return std::nullopt;
  std::optional<ClaimRecord> record = read_claim(found->bytes, graph);
  if (!record) {
    warn(cat("OpenVINOExecutionProvider: the cache file ", file(key, ".claim").string(),
             " says nothing about this graph"));
    return std::nullopt;
  }
  core.set_abilities(record->abilities);
  return std::move(record->claim);
}

void Cache::keep_claim(const Digest& key, const Graph& graph, const Claim& claim, const Core& core) const {
  std::filesystem::path part = temporary(key);
  std::string bytes = write_claim({claim, core.abilities()}, graph);
  std::ofstream out(part, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  seal(part, file(key, ".claim"), key);
}

std::optional<Cache::Blob> Cache::find_blob(const Digest& key) const { return open(file(key, ".blob"), key); }

void Cache::keep_blob(const Digest& key, const Core& core, const ov_compiled_model& model) const {
  std::filesystem::path part = temporary(key);
  ov_status status = core.api().compiled_model_export_model(&model, part.c_str());
  if (status == 0) return seal(part, file(key, ".blob"), key);
  std::error_code ignored;
  std::filesystem::remove(part, ignored);
  warn(cat("OpenVINOExecutionProvider: OpenVINO did not write a compiled model into the cache: ",
           core.api().error_text(status)));
}

}  // namespace epona::openvino
