// What tests of passes share: a model's results without and with optimisation.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/kernel_test_util.h"
#include "model_text.h"
#include "session/session.h"

namespace epona::test {

struct TwoLevels {
  std::vector<std::vector<float>> results[2];  ///< of every output, at no and at full optimisation
  int rewrites = 0;                            ///< of the pass asked for
};

/// A float tensor of random elements.
inline RuntimeValue random_floats(Random& random, const Shape& shape) {
  const auto values = random.floats(shape.size());
  return Tensor::of<float>(shape, std::span<const float>(values));
}

/// Runs a model with float outputs at both levels; feed(input, random) makes the value of an input, the same at both.
template <class Feed>
TwoLevels run_at_two_levels(const std::string& bytes, std::string_view pass, Feed&& feed) {
  TwoLevels both;
  for (const bool optimised : {false, true}) {
    SessionOptions options;
    options.intra_op_threads = 1;
    options.optimization_level = optimised ? OptLevel::all : OptLevel::none;
    Session session(as_bytes(bytes), options);
    Random random(7);
    std::vector<RuntimeValue> in, out(session.outputs().size());
    for (const IoInfo& input : session.inputs()) in.push_back(feed(input, random));
    session.run_positional(in, out);
    for (const RuntimeValue& value : out) {
      const auto span = value.tensor.span<float>();
      both.results[optimised].emplace_back(span.begin(), span.end());
    }
    for (const PassRecord& record : session.passes())
      if (record.name == pass) both.rewrites = record.rewrites;
  }
  return both;
}

}  // namespace epona::test
