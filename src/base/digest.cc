#include "base/digest.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/thread_pool.h"

namespace epona {
namespace {

// Four lanes take a 64-byte stripe. Each multiplies its two keyed words into 128 bits and folds them into a polynomial in
// an odd constant: two multiplications for 16 bytes, so that memory is the limit. (The folded product is that of wyhash, by
// W. Yi; what went before is never a factor, hence cannot be lost by a product of zero.)
constexpr size_t kLanes = 4, kStripe = 16 * kLanes;
constexpr uint64_t kOdd = 0x9E3779B97F4A7C15, kOther = 0xC2B2AE3D27D4EB4F;

struct Keys {
  uint64_t of[2 * kLanes + 2];
};

constexpr Keys make_keys() {
  Keys keys{};
  uint64_t x = kOdd;
  for (uint64_t& key : keys.of) {
    x += kOther;
    uint64_t y = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    y = (y ^ (y >> 27)) * 0x94D049BB133111EB;
    key = y ^ (y >> 31);
  }
  return keys;
}
constexpr Keys kKeys = make_keys();

uint64_t folded(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

struct Lanes {
  uint64_t a, b, c, d;

  void add(const std::byte* data) {
    uint64_t words[2 * kLanes];
    std::memcpy(words, data, kStripe);
    a = a * kOdd + folded(words[0] ^ kKeys.of[0], words[1] ^ kKeys.of[1]);
    b = b * kOdd + folded(words[2] ^ kKeys.of[2], words[3] ^ kKeys.of[3]);
    c = c * kOdd + folded(words[4] ^ kKeys.of[4], words[5] ^ kKeys.of[5]);
    d = d * kOdd + folded(words[6] ^ kKeys.of[6], words[7] ^ kKeys.of[7]);
  }
};

}  // namespace

Digest digest_of(std::span<const std::byte> bytes) {
  Lanes lanes{kKeys.of[4], kKeys.of[5], kKeys.of[6], kKeys.of[7]};
  const std::byte* data = bytes.data();
  size_t left = bytes.size();
  for (; left >= kStripe; left -= kStripe, data += kStripe) lanes.add(data);
  std::byte last[kStripe] = {};
  if (left > 0) std::memcpy(last, data, left);
  lanes.add(last);
  Digest digest;
  digest.words = {bytes.size() * kOdd, ~(bytes.size() * kOther)};
  for (uint64_t lane : {lanes.a, lanes.b, lanes.c, lanes.d}) {
    digest.words[0] = folded(digest.words[0] ^ lane, kKeys.of[8]) + lane;
    digest.words[1] = folded(std::rotl(digest.words[1], 23) + lane, kKeys.of[9]) ^ lane;
  }
  return digest;
}

std::vector<Digest> digests_of(std::span<const std::span<const std::byte>> contents) {
  constexpr size_t kPart = size_t{1} << 20, kMuch = 4 * kPart;
  constexpr int kThreads = 4;  // few use up the bandwidth of memory
  std::vector<std::span<const std::byte>> parts;
  size_t bytes = 0;
  for (std::span<const std::byte> content : contents) {
    bytes += content.size();
    do {
      parts.push_back(content.first(std::min(content.size(), kPart)));
      content = content.subspan(parts.back().size());
    } while (!content.empty());
  }
  std::vector<Digest> of_part(parts.size());
  auto take = [&](int64_t part) { of_part[static_cast<size_t>(part)] = digest_of(parts[static_cast<size_t>(part)]); };
  int threads = bytes >= kMuch ? std::min(kThreads, cpu_budget()) : 1;
  ThreadPool({.threads = threads, .spin = false}).run(static_cast<int64_t>(parts.size()), take);
  std::vector<Digest> digests;
  digests.reserve(contents.size());
  const Digest* next = of_part.data();
  for (std::span<const std::byte> content : contents) {
    size_t own = std::max<size_t>(1, (content.size() + kPart - 1) / kPart);
    digests.push_back(own == 1 ? *next : digest_of(std::as_bytes(std::span(next, own))));
    next += own;
  }
  return digests;
}

std::string Digest::hex() const {
  static const char* digits = "0123456789abcdef";
  std::string text;
  for (uint64_t word : words)
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(word >> shift) & 15];
  return text;
}

}  // namespace epona
