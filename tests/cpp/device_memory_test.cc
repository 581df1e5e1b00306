// The public C++ API on values in the memory of the devices for tests, whose bytes only a copy makes readable.
#include <epona/epona.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "onnx/defs/parser.h"
#include "onnx/onnx_pb.h"

namespace {

// Asked once in a process, by whichever test comes first.
const bool kEnabled = [] { return setenv("EPONA_TEST_PROVIDERS", "1", 1) == 0; }();

using epona::ElementType;
using epona::Value;

constexpr const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17]>
  g (float[N,2] x, float[P,2] past) => (float[T,2] present, float[N,2] y) {
    present = Concat<axis = 0>(past, x)  y = Neg(x) })";

epona::Session make_session(const char* provider) {
  onnx::ModelProto proto;
  EXPECT_TRUE(onnx::OnnxParser(kModel).Parse(proto).IsOK());
  std::string bytes = proto.SerializeAsString();
  epona::SessionOptions options;
  options.providers = {{provider, {}}};
  return epona::Session(std::as_bytes(std::span(bytes.data(), bytes.size())), options);
}

Value value_on(const std::string& device, std::vector<float>& elements) {
  return Value::view(std::span(elements), {static_cast<int64_t>(elements.size() / 2), 2}).to(device);
}

std::vector<float> elements(const Value& value) {
  Value host = value.to("cpu");
  auto span = host.data<float>();
  return {span.begin(), span.end()};
}

TEST(DeviceMemory, ValuesGoThereAndBack) {
  std::vector<float> x{1, 2, 3, 4};
  Value there = value_on("test:1", x);
  EXPECT_EQ(there.device(), "test:1");
  EXPECT_EQ(there.to("test:1").raw(), there.raw());
  EXPECT_NE(there.raw(), x.data());
  EXPECT_EQ(elements(there), x);
  EXPECT_EQ(elements(there.to("othertest:0").to("test:0")), x);
  EXPECT_THROW(there.data<float>(), epona::Error);
  std::vector<float> other{5, 6, 7, 8};
  there.assign(Value::view(std::span(other), {2, 2}));
  EXPECT_EQ(elements(there), other);
  std::vector<float> few{1, 2};
  EXPECT_THROW(there.assign(Value::view(std::span(few), {1, 2})), epona::Error);
  Value host = Value::view(std::span(x), {2, 2});
  EXPECT_EQ(host.device(), "cpu");
  EXPECT_EQ(host.to("cpu").raw(), x.data());
}

TEST(DeviceMemory, RunsReadAndWriteThere) {
  std::vector<float> x{1, 2}, past{3, 4, 5, 6};
  for (const char* provider : {"TestExecutionProvider", "OtherTestExecutionProvider", "CPUExecutionProvider"}) {
    auto session = make_session(provider);
    std::vector<Value> in{Value::view(std::span(x), {1, 2}), value_on("test:0", past)};
    std::vector<float> expected = past;
    for (int step = 0; step < 3; ++step) {
      std::vector<Value> out{Value::wanted_on("test:0"), Value()};
      session.run(in, out);
      expected.insert(expected.end(), x.begin(), x.end());
      EXPECT_EQ(out[0].device(), "test:0") << provider;
      EXPECT_EQ(elements(out[0]), expected) << provider;
      EXPECT_EQ(out[1].device(), "cpu");
      EXPECT_EQ(elements(out[1]), (std::vector<float>{-1, -2}));
      in[1] = out[0];
    }
    int64_t dims[] = {3, 2};
    std::vector<Value> out{Value::allocate(ElementType::float32, dims, "test:0"), Value::wanted_on("test:1")};
    const void* address = out[0].raw();
    in[1] = value_on("test:0", past);
    session.run(in, out);
    EXPECT_EQ(out[0].raw(), address);
    EXPECT_EQ(elements(out[0]), (std::vector<float>{3, 4, 5, 6, 1, 2})) << provider;
    EXPECT_EQ(elements(out[1]), (std::vector<float>{-1, -2})) << provider;
    EXPECT_EQ(out[1].device(), "test:1");
  }
}

TEST(DeviceMemory, ADeviceThatIsNotThereIsNamed) {
  int64_t dims[] = {2};
  for (const char* name : {"cuda:0", "test:2", "tpu", "cuda:x"}) try {
      Value::allocate(ElementType::float32, dims, name);
      ADD_FAILURE() << name;
    } catch (const epona::Error& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  EXPECT_THROW(Value::allocate(ElementType::string, dims, "test:0"), epona::Error);
  EXPECT_THROW(Value::wanted_on("test:0").to("cpu"), epona::Error);
}

}  // namespace
