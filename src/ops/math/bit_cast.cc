#include <cstring>

#include "ops/registry.h"

namespace epona {
namespace {

/// The same bits under a type of the same width.
class BitCast final : public Kernel {
 public:
  explicit BitCast(const NodeInfo& info) {
    DataType from = info.in_type(0), to = info.out_type(0);
    if (from == DataType::string || to == DataType::string || type_bits(from) != type_bits(to))
      info.refuse(Code::invalid_argument, "element types ", from, " and ", to, " do not have the same width");
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    if (c.in(0).data != c.out(0).data && c.in(0).size() > 0) std::memcpy(c.out(0).data, c.in(0).data, c.in(0).bytes());
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(bit_cast) { r.add({.name = "BitCast", .since = 26, .make = make_kernel<BitCast>, .inplace = 1}); }
