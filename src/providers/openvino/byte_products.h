#pragma once
#include "graph/graph.h"

namespace epona::openvino {

/// Whether OpenVINO's CPU device multiplies bytes exactly. On x86 without VNNI it adds pairs of u8 x s8 products in 16
/// bits, which saturate: a dense convolution of 64 channels was up to 51 quantisation steps off (2026.4.1).
bool byte_products_are_exact();

/// Whether most convolutions and matrix products of a graph have 8-bit weights and 8-bit data.
bool is_byte_net(const Graph& graph);

}  // namespace epona::openvino
