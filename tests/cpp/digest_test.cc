#include "base/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(Digest, SeveralContentsAreTakenInParts) {
  constexpr size_t kPart = size_t{1} << 20;
  std::vector<std::string> texts;
  for (size_t count : {size_t{0}, size_t{1}, kPart - 1, kPart, kPart + 1, 3 * kPart, 3 * kPart + 5, size_t{7}})
    texts.push_back(random_bytes(count, static_cast<unsigned>(count)));
  std::vector<std::span<const std::byte>> contents;
  contents.reserve(texts.size());
  for (const std::string& text : texts) contents.push_back(std::as_bytes(std::span(text.data(), text.size())));
  std::vector<Digest> together = digests_of(contents);
  ASSERT_EQ(together.size(), texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(together[i], digests_of({&contents[i], 1}).front()) << i;  // neither company nor threads matter
    if (texts[i].size() <= kPart) {
      EXPECT_EQ(together[i], digest_of(texts[i])) << i;
    }
  }
  for (size_t at : {size_t{0}, kPart - 1, kPart, 2 * kPart, 3 * kPart + 4}) {
    texts[6][at] = static_cast<char>(texts[6][at] ^ 1);
    EXPECT_FALSE(digests_of({&contents[6], 1}).front() == together[6]) << at;
    texts[6][at] = static_cast<char>(texts[6][at] ^ 1);
  }
  std::swap_ranges(texts[5].begin(), texts[5].begin() + kPart, texts[5].begin() + kPart);
  EXPECT_FALSE(digests_of({&contents[5], 1}).front() == together[5]);
  EXPECT_TRUE(digests_of({}).empty());
}

}  // namespace
}  // namespace epona
