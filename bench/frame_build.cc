// What building a frame costs: a chain of 1000 nodes with a dynamic dimension, run with a shape that is in the cache and
// with one that never is. Prints microseconds a node for both; the difference is the building.
#include <chrono>
#include <cstdio>
#include <string>

#include "onnx/defs/parser.h"
#include "session/session.h"

namespace {

std::string chain(int nodes) {
  std::string text = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,4] x) => (float[N,4] y) { v0 = Add(x, x)\n";
  for (int i = 1; i < nodes; ++i) {
    std::string in = "v" + std::to_string(i - 1), out = i + 1 == nodes ? "y" : "v" + std::to_string(i);
    text += out + " = " + (i % 2 ? "Mul" : "Sub") + "(" + in + ", x)\n";
  }
  text += "}";
  onnx::ModelProto proto;
  onnx::OnnxParser parser(text.c_str());
  if (!parser.Parse(proto).IsOK()) throw epona::Error(epona::Code::fail, "the model text does not parse");
  return proto.SerializeAsString();
}

double microseconds_a_run(epona::Session& session, int first, int last, int rounds) {
  std::vector<epona::RuntimeValue> in(1), out(1);
  auto start = std::chrono::steady_clock::now();
  int runs = 0;
  for (int round = 0; round < rounds; ++round)
    for (int n = first; n <= last; ++n, ++runs) {
      in[0] = epona::Tensor::allocate(epona::DataType::float32, epona::Shape{n, 4});
      std::fill_n(in[0].tensor.as<float>(), 4 * n, 0.5f);
      out[0] = {};
      session.run_positional(in, out);
    }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / runs;
}

}  // namespace

int main() {
  constexpr int kNodes = 1000;
  std::string bytes = chain(kNodes);
  epona::SessionOptions options;
  options.intra_op_threads = 1;
  options.optimization_level = epona::OptLevel::basic;
  epona::Session session(std::as_bytes(std::span(bytes.data(), bytes.size())), options);
  microseconds_a_run(session, 1, 16, 2);
  double best_known = 1e9, best_new = 1e9;
  for (int i = 0; i < 10; ++i) {
    best_known = std::min(best_known, microseconds_a_run(session, 2, 2, 40));
    best_new = std::min(best_new, microseconds_a_run(session, 1, 40, 1));
  }
  std::printf("known shape %.3f us a node, new shape %.3f us a node: building %.3f us a node\n", best_known / kNodes,
              best_new / kNodes, (best_new - best_known) / kNodes);
  return 0;
}
