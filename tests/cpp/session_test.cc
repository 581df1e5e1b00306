#include "session/session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "heap_count.h"
#include "model_text.h"
#include "sanitizers.h"

namespace epona {
namespace {

SessionOptions quiet(OptLevel level = OptLevel::all) {
  SessionOptions options;
  options.intra_op_threads = 1;
  options.optimization_level = level;
  return options;
}

Session make(const std::string& text, const SessionOptions& options = quiet()) {
  std::string bytes = test::model_bytes(text);
  return Session(test::as_bytes(bytes), options);
}

RuntimeValue floats(Shape shape, std::vector<float> values) {
  return Tensor::of<float>(std::move(shape), std::span<const float>(values));
}

std::vector<float> read(const RuntimeValue& value) {
  auto span = value.tensor.span<float>();
  return {span.begin(), span.end()};
}

const char* const kChain = R"(
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4] x) => (float[N,4] y, float[M] flat) {
  a = Add(x, x)  b = Mul(a, x)  c = Neg(b)  y = Abs(c)
  shape = Constant<value_ints = [-1]>()
  flat = Reshape(c, shape)
})";

TEST(Session, RunsAChainAndFollowsShapes) {
  Session session = make(kChain);
  for (int64_t n : {2, 5, 1, 0, 2}) {
    std::vector<float> x(static_cast<size_t>(n) * 4);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 3;
    std::vector<RuntimeValue> in{floats({n, 4}, x)}, out(2);
    session.run_positional(in, out);
    ASSERT_EQ(out[0].tensor.shape, (Shape{n, 4}));
    ASSERT_EQ(out[1].tensor.shape, (Shape{n * 4}));
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_FLOAT_EQ(read(out[0])[i], 2 * x[i] * x[i]);
      EXPECT_FLOAT_EQ(read(out[1])[i], -2 * x[i] * x[i]);
    }
  }
}

TEST(Session, SteadyRunsOfAStaticModelDoNotAllocate) {
#ifdef EPONA_SANITIZED
  GTEST_SKIP() << "the sanitizer owns the heap";
#endif
  Session session = make(kChain);
  std::vector<RuntimeValue> in{floats({2, 4}, std::vector<float>(8, 1.5f))};
  std::vector<RuntimeValue> out{Tensor::allocate(DataType::float32, {2, 4}), Tensor::allocate(DataType::float32, {8})};
  for (int i = 0; i < 3; ++i) session.run_positional(in, out);
  size_t before = test::heap_allocations();
  for (int i = 0; i < 100; ++i) session.run_positional(in, out);
  EXPECT_GT(before, 0u);  // the counter counts
  EXPECT_EQ(test::heap_allocations() - before, 0u);
  EXPECT_FLOAT_EQ(read(out[0])[0], 4.5f);
}

TEST(Session, ManyThreadsShareOneSession) {
  Session session = make(kChain);
  std::vector<std::thread> threads;
  threads.reserve(4);
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        int64_t n = 1 + (i + t) % 5;
        std::vector<RuntimeValue> in{floats({n, 4}, std::vector<float>(static_cast<size_t>(n) * 4, 2.0f))}, out(2);
        session.run_positional(in, out);
        for (float y : read(out[0])) wrong += y != 8.0f;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

/// A model whose lookup table, 128 KB, is read at every run.
std::string model_with_a_table() {
  onnx::ModelProto model;
  model.ParseFromString(test::model_bytes(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (int64[N] i) => (float[N,64] y) { y = Gather(table, i) }"));
  onnx::TensorProto* table = model.mutable_graph()->add_initializer();
  table->set_name("table");
  table->set_data_type(onnx::TensorProto_DataType_FLOAT);
  table->add_dims(512);
  table->add_dims(64);
  std::string raw(512 * 64 * 4, '\0');
  for (size_t k = 0; k < raw.size() / 4; ++k) {
    const float value = static_cast<float>(k);
    std::memcpy(raw.data() + 4 * k, &value, 4);
  }
  table->set_raw_data(raw);
  return model.SerializeAsString();
}

void expect_table_row(const Session& session) {
  const int64_t index[] = {511};
  std::vector<RuntimeValue> in = {Tensor::of<int64_t>(Shape{1}, std::span<const int64_t>(index))}, out(1);
  session.run_positional(in, out);
  for (int64_t c = 0; c < 64; ++c) ASSERT_EQ(out[0].tensor.as<float>()[c], static_cast<float>(511 * 64 + c));
}

TEST(Session, TheModelFileMayChangeAfterwards) {
  const std::string path = ::testing::TempDir() + "/epona_changing.onnx", bytes = model_with_a_table();
  std::ofstream(path, std::ios::binary) << bytes;
  Session session(std::filesystem::path(path), {});
  expect_table_row(session);
  std::ofstream(path, std::ios::binary | std::ios::in) << std::string(bytes.size(), 'x');  // the same file, in place
  expect_table_row(session);
  std::filesystem::resize_file(path, 0);
  expect_table_row(session);
  std::filesystem::remove(path);
}

TEST(Session, TheModelsBytesMayGoAway) {
  auto bytes = std::make_unique<std::string>(model_with_a_table());
  Session session(test::as_bytes(*bytes));
  std::fill(bytes->begin(), bytes->end(), 'x');
  bytes.reset();
  expect_table_row(session);
}

TEST(Session, BytesAreKeptForTheProviderThatTakesOver) {
  setenv("EPONA_TEST_PROVIDERS", "1", 1);
  for (const char* stage : {"build", "run"}) {
    SessionOptions options = quiet();
    options.log_severity = 4;
    options.providers = {{"TestExecutionProvider", {{"fail", stage}}}, {"CPUExecutionProvider", {}}};
    auto bytes = std::make_unique<std::string>(test::model_bytes(kChain));
    Session session(test::as_bytes(*bytes), options);
    bytes.reset();
    std::vector<RuntimeValue> results(2), feed{floats({1, 4}, {1, 2, 3, 4})};
    session.run_positional(feed, results);
    EXPECT_EQ(session.providers(), std::vector<std::string>{"CPUExecutionProvider"}) << stage;
    std::vector<RuntimeValue> expected(2);
    make(kChain).run_positional(feed, expected);
    EXPECT_EQ(read(results[0]), read(expected[0])) << stage;
    session.set_providers({{"CPUExecutionProvider", {}}});
  }
  EXPECT_THROW(make(kChain).set_providers({}), Error);
}

TEST(Session, OutputsSurviveLaterRuns) {
  Session session = make(kChain);
  std::vector<RuntimeValue> one{floats({1, 4}, {1, 1, 1, 1})}, two{floats({1, 4}, {3, 3, 3, 3})}, first(2), second(2);
  session.run_positional(one, first);
  session.run_positional(two, second);
  EXPECT_FLOAT_EQ(read(first[0])[0], 2);
  EXPECT_FLOAT_EQ(read(second[0])[0], 18);
}

TEST(Session, ShapesFromDataStartANewSegment) {
  Session session = make(R"(
<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x, int64[R] shape) => (float y, int64[A,B] found) {
  twice = Add(x, x)
  y = Reshape(twice, shape)
  found = NonZero(twice)
})");
  for (auto dims : {std::vector<int64_t>{2, 3}, {3, 2}, {6, 1}}) {
    std::vector<RuntimeValue> in{floats({6}, {0, 1, 0, 2, 3, 0}),
                                 Tensor::of<int64_t>({2}, std::span<const int64_t>(dims))};
    std::vector<RuntimeValue> out(2);
    session.run_positional(in, out);
    EXPECT_EQ(out[0].tensor.shape, Shape(dims));
    EXPECT_EQ(out[1].tensor.shape, (Shape{1, 3}));
    EXPECT_EQ(out[1].tensor.ints(), (std::vector<int64_t>{1, 3, 4}));
  }
}

TEST(Session, OutputReshapedInALaterSegment) {
  Session session = make(R"(
<ir_version: 8, opset_import: ["" : 17]>
g (float[N] x) => (float y) {
  found = NonZero(x)
  count = Shape(found)
  big = Add(x, x)
  y = Reshape(big, shape)
  idx = Constant<value_ints = [1]>()
  n = Gather(count, idx)
  minus = Constant<value_ints = [-1]>()
  shape = Concat<axis = 0>(n, minus)
})");
  std::vector<float> x(3000, 1.0f);
  std::vector<RuntimeValue> in{floats({3000}, x)}, out(1);
  session.run_positional(in, out);
  EXPECT_EQ(out[0].tensor.shape, (Shape{3000, 1}));
  EXPECT_FLOAT_EQ(read(out[0])[2999], 2);
}

TEST(Session, StringsInsideAGraph) {
  Session session = make(R"(
<ir_version: 10, opset_import: ["" : 20]>
g (string[N] a, string[N] b) => (string[N] y) { ab = StringConcat(a, b) i = Identity(ab) y = StringConcat(i, ab) })",
                         quiet(OptLevel::none));
  std::string a[] = {"one", "a string that is too long for the short form"}, b[] = {"", "x"};
  for (int round = 0; round < 3; ++round) {
    std::vector<RuntimeValue> in{Tensor::of<std::string>({2}, a), Tensor::of<std::string>({2}, b)}, out(1);
    session.run_positional(in, out);
    EXPECT_EQ(out[0].tensor.as<std::string>()[0], "oneone");
    EXPECT_EQ(out[0].tensor.as<std::string>()[1], a[1] + "x" + a[1] + "x");
  }
}

TEST(Session, OutputsThatAreInputsConstantsOrTwiceTheSame) {
  for (OptLevel level : {OptLevel::none, OptLevel::all}) {
    Session session = make(R"(
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] same, float[2] c, float[2] p, float[1,2] q) {
  same = Identity(x)
  c = Constant<value_floats = [7.0, 8.0]>()
  p = Relu(x)
  axes = Constant<value_ints = [0]>()
  q = Unsqueeze(p, axes)
})",
                           quiet(level));
    std::vector<RuntimeValue> in{floats({2}, {-1, 5})}, out(4);
    session.run_positional(in, out);
    EXPECT_EQ(read(out[0]), (std::vector<float>{-1, 5}));
    EXPECT_EQ(read(out[1]), (std::vector<float>{7, 8}));
    EXPECT_EQ(read(out[2]), (std::vector<float>{0, 5}));
    EXPECT_EQ(read(out[3]), (std::vector<float>{0, 5}));
    EXPECT_NE(out[0].tensor.data, in[0].tensor.data);
    EXPECT_NE(out[2].tensor.data, out[3].tensor.data);
    in[0].tensor.as<float>()[0] = 9;
    EXPECT_EQ(read(out[0]), (std::vector<float>{-1, 5}));
  }
}

TEST(Session, PreallocatedOutputOfAnotherShapeIsRefused) {
  Session session = make(kChain);
  std::vector<RuntimeValue> in{floats({2, 4}, std::vector<float>(8, 1.0f))};
  std::vector<RuntimeValue> out{Tensor::allocate(DataType::float32, {4, 2}), {}};
  try {
    session.run_positional(in, out);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("Got: {4,2} Expected: {2,4}"), std::string::npos) << error.what();
  }
}

TEST(Session, TerminateStopsARun) {
  Session session = make(kChain);
  RunOptions options;
  options.terminate = true;
  std::vector<RuntimeValue> in{floats({2, 4}, std::vector<float>(8, 1.0f))}, out(2);
  EXPECT_THROW(session.run_positional(in, out, &options), Error);
}

TEST(Session, LoopBodyReturningItsOwnInput) {
  Session session = make(R"(
<ir_version: 8, opset_import: ["" : 17]>
g (int64 trips, float[2] x) => (float[2] last, float[K,2] all) {
  on = Constant<value = bool {1}>()
  last, all = Loop(trips, on, x) <body = body (int64 i, bool c, float[2] s) => (bool c2, float[2] s2, float[2] scan) {
    c2 = Identity(c)  s2 = Add(s, x)  scan = Identity(s)
  }>
})");
  for (int64_t trips : {0, 1, 3}) {
    std::vector<RuntimeValue> in{Tensor::scalar<int64_t>(trips), floats({2}, {1, 2})}, out(2);
    session.run_positional(in, out);
    EXPECT_EQ(read(out[0]),
              (std::vector<float>{1.0f + static_cast<float>(trips), 2.0f + 2 * static_cast<float>(trips)}));
    EXPECT_EQ(out[1].tensor.shape, (Shape{trips, 2}));
  }
}

TEST(Session, ErrorsNameWhatIsWrong) {
  auto message = [](const std::string& text) -> std::string {
    try {
      make(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Bogus(x) })")
                .find("Bogus"),
            std::string::npos);
  EXPECT_NE(message(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Add(x, q) })")
                .find("'q'"),
            std::string::npos);
  EXPECT_NE(message(R"(<ir_version: 8, opset_import: ["" : 17]>
                       g (float[2] x) => (float[2] y) { a = Add(x, b) b = Neg(a) y = Abs(b) })")
                .find("acyclic"),
            std::string::npos);
}

}  // namespace
}  // namespace epona
