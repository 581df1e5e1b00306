#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/cancel.h"
#include "graph/graph.h"
#include "model/mapping.h"

namespace epona {

/// Where a model came from, kept in memory so that it can be read again without touching a file.
struct ModelSource {
  std::filesystem::path path;                                    ///< empty when it came from bytes
  std::span<const std::byte> bytes;                              ///< of the model; empty when nobody keeps them
  std::shared_ptr<void> owner;                                   ///< of `bytes`
  std::map<std::string, std::shared_ptr<FileMapping>> external;  ///< files with weights, by location
};

/// A loaded model: the main graph with inferred types, and what the file says about itself.
struct Model {
  std::shared_ptr<Graph> graph;
  int64_t ir_version = 0;
  int64_t model_version = 0;
  std::string producer_name, producer_version, domain, description, graph_description, graph_name;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> warnings;  ///< what was odd but accepted; the session logs them
  std::vector<std::shared_ptr<FileMapping>> mappings;
  ModelSource source;

  /// Gives the pages of a constant that nobody reads any more back to the system.
  void release(const Tensor& constant) const;
  /// Gives the pages of all files back: what is still needed is read again.
  void release_pages() const;
  /// Copies a constant that lies in a file. A file may be overwritten or cut short while a session
  /// lives, and a mapping shows that (or ends the process); what a session keeps must be memory of its own.
  void keep(Tensor& constant) const;
};

/// What the loader may be told.
struct LoadOptions {
  std::map<std::string, int64_t> dim_by_symbol;      ///< free-dimension overrides by name (dim_param)
  std::map<std::string, int64_t> dim_by_denotation;  ///< and by denotation
  std::map<std::string, Tensor> initializers;        ///< take the place of the model's initialisers of these names
  std::map<std::string, Tensor> files;  ///< bytes in memory that stand for files of external data, by location
  CancelFlag cancel = nullptr;
  bool refuse_unknown_dims = false;  ///< UnknownDimension instead of a warning
};

/// An override of a free dimension that no input has.
class UnknownDimension final : public Error {
 public:
  explicit UnknownDimension(const std::string& message) : Error(Code::invalid_argument, message) {}
};

/// Reads, checks and types a model. Errors (Error with a code) name the file, node, value or tensor.
/// `display_name` appears in messages.
Model load_model(const std::filesystem::path& path, const LoadOptions& options = {});
Model load_model(std::span<const std::byte> bytes, const LoadOptions& options = {});
/// As from bytes, without a copy: `owner` keeps them alive and unchanged as long as anything of the model lives.
Model load_model(std::span<const std::byte> bytes, std::shared_ptr<void> owner, const LoadOptions& options = {});
/// The same model again, from the memory of its source. Throws when that was bytes nobody keeps.
Model load_again(const ModelSource& source, const LoadOptions& options = {});

/// How a graph is written.
struct SaveOptions {
  /// Weights of this many bytes and more are written as external data at their address in this process (the location
  /// that onnxruntime and OpenVINO know for it), without a copy: for readers in the process, while the graph lives.
  size_t weights_by_address = SIZE_MAX;
  bool value_info = true;  ///< with the types of computed values
};

/// Serialises a graph as a ModelProto. Nodes of domain "epona" are written as such and can be read back by Epona only.
std::string save_model(const Model& model, const Graph& graph, const SaveOptions& options = {});
void save_model(const Model& model, const Graph& graph, const std::filesystem::path& path);

}  // namespace epona
