#pragma once
#include <string>
#include <utility>
#include <vector>

#include "passes/pass.h"
#include "placement/placement.h"

namespace epona {

/// A placement with what else is known of the session's creation.
struct PlacementReport {
  std::string model;  ///< what to call it
  Placement placement;
  std::vector<PassRecord> passes;
  std::vector<std::pair<std::string, double>> phases;  ///< of creation, with milliseconds
};

/// For people: shares, providers that are not active, copies, phases, and a row for each of the first `rows` nodes.
std::string to_table(const PlacementReport& report, size_t rows = 200);
std::string to_json(const PlacementReport& report);
/// One file without outside references: the graph, coloured by provider, to be filtered; reasons on hover.
std::string to_html(const PlacementReport& report);

}  // namespace epona
