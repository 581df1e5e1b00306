#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace epona {

/// A 128-bit fingerprint of bytes, for telling contents apart; not against people who want two to be the same. About as
/// fast as memory is read. It may change with any version of Epona.
struct Digest {
  std::array<uint64_t, 2> words{};
  bool operator==(const Digest&) const = default;
  std::string hex() const;
};

Digest digest_of(std::span<const std::byte> bytes);
inline Digest digest_of(std::string_view text) { return digest_of(std::as_bytes(std::span(text.data(), text.size()))); }

/// A fingerprint of each of several contents, on several threads where there is much to read. Longer ones are taken in
/// parts: theirs is not what digest_of() gives.
std::vector<Digest> digests_of(std::span<const std::span<const std::byte>> contents);

}  // namespace epona
