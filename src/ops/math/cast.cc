#include "ops/convert.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Cast and CastLike: the output's type says to what.
class Cast final : public Kernel {
 public:
  explicit Cast(const NodeInfo& info) {
    options_.saturate = info.attr("saturate", 1) != 0;
    std::string round = info.attr("round_mode", "up");
    if (round != "up" && round != "down" && round != "nearest")
      info.refuse(Code::invalid_argument, "attribute round_mode is '", round, "', expected up, down or nearest");
    options_.round = round == "up" ? RoundMode::up : round == "down" ? RoundMode::down : RoundMode::nearest;
    for (DataType type : {info.in_type(0), info.out_type(0)})
      if (type == DataType::complex64 || type == DataType::complex128)
        info.refuse(Code::not_implemented, "no conversion for element type ", type);
  }
  void shapes(ShapeContext& c) const override { c.out(0, c.in(0)); }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const bool text = x.type == DataType::string || y.type == DataType::string;
    const int64_t size = x.size(), blocks = (size + kConvertBlock - 1) / kConvertBlock;
    c.pool().parallel_for(blocks, kConvertBlock * (text ? 50.0 : 1.0), [&](int64_t begin, int64_t end) {
      convert_elements(x.type, x.data, y.type, y.data, begin * kConvertBlock, std::min(end * kConvertBlock, size),
                       options_);
    });
  }

 private:
  ConvertOptions options_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(cast) {
  r.add({.name = "Cast", .since = 6, .make = make_kernel<Cast>, .inplace = 1});
  r.add({.name = "CastLike", .since = 15, .make = make_kernel<Cast>, .inplace = 1});
}
