// Many threads, one session: different shapes, sessions that come and go, runs cut short. `make tsan` runs the same under
// the thread sanitizer.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>

#include "base/thread_pool.h"
#include "model_text.h"
#include "sanitizers.h"
#include "session/session.h"

namespace epona {
namespace {

constexpr int kThreads = 6;

void on_threads(const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (auto& thread : threads) thread.join();
}

RuntimeValue filled(const Shape& shape, float value) {
  Tensor tensor = Tensor::allocate(DataType::float32, shape);
  std::fill_n(tensor.as<float>(), tensor.size(), value);
  return tensor;
}

// y is a product (packed weights, shared among the pool's threads), flat has a shape that comes from data, scan from a body.
const char* const kModel = R"(
<ir_version: 8, opset_import: ["" : 17]>
g (float[N,K] x, float[K,64] w, int64 trips) => (float[N,64] y, float[M] kept, float[2] last) {
  p = MatMul(x, w)  y = Relu(p)
  row = Constant<value_ints = [-1]>()  flat = Reshape(y, row)
  zero = Constant<value = float {0}>()  positive = Greater(flat, zero)  kept = Compress(flat, positive)
  start = Constant<value = float[2] {0, 1}>()  on = Constant<value = bool {1}>()
  last = Loop(trips, on, start) <body = body (int64 i, bool c, float[2] s) => (bool c2, float[2] s2) {
    c2 = Identity(c)  one = Constant<value = float {1}>()  s2 = Add(s, one)
  }>
})";

std::unique_ptr<Session> make(int threads) {
  SessionOptions options;
  options.intra_op_threads = threads;
  std::string bytes = test::model_bytes(kModel);
  return std::make_unique<Session>(test::as_bytes(bytes), options);
}

/// One run on n rows of k ones; the number of wrong values.
int run(const Session& session, int64_t n, int64_t k, int64_t trips, const RunOptions* options = nullptr) {
  std::vector<RuntimeValue> in{filled({n, k}, 1), filled({k, 64}, 0.5f), Tensor::of<int64_t>({}, {{trips}})}, out(3);
  session.run_positional(in, out, options);
  int wrong = out[0].tensor.shape != Shape{n, 64} || out[1].tensor.shape != Shape{n * 64};
  for (float y : out[0].tensor.span<float>()) wrong += y != 0.5f * static_cast<float>(k);
  for (float y : out[1].tensor.span<float>()) wrong += y != 0.5f * static_cast<float>(k);
  wrong += out[2].tensor.span<float>()[1] != static_cast<float>(trips + 1);
  return wrong;
}

TEST(Concurrency, ThreadPoolRunsEveryTaskOnce) {
  for (bool spin : {true, false}) {
    ThreadPool pool({.threads = 3, .spin = spin});
    on_threads([&](int t) {
      for (int i = 0; i < 200; ++i) {
        std::vector<int> seen(static_cast<size_t>(1 + (i + t) % 17), 0);
        pool.run(static_cast<int64_t>(seen.size()), [&](int64_t task) {
          pool.run(2, [&](int64_t nested) { seen[static_cast<size_t>(task)] += static_cast<int>(nested); });
        });
        for (int count : seen) ASSERT_EQ(count, 1);
      }
    });
  }
}

TEST(Concurrency, ThreadPoolRethrowsAndGoesOn) {
  ThreadPool pool({.threads = 3});
  on_threads([&](int) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_THROW(pool.run(8,
                            [&](int64_t task) {
                              if (task == i % 8) throw std::runtime_error("task");
                            }),
                   std::runtime_error);
      std::atomic<int> ran{0};
      pool.run(8, [&](int64_t) { ++ran; });
      ASSERT_EQ(ran, 8);
    }
  });
}

TEST(Concurrency, PoolsComeAndGo) {
  on_threads([&](int t) {
    for (int i = 0; i < 30; ++i) {
      ThreadPool pool({.threads = 1 + t % 4, .spin_microseconds = i});
      std::atomic<int> ran{0};
      if (i % 2) pool.run(5, [&](int64_t) { ++ran; });
      ASSERT_EQ(ran, i % 2 * 5);
    }
  });
}

#ifndef EPONA_SANITIZED
TEST(Concurrency, APoolTakesTheThreadsThatItGets) {
  rlimit before{};
  getrlimit(RLIMIT_AS, &before);
  const rlimit memory{size_t{1} << 30, before.rlim_max};  // room for the stacks of about a hundred threads
  setrlimit(RLIMIT_AS, &memory);
  {
    ThreadPool pool({.threads = 2000});
    EXPECT_GE(pool.threads(), 1);
    EXPECT_LT(pool.threads(), 2000);
    std::atomic<int> ran{0};
    pool.run(50, [&](int64_t) { ++ran; });
    EXPECT_EQ(ran, 50);
  }
  setrlimit(RLIMIT_AS, &before);
}
#endif

TEST(Concurrency, OneSessionManyShapes) {
  auto session = make(3);
  on_threads([&](int t) {
    for (int i = 0; i < 40; ++i) ASSERT_EQ(run(*session, 1 + (i * 7 + t) % 23 * 3, 16 + t * 8, i % 4), 0);
  });
}

TEST(Concurrency, SessionsComeAndGo) {
  auto shared = make(2);
  on_threads([&](int t) {
    for (int i = 0; i < 6; ++i) {
      if (t % 2) {
        ASSERT_EQ(run(*make(1 + i % 3), 5 + t, 32, 2), 0);
      } else {
        ASSERT_EQ(run(*shared, 40 + t, 64, 3), 0);
      }
    }
  });
}

TEST(Concurrency, FailedRunsLeaveTheOthersAlone) {
  auto session = make(2);
  on_threads([&](int t) {
    for (int i = 0; i < 30; ++i) {
      if (t % 2) {
        std::vector<RuntimeValue> in{filled({2, 3}, 1), filled({4, 64}, 1), Tensor::of<int64_t>({}, {{1}})}, out(3);
        EXPECT_THROW(session->run_positional(in, out), Error);
      } else {
        ASSERT_EQ(run(*session, 2 + i, 24, 1), 0);
      }
    }
  });
}

TEST(Concurrency, TerminateFromAnotherThread) {
  auto session = make(2);
  std::atomic<int> stopped{0}, ended{0};
  on_threads([&](int t) {
    for (int i = 0; i < 3; ++i) {
      RunOptions options;
      std::thread stop([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(5 + t));
        options.terminate = true;
      });
      try {
        ASSERT_EQ(run(*session, 8, 16, t % 2 ? int64_t{1} << 40 : 1, &options), 0);
        ++ended;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("terminate"), std::string::npos) << error.what();
        ++stopped;
      }
      stop.join();
    }
  });
  EXPECT_GE(stopped, kThreads / 2 * 3);
  EXPECT_EQ(stopped + ended, kThreads * 3);
  EXPECT_EQ(run(*session, 8, 16, 5), 0);
}

}  // namespace
}  // namespace epona
