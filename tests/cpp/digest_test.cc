#include "base/digest.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>
#include <vector>

namespace epona {
namespace {

std::string random_bytes(size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::string bytes(count, 0);
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(Digest, EveryBitOfEveryLengthCounts) {
  std::set<std::string> seen;
  size_t made = 0;
  for (size_t count = 0; count < 200; ++count) {
    std::string bytes = random_bytes(count);
    made += seen.insert(digest_of(bytes).hex()).second;
    for (size_t bit = 0; bit < 8 * count; bit += 7) {
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
      EXPECT_TRUE(seen.insert(digest_of(bytes).hex()).second) << count << " bytes, bit " << bit;
      bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    }
  }
  EXPECT_EQ(made, 200U);
}

TEST(Digest, ZerosOfDifferentLengthsDiffer) {
  std::set<std::string> seen;
  for (size_t count = 0; count < 1000; ++count) EXPECT_TRUE(seen.insert(digest_of(std::string(count, 0)).hex()).second);
}

TEST(Digest, OrderCounts) {
  std::string bytes = random_bytes(64 * 200);
  Digest first = digest_of(bytes);
  for (size_t distance : {8UL, 16UL, 64UL, 128UL, 64 * 64UL, 64 * 128UL}) {
    std::string swapped = bytes;
    for (size_t i = 0; i < 8; ++i) std::swap(swapped[i], swapped[i + distance]);
    EXPECT_FALSE(digest_of(swapped) == first) << distance;
  }
}

// A flipped bit changes about half of the digest.
TEST(Digest, Avalanche) {
  std::string bytes = random_bytes(300);
  Digest first = digest_of(bytes);
  int flipped = 0, trials = 0;
  for (size_t bit = 0; bit < 2400; bit += 3, ++trials) {
    std::string other = bytes;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    Digest second = digest_of(other);
    for (size_t w = 0; w < 2; ++w) flipped += __builtin_popcountll(first.words[w] ^ second.words[w]);
  }
  EXPECT_NEAR(static_cast<double>(flipped) / trials, 64, 4);
}

}  // namespace
}  // namespace epona
