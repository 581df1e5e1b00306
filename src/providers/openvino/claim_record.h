#pragma once
#include <optional>
#include <span>
#include <string>

#include "graph/graph.h"
#include "providers/openvino/core.h"
#include "providers/provider.h"

namespace epona::openvino {

/// A claim as it is kept in a file, with what the library can do, which is dear to find out.
struct ClaimRecord {
  Claim claim;
  Abilities abilities;
};

/// Nodes are numbered without the removed ones.
std::string write_claim(const ClaimRecord& record, const Graph& graph);
/// Nothing when the bytes do not fit the graph.
std::optional<ClaimRecord> read_claim(std::span<const std::byte> bytes, const Graph& graph);

}  // namespace epona::openvino
