// Damaged models: every one is refused with an Error or runs; nothing else may happen. `make asan` runs the same under
// the address and undefined-behaviour sanitizers.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <random>

#include "damaged.h"
#include "model_text.h"
#include "sanitizers.h"

namespace epona {
namespace {

constexpr int kMutations = 3000;

const char* const kModels[] = {
    R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[N,3,8,8] x) => (float y) {
  w = Constant<value = float[4,3,3,3] {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,
       1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8,9}>()
  c = Conv<pads = [1,1,1,1], strides = [2,2]>(x, w)  r = Relu(c)  p = MaxPool<kernel_shape = [2,2]>(r)
  shape = Constant<value_ints = [0,-1]>()  y = Reshape(p, shape)
})",
    R"(<ir_version: 8, opset_import: ["" : 17]>
g (int64[A] ids, float[A,4] x) => (float y, int64 top) {
  table = Constant<value = float[3,4] {1,2,3,4,5,6,7,8,9,10,11,12}>()
  e = Gather<axis = 0>(table, ids)  s = Add(e, x)  n = Softmax<axis = -1>(s)
  k = Constant<value_ints = [2]>()  best, top = TopK(n, k)
  starts = Constant<value_ints = [0]>()  ends = Constant<value_ints = [1]>()  y = Slice(best, starts, ends)
})",
    R"(<ir_version: 8, opset_import: ["" : 17]>
g (int64 trips, bool flag, float[2,2] x) => (float y, float scan) {
  on = Constant<value = bool {1}>()
  last, scan = Loop(trips, on, x) <body = body (int64 i, bool c, float[2,2] s) => (bool c2, float[2,2] s2, float[2,2] o) {
    c2 = Identity(c)  s2 = MatMul(s, x)  o = Neg(s2)
  }>
  y = If(flag) <then_branch = t () => (float[2,2] a) { a = Transpose(last) },
                else_branch = f () => (float[2,2] b) { b = Concat<axis = 0>(last) }>
})",
    R"(<ir_version: 8, opset_import: ["" : 17]>
g (uint8[N,4] x) => (float y, string z) {
  scale = Constant<value = float {0.1}>()  zero = Constant<value = uint8 {128}>()
  d = DequantizeLinear(x, scale, zero)  q = QuantizeLinear(d, scale, zero)  f = Cast<to = 1>(q)
  y = Einsum<equation = "ij,kj->ik">(f, f)  z = Cast<to = 8>(f)
})"};

std::string mutate(std::string bytes, std::mt19937& random) {
  auto at = [&] { return random() % std::max<size_t>(bytes.size(), 1); };
  // Three in four keep the length: the model then often still parses, and the damage reaches what comes after parsing.
  const bool same_length = random() % 4 != 0;
  for (unsigned n = same_length ? 1 : 1 + random() % 4; n > 0; --n) {
    switch (same_length ? random() % 2 : random() % 7) {
      case 0:
        bytes[at()] ^= static_cast<char>(1u << random() % 8);
        break;
      case 1:
        bytes[at()] = static_cast<char>(random());
        break;
      case 2:
        bytes.resize(at());
        break;
      case 3:
        bytes.insert(at(), 1 + random() % 8, static_cast<char>(random()));
        break;
      case 4:
        bytes.erase(at(), 1 + random() % 8);
        break;
      case 5:
        bytes[at()] = static_cast<char>(0xff);
        break;
      case 6: {
        size_t from = at(), count = random() % 32;
        bytes.insert(at(), bytes.substr(from, count));
        break;
      }
    }
    if (bytes.empty()) bytes = "x";
  }
  return bytes;
}

TEST(Mutation, DamagedModelsAreRefusedOrRun) {
#ifndef EPONA_SANITIZED
  // A size that survives the checks must fail to allocate, not eat the machine.
  rlimit memory{size_t{3} << 30, size_t{3} << 30}, before{};
  getrlimit(RLIMIT_AS, &before);
  memory.rlim_max = before.rlim_max;
  setrlimit(RLIMIT_AS, &memory);
#endif
  std::vector<std::string> models;
  for (const char* text : kModels) models.push_back(test::model_bytes(text));
  // EPONA_MUTATION=i replays one; EPONA_MUTATION=v names each before it runs, so that a crash can be found.
  // EPONA_MUTATION_SEED=n tries others.
  const char* only = std::getenv("EPONA_MUTATION");
  const char* seed_text = std::getenv("EPONA_MUTATION_SEED");
  const int seed = seed_text ? std::atoi(seed_text) : 20261130;
  test::Watchdog watchdog;
  int refused = 0, ran = 0, failed = 0;
  for (int i = 0; i < kMutations; ++i) {
    if (only && *only == 'v') std::fprintf(stderr, "mutation %d\n", i);
    if (only && *only != 'v' && std::atoi(only) != i) continue;
    std::mt19937 random(static_cast<unsigned>(seed + i));
    std::string bytes = mutate(models[static_cast<size_t>(i) % models.size()], random);
    SessionOptions options;
    options.intra_op_threads = 1;
    options.log_severity = 4;
    options.optimization_level = i % 2 ? OptLevel::all : OptLevel::none;
    try {
      Session session(test::as_bytes(bytes), options);
      try {
        watchdog.run(session);
        ++ran;
      } catch (const Error&) {
        ++failed;
      }
    } catch (const Error& error) {
      EXPECT_GT(std::string(error.what()).size(), 8u);
      ++refused;
    }
  }
#ifndef EPONA_SANITIZED
  setrlimit(RLIMIT_AS, &before);
#endif
  std::printf("%d mutations: %d refused, %d failed while running, %d ran\n", kMutations, refused, failed, ran);
  if (only) return;
  EXPECT_GT(refused, kMutations / 10);
  EXPECT_GT(ran, kMutations / 100);
}

}  // namespace
}  // namespace epona
