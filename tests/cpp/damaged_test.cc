// Models that fuzzing found a crash, a hang or a foreign exception with. Each is refused with an Error now.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "damaged.h"
#include "model_text.h"
#include "sanitizers.h"
#include "session/session.h"

namespace epona {
namespace {

/// When the session is made, or when it is run.
void refused(const std::string& text, const char* part) {
  try {
    const std::string bytes = test::model_bytes(text);
    Session session(test::as_bytes(bytes));
    test::Watchdog().run(session);
    FAIL() << "was not refused: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

// libonnx 1.23.2 reads the type of a value that nothing defines.
TEST(Damaged, UndefinedInputsOfTrustingInferenceFunctions) {
  refused(
      R"(<ir_version: 10, opset_import: ["" : 20]> g (string[N] x) => (bool[N] y) { y = RegexFullMatch<pattern = "a">(z) })",
      "z");
  refused(
      R"(<ir_version: 10, opset_import: ["" : 22]> g (int32[2,2] x) => (double[2,2] y) { y = EyeLike<dtype = 11>(z) })",
      "z");
  for (int version : {1, 2, 4})
    refused(
        cat(R"(<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : )", version, R"(]>
      g (string[1] x) => (int64[1] y) {
        y = ai.onnx.ml.LabelEncoder<)",
            version == 1 ? R"(classes_strings = ["a"])" : R"(keys_strings = ["a"], values_int64s = [1])", R"(>(z) })"),
        "z");
  refused(R"(<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 1]>
    g (string[1] x) => (int64[1] y) { y = ai.onnx.ml.DictVectorizer<string_vocabulary = ["a"]>(z) })",
          "z");
  refused(R"(<ir_version: 10, opset_import: ["" : 20, "ai.onnx.ml" : 5]>
    g (float[2,1] x) => (float[2,1] y) { y = ai.onnx.ml.TreeEnsemble<n_targets = 1, tree_roots = [0],
      nodes_featureids = [0], nodes_modes = uint8[1] {0}, nodes_splits = float[1] {0.5}, nodes_truenodeids = [0],
      nodes_trueleafs = [1], nodes_falsenodeids = [1], nodes_falseleafs = [1], leaf_targetids = [0, 0],
      leaf_weights = float[2] {1, 2}>(z) })",
          "z");
}

TEST(Damaged, KeysOfTheWrongRank) {
  refused(R"(<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
    g (float[2,3,8] q, float[2] k, float[2,5,6] v) => (float[2,3,6] y) {
      y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v) })",
          "MultiHeadAttention");
}

// libonnx 1.23.2 stands still at a character that is no label.
TEST(Damaged, EinsumEquationsWithOtherCharacters) {
  for (const char* equation : {"i.j,jk->ik", "ij,j1->i", "......ij,jk", ".,jk"})
    refused(cat(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[2,2] a, float[2,2] b) => (float[2,2] y) {
      y = Einsum<equation = ")",
                equation, R"(">(a, b) })"),
            "");
}

// 257 is 1 in a byte, which is float.
TEST(Damaged, NumbersThatAreNoElementType) {
  for (int64_t number : {43, 257, -1, -2}) {
    refused(cat(R"(<ir_version: 10, opset_import: ["" : 22]> g (float[2,2] x) => (float[2,2] y) {
      y = EyeLike<dtype = )",
                number, R"(>(x) })"),
            "type");
    refused(cat(R"(<ir_version: 10, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) {
      s = SequenceEmpty<dtype = )",
                number, R"(>() t = SequenceInsert(s, x) i = Constant<value_int = 0>() y = SequenceAt(t, i) })"),
            "type");
    refused(cat(R"(<ir_version: 11, opset_import: ["" : 23]> g (float[2] x, float s) => (uint8[2] y) {
      y = QuantizeLinear<precision = )",
                number, R"(>(x, s) })"),
            "type");
  }
}

#ifndef EPONA_SANITIZED
TEST(Damaged, OutOfMemoryIsAnError) {
  const std::string bytes = test::model_bytes(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (int64[1] n) => (int64[M,1] y) { one = ConstantOfShape<value = float[1] {1}>(n)  y = NonZero(one) })");
  SessionOptions options;
  options.intra_op_threads = 1;
  Session session(test::as_bytes(bytes), options);
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit memory{pages * static_cast<size_t>(sysconf(_SC_PAGESIZE)) + (size_t{96} << 20), before.rlim_max};
  setrlimit(RLIMIT_AS, &memory);
  // 2^24 floats fit, their indices do not; 2^62 overflows.
  for (int64_t n : {int64_t{1} << 24, int64_t{1} << 40, int64_t{1} << 62}) {
    std::vector<RuntimeValue> in{Tensor::of<int64_t>({1}, {{n}})}, out(1);
    EXPECT_THROW(session.run_positional(in, out), Error) << n;
  }
  setrlimit(RLIMIT_AS, &before);
}
#endif

}  // namespace
}  // namespace epona
