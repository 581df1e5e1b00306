#include "ops/tensor/scatter_util.h"

#include "kernels/strided_copy.h"
#include "ops/dispatch.h"

namespace epona {
namespace {

template <class T, Reduction R>
T combine_one(T a, T b) {
  if constexpr (R == Reduction::max || R == Reduction::min) {
    if (b != b) return b;
    return (R == Reduction::max ? b > a : b < a) ? b : a;
  } else if constexpr (std::is_integral_v<T>) {
    // Unsigned, so that overflow wraps; through 64 bits, so that small types do not promote to a signed int.
    uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<T>(R == Reduction::add ? x + y : x * y);
  } else {
    return T(R == Reduction::add ? a + b : a * b);
  }
}

template <class T, Reduction R>
void combine(DataType, int64_t n, const void* in, int64_t in_at, void* out, int64_t out_at) {
  const T* from = static_cast<const T*>(in) + in_at;
  T* to = static_cast<T*>(out) + out_at;
  for (int64_t i = 0; i < n; ++i) to[i] = combine_one<T, R>(to[i], from[i]);
}

}  // namespace

Reduction scatter_reduction(const NodeInfo& info) {
  std::string name = info.attr("reduction", "none");
  if (name == "none") return Reduction::none;
  if (!contains(NumericTypes{}, info.in_type(0)))
    info.refuse(Code::not_implemented, "reduction '", name, "' on type ", info.in_type(0));
  if (name == "add") return Reduction::add;
  if (name == "mul") return Reduction::mul;
  if (name == "max") return Reduction::max;
  if (name == "min") return Reduction::min;
  info.refuse(Code::invalid_graph, "unknown reduction '", name, "'");
}

CombineFn combine_fn(Reduction reduction, DataType type) {
  if (reduction == Reduction::none) return copy_elements;
  CombineFn fn = nullptr;
  dispatch(type, NumericTypes{}, [&]<class T>() {
    fn = reduction == Reduction::add   ? combine<T, Reduction::add>
         : reduction == Reduction::mul ? combine<T, Reduction::mul>
         : reduction == Reduction::max ? combine<T, Reduction::max>
                                       : combine<T, Reduction::min>;
  });
  return fn;
}

}  // namespace epona
