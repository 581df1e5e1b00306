#include <bit>
#include <cstring>

#include "ops/registry.h"

namespace epona {
namespace {

/// MurmurHash3 (the 32-bit variant for x86) of the bytes of each element.
class MurmurHash3 final : public Kernel {
 public:
  explicit MurmurHash3(const NodeInfo& info) : seed_(static_cast<uint32_t>(info.attr("seed", 0))) {
    DataType type = info.in_type(0);
    if (type != DataType::string && type_bits(type) != 32 && type_bits(type) != 64)
      info.refuse(Code::not_implemented, "type ", type);
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    uint32_t* out = c.out_data<uint32_t>(0);  // or int32: the same bits
    size_t bytes = type_bits(in.type) / 8;
    for (int64_t i = 0, n = in.size(); i < n; ++i) {
      if (in.type == DataType::string)
        out[i] = hash(in.as<std::string>()[i].data(), in.as<std::string>()[i].size());
      else
        out[i] = hash(in.as<char>() + static_cast<size_t>(i) * bytes, bytes);
    }
  }

 private:
  static uint32_t scramble(uint32_t block) { return std::rotl(block * 0xcc9e2d51u, 15) * 0x1b873593u; }
  uint32_t hash(const char* bytes, size_t length) const {
    uint32_t h = seed_;
    size_t whole = length / 4 * 4;
    for (size_t i = 0; i < whole; i += 4) {
      uint32_t block;
      std::memcpy(&block, bytes + i, 4);
      h = std::rotl(h ^ scramble(block), 13) * 5 + 0xe6546b64u;
    }
    uint32_t tail = 0;
    for (size_t i = length; i > whole; --i) tail = tail << 8 | static_cast<unsigned char>(bytes[i - 1]);
    h ^= scramble(tail) ^ static_cast<uint32_t>(length);
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
  }
  uint32_t seed_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(murmur_hash3) { r.add({.name = "MurmurHash3", .domain = "com.microsoft", .make = make_kernel<MurmurHash3>}); }
