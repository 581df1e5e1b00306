// The third-party libraries are linked whole: onnx's schemas are registered and Highway finds a target.
#include <gtest/gtest.h>
#include <hwy/targets.h>
#include <onnx/checker.h>
#include <onnx/defs/parser.h>
#include <onnx/defs/schema.h>

namespace {

TEST(Dependencies, OnnxSchemasAreRegistered) {
  EXPECT_GT(onnx::OpSchemaRegistry::get_all_schemas_with_history().size(), 650u);
  ASSERT_NE(onnx::OpSchemaRegistry::Schema("Conv", 22, ""), nullptr);
}

TEST(Dependencies, OnnxTextParsesAndChecks) {
  const char* text = R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) })";
  onnx::ModelProto model;
  ASSERT_TRUE(onnx::OnnxParser::Parse(model, text).IsOK());
  onnx::checker::check_model(model);
}

TEST(Dependencies, HighwayFindsATarget) { EXPECT_NE(hwy::SupportedTargets(), 0); }

}  // namespace
