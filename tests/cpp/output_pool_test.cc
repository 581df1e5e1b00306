#include "graph/output_pool.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace epona {
namespace {

constexpr int64_t kLarge = 100'000;  // floats: 400 KB

TEST(OutputPool, GivesBackWhatWasReturned) {
  auto pool = std::make_shared<OutputPool>();
  Tensor first = pool->make(DataType::float32, Shape{kLarge});
  Tensor second = pool->make(DataType::float32, Shape{kLarge});
  EXPECT_NE(first.data, second.data);
  const void* given = first.data;
  first = Tensor();
  EXPECT_EQ(pool->make(DataType::int32, Shape{kLarge / 10, 10}).data, given);
}

TEST(OutputPool, MemoryOutlivesThePool) {
  auto pool = std::make_shared<OutputPool>();
  std::weak_ptr<OutputPool> alive = pool;
  Tensor tensor = pool->make(DataType::float32, Shape{kLarge});
  pool.reset();
  tensor.as<float>()[kLarge - 1] = 3.0f;
  EXPECT_EQ(tensor.as<float>()[kLarge - 1], 3.0f);
  tensor = Tensor();
  EXPECT_TRUE(alive.expired());
}

TEST(OutputPool, SmallHugeAndTextAreOrdinaryTensors) {
  auto pool = std::make_shared<OutputPool>();
  EXPECT_EQ(pool->make(DataType::float32, Shape{}).size(), 1);
  EXPECT_EQ(pool->make(DataType::float32, Shape{0, 5}).size(), 0);
  EXPECT_EQ(pool->make(DataType::string, Shape{kLarge}).as<std::string>()[kLarge - 1], "");
  EXPECT_EQ(pool->make(DataType::uint8, Shape{int64_t{100} << 20}).bytes(), size_t{100} << 20);
  EXPECT_EQ(pool.use_count(), 1);  // none of them holds the pool
}

TEST(OutputPool, OtherSizesDoNotPileUp) {
  auto pool = std::make_shared<OutputPool>();
  for (int64_t step = 0; step < 200; ++step) pool->make(DataType::float32, Shape{kLarge + 1000 * step});
  EXPECT_LE(pool->idle_bytes(), 4 * static_cast<size_t>(kLarge + 1000 * 200));
  std::vector<Tensor> many;
  many.reserve(300);
  for (int i = 0; i < 300; ++i) many.push_back(pool->make(DataType::float32, Shape{kLarge}));
  many.clear();
  EXPECT_LE(pool->idle_bytes(), size_t{64} << 20);
  EXPECT_GT(pool->idle_bytes(), 0u);
}

TEST(OutputPool, ThreadsShareIt) {
  auto pool = std::make_shared<OutputPool>();
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        Tensor tensor = pool->make(DataType::int32, Shape{kLarge + i % 7});
        auto* values = tensor.as<int32_t>();
        values[0] = values[kLarge - 1] = t;
        std::this_thread::yield();
        ASSERT_EQ(values[0], t);
        ASSERT_EQ(values[kLarge - 1], t);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace epona
