#include "kernels/convert.h"
#include "providers/cpu/cpu_registry.h"

namespace epona::cpu {
namespace {

/// Cast between float32 and one of the types of convert.h.
class FastCast final : public Kernel {
 public:
  explicit FastCast(KernelPtr portable) : portable_(std::move(portable)) {}
  void shapes(ShapeContext& c) const override { portable_->shapes(c); }
  void run(const RunContext& c) const override {
    const Tensor& x = c.in(0);
    Tensor& y = c.out(0);
    const auto in_bytes = static_cast<int64_t>(type_bits(x.type) / 8),
               out_bytes = static_cast<int64_t>(type_bits(y.type) / 8);
    const char* from = x.as<char>();
    char* to = y.as<char>();
    c.pool().parallel_for(x.size(), 0.3, [&](int64_t begin, int64_t end) {
      const void* in = from + begin * in_bytes;
      void* out = to + begin * out_bytes;
      if (y.type == DataType::float32)
        to_float(x.type, in, static_cast<float*>(out), end - begin);
      else
        from_float(y.type, static_cast<const float*>(in), out, end - begin);
    });
  }

 private:
  KernelPtr portable_;
};

KernelPtr make(const NodeInfo& info, KernelPtr& portable, std::string& reason) {
  const DataType from = info.in_type(0), to = info.out_type(0);
  const bool one_is_float = from == DataType::float32 || to == DataType::float32;
  if (portable && one_is_float && converts_with_float(from) && converts_with_float(to))
    return std::make_unique<FastCast>(std::move(portable));
  reason = cat("types ", from, " and ", to);
  return nullptr;
}

}  // namespace
}  // namespace epona::cpu

EPONA_CPU(cast) {
  for (const char* name : {"Cast", "CastLike"}) r.add({.name = name, .make = make});
}
