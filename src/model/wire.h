#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace epona {

/// A serialised ModelProto without its weights.
struct Skeleton {
  std::string bytes;  ///< a valid ModelProto in which large raw_data fields are cut out
  /// What was cut out. A tensor whose raw_data is blobs[i] carries doc_string "blob:i"; other tensors carry none.
  std::vector<std::span<const std::byte>> blobs;
};

/// raw_data longer than this is cut out (bytes). Shape inference reads small constants, which stay.
constexpr size_t kBlobThreshold = 2048;

/// Copies a serialised ModelProto field by field, leaving the weights where they are: protobuf then parses a few
/// kilobytes instead of the whole file. Returns nothing when the bytes are not well-formed protobuf.
std::optional<Skeleton> make_skeleton(std::span<const std::byte> model);

/// The index of a "blob:i" mark, or -1.
int64_t blob_index(const std::string& doc_string);

}  // namespace epona
