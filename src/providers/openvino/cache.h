#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "base/digest.h"
#include "base/log.h"
#include "graph/graph.h"
#include "model/mapping.h"
#include "providers/openvino/core.h"
#include "providers/provider.h"

namespace epona::openvino {

/// What earlier sessions found out, in files of the option cache_dir: for a graph the claim, for a group the compiled
/// model. A file is named by the contents of the graph and all that its making depends on, so nothing ever becomes
/// stale, and ends with a digest of itself. Damaged files are reported and made anew. Files are written whole and renamed,
/// hence several processes may share a folder. Only unfinished files are ever deleted; the time of a file is that of its
/// last use. A file may be deleted while it is in use, and must not be cut short: it stays mapped.
class Cache {
 public:
  /// `settings`: options, versions and device.
  Cache(std::filesystem::path folder, const std::string& settings, Severity severity, std::string log_id);

  /// The fingerprint of a graph with its weights, and of `purpose`.
  Digest key(const Graph& graph, std::string_view purpose);
  /// That of a group with dims of its inputs.
  static Digest with_shapes(const Digest& key, std::span<const Shape> shapes);
  /// The addresses that key() knows are about to hold other weights.
  void forget_weights() { weights_.clear(); }

  /// A claim about `graph`, with what the library can do.
  std::optional<Claim> find_claim(const Digest& key, const Graph& graph, const Core& core) const;
  void keep_claim(const Digest& key, const Graph& graph, const Claim& claim, const Core& core) const;

  /// An exported compiled model, mapped.
  struct Blob {
    std::shared_ptr<FileMapping> file;
    std::span<const std::byte> bytes;
  };
  std::optional<Blob> find_blob(const Digest& key) const;
  void keep_blob(const Digest& key, const Core& core, const ov_compiled_model& model) const;
  void report_useless(const Digest& key, const std::string& why) const;

 private:
  std::filesystem::path file(const Digest& key, const char* ending) const;
  std::filesystem::path temporary(const Digest& key) const;
  std::optional<Blob> open(const std::filesystem::path& path, const Digest& key) const;
  void seal(const std::filesystem::path& temporary, const std::filesystem::path& path, const Digest& key) const;
  void remove_leftovers() const;
  void warn(const std::string& text) const;
  void read_weights(const Graph& graph);

  std::filesystem::path folder_;
  Digest settings_;
  Severity severity_;
  std::string log_id_;
  std::map<std::pair<const void*, size_t>, Digest> weights_;  ///< by address and bytes
};

}  // namespace epona::openvino
