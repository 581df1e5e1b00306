#pragma once
#include <map>
#include <string>
#include <vector>

#include "onnx/onnx_pb.h"

namespace epona {

/// IR version, opset imports: what the whole model must satisfy. Returns domain -> version; adds warnings.
std::map<std::string, int> check_model_header(const onnx::ModelProto& model, std::vector<std::string>& warnings);

/// Every node against its schema (number of inputs, attributes and their kinds), also in subgraphs and functions.
/// Throws Error(invalid_graph) naming the node. Operators of unknown domains are an error naming the domain.
void check_nodes(const onnx::ModelProto& model, const std::map<std::string, int>& opsets);

/// Replaces model-local functions, and standard functions for which there is no kernel, by their bodies.
void inline_functions(onnx::ModelProto& model, const std::map<std::string, int>& opsets);

/// Infers types and shapes into value_info. Throws with the inference's own message when a node contradicts itself.
void infer_types(onnx::ModelProto& model);

/// Makes the inference functions that trust a model too much leave damaged nodes alone. Once, by ensure_schemas.
void guard_inference();

/// Registers the standard's and com.microsoft's schemas once.
void ensure_schemas();

}  // namespace epona
