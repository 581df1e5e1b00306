#include "model/check.h"

#include <mutex>
#include <set>

#include "base/error.h"
#include "model/ms_schemas.h"
#include "onnx/checker.h"
#include "onnx/defs/schema.h"
#include "onnx/inliner/inliner.h"
#include "ops/registry.h"

namespace epona {
namespace {

constexpr int64_t kMaxIr = 14;
constexpr int kMaxOpset = 28, kMinOpset = 7;

std::string signature(const onnx::NodeProto& node) {
  std::string text = cat("In Node, (\"", node.name(), "\", ", node.op_type(), ", \"", node.domain(), "\", -1) : (");
  for (int i = 0; i < node.input_size(); ++i) text += cat(i ? ", " : "", '"', node.input(i), '"');
  text += ") -> (";
  for (int i = 0; i < node.output_size(); ++i) text += cat(i ? ", " : "", '"', node.output(i), '"');
  return text + ")";
}

const onnx::OpSchema* find_schema(const std::string& op, const std::string& domain, int version) {
  return onnx::OpSchemaRegistry::Schema(op, version, domain == "ai.onnx" ? "" : domain);
}

class NodeChecker {
 public:
  NodeChecker(const onnx::ModelProto& model, const std::map<std::string, int>& opsets) : opsets_(opsets) {
    for (const auto& function : model.functions()) functions_.insert({function.domain(), function.name()});
  }

  void check(const onnx::GraphProto& graph, int depth = 0) const {
    if (depth > 64) fail(Code::invalid_graph, "subgraphs are nested deeper than 64 levels");
    for (const auto& node : graph.node()) {
      check(node);
      for (const auto& attribute : node.attribute()) {
        if (attribute.type() == onnx::AttributeProto::GRAPH) check(attribute.g(), depth + 1);
        if (attribute.type() == onnx::AttributeProto::GRAPHS)
          for (const auto& body : attribute.graphs()) check(body, depth + 1);
      }
    }
  }

 private:
  void check(const onnx::NodeProto& node) const {
    std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
    if (functions_.contains({node.domain(), node.op_type()})) return;
    auto version = opsets_.find(domain);
    if (version == opsets_.end())
      fail(Code::invalid_graph, "This is an invalid model. ", signature(node), " , Error No opset import for domain '",
           domain, "'");
    if (domain == "epona") return;
    const onnx::OpSchema* schema = find_schema(node.op_type(), domain, version->second);
    if (!schema) {
      if (Registry::instance().find(domain, node.op_type(), version->second)) return;
      if (!domain.empty() && domain != "ai.onnx.ml" && domain != "com.microsoft")
        fail(Code::fail, "Fatal error: ", domain, ":", node.op_type(),
             "(-1) is not a registered function/op. It is used by node '", node.name(), "'");
      fail(Code::invalid_graph, "This is an invalid model. ", signature(node), " , Error No Op registered for ",
           node.op_type(), " with domain_version of ", version->second);
    }
    try {
      schema->Verify(node);
    } catch (const std::exception& error) {
      fail(Code::invalid_graph, "This is an invalid model. ", signature(node), " , Error ", error.what());
    }
  }

  const std::map<std::string, int>& opsets_;
  std::set<std::pair<std::string, std::string>> functions_;
};

/// Standard functions without a kernel that occur in the main graph.
onnx::inliner::FunctionIdVector missing_functions(const onnx::GraphProto& graph,
                                                  const std::map<std::string, int>& opsets) {
  onnx::inliner::FunctionIdVector missing;
  for (const auto& node : graph.node()) {
    std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
    auto version = opsets.find(domain);
    if (version == opsets.end() || Registry::instance().find(domain, node.op_type(), version->second)) continue;
    const onnx::OpSchema* schema = find_schema(node.op_type(), domain, version->second);
    if (schema && (schema->HasFunction() || schema->HasContextDependentFunction()))
      missing.push_back({node.domain(), node.op_type()});
  }
  return missing;
}

}  // namespace

void ensure_schemas() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_ms_schemas();
    guard_inference();
  });
}

std::map<std::string, int> check_model_header(const onnx::ModelProto& model, std::vector<std::string>& warnings) {
  if (!model.has_ir_version()) fail(Code::fail, "Missing model IR version.");
  if (model.ir_version() > kMaxIr)
    fail(Code::fail, "Unsupported model IR version: ", model.ir_version(), ", max supported IR version: ", kMaxIr);
  if (model.opset_import_size() == 0)
    fail(Code::fail,
         "Missing opset in the model. All ModelProtos MUST have at least one entry that specifies which version of the "
         "ONNX OperatorSet is being imported.");
  std::map<std::string, int> opsets;
  for (const auto& import : model.opset_import()) {
    std::string domain = import.domain() == "ai.onnx" ? "" : import.domain();
    if (domain.empty() && import.version() > kMaxOpset)
      fail(Code::fail, "Opset ", import.version(),
           " of domain ai.onnx is not supported: official support is till opset ", kMaxOpset,
           ". Export the model with a lower opset.");
    if (domain.empty() && import.version() < kMinOpset)
      warnings.push_back(cat("Opset ", import.version(), " of domain ai.onnx is older than ", kMinOpset,
                             ": some operators may have no kernel"));
    opsets[domain] = static_cast<int>(import.version());
  }
  return opsets;
}

void check_nodes(const onnx::ModelProto& model, const std::map<std::string, int>& opsets) {
  NodeChecker(model, opsets).check(model.graph());
}

void inline_functions(onnx::ModelProto& model, const std::map<std::string, int>& opsets) {
  try {
    if (model.functions_size() > 0) onnx::inliner::InlineLocalFunctions(model, true);
    // A body may itself use a function: a few rounds, each going one level down.
    for (int round = 0; round < 8; ++round) {
      auto missing = missing_functions(model.graph(), opsets);
      if (missing.empty()) return;
      int before = model.graph().node_size();
      auto set = onnx::inliner::FunctionIdSet::Create(std::move(missing));
      onnx::inliner::InlineSelectedFunctions(model, *set, nullptr);
      if (model.graph().node_size() == before) return;
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    fail(Code::invalid_graph, "cannot inline the model's functions: ", error.what());
  }
}

}  // namespace epona
