// Inference functions of libonnx 1.23.2 that a damaged model sends into a null pointer or an endless loop. Found by calling
// every function with a missing input type, and by mutating models.
#include <algorithm>
#include <climits>
#include <string_view>

#include "model/check.h"
#include "onnx/defs/schema.h"
#include "onnx/defs/shape_inference.h"

namespace epona {
namespace {

/// Letters, spaces and one "..." a term: on anything else left of the arrow libonnx's parser stands still.
bool einsum_terms_end(std::string_view equation) {
  std::string_view left = equation.substr(0, equation.find("->"));
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    const std::string_view term = left.substr(begin, end - begin);
    const size_t dots = term.find("...");
    for (size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        i += 2;
        continue;
      }
      const char c = term[i];
      if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != ' ') return false;
    }
    begin = end + 1;
  }
  return true;
}

template <class Guard>
void guard(const char* name, const char* domain, Guard allowed) {
  for (int version = INT_MAX;;) {
    // The registry holds the schemas as mutable objects and shows them as const.
    auto* schema = const_cast<onnx::OpSchema*>(onnx::OpSchemaRegistry::Schema(name, version, domain));
    if (!schema) return;
    if (schema->has_type_and_shape_inference_function())
      schema->TypeAndShapeInferenceFunction(
          [infer = schema->GetTypeAndShapeInferenceFunction(), allowed](onnx::InferenceContext& c) {
            if (allowed(c)) infer(c);
          });
    version = schema->SinceVersion() - 1;
  }
}

bool has_first_type(onnx::InferenceContext& c) { return c.getNumInputs() > 0 && c.getInputType(0); }

}  // namespace

void guard_inference() {
  // These read the type of input 0 without looking whether it is there.
  for (const char* name : {"EyeLike", "RegexFullMatch"}) guard(name, "", has_first_type);
  for (const char* name : {"DictVectorizer", "LabelEncoder", "TreeEnsemble"}) guard(name, "ai.onnx.ml", has_first_type);
  guard("Einsum", "", [](onnx::InferenceContext& c) {
    const auto* equation = c.getAttribute("equation");
    return has_first_type(c) && equation && einsum_terms_end(equation->s());
  });
}

}  // namespace epona
