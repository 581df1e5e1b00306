#include "ops/dispatch.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// NonZero: coordinates of the elements that are not zero, as [rank, count]; of a scalar therefore [0, count].
class NonZero final : public Kernel {
 public:
  explicit NonZero(const NodeInfo& info) {
    if (!test_of(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    auto test = test_of(in.type);
    int64_t size = in.size(), count = 0;
    for (int64_t i = 0; i < size; ++i) count += test(in.data, i);
    int rank = in.shape.rank();
    int64_t* out = c.allocate(0, {rank, count}, DataType::int64).as<int64_t>();
    Shape at(rank, 0);
    for (int64_t i = 0, n = 0; n < count; ++i) {
      if (test(in.data, i)) {
        for (int d = 0; d < rank; ++d) out[d * count + n] = at[d];
        ++n;
      }
      for (int d = rank - 1; d >= 0 && ++at[d] == in.shape[d]; --d) at[d] = 0;
    }
  }

 private:
  using Test = bool (*)(const void*, int64_t);
  template <class T>
  static bool test(const void* data, int64_t i) {
    return static_cast<const T*>(data)[i] != T{};
  }
  template <class Word, Word kMask>
  static bool test_half(const void* data, int64_t i) {
    return (static_cast<const Word*>(data)[i] & kMask) != 0;
  }
  static Test test_of(DataType type) {
    switch (type) {
      case DataType::boolean:
      case DataType::int8:
      case DataType::uint8:
        return test<uint8_t>;
      case DataType::int16:
      case DataType::uint16:
        return test<uint16_t>;
      case DataType::float16:
      case DataType::bfloat16:
        return test_half<uint16_t, 0x7fff>;  // all but the sign
      case DataType::int32:
      case DataType::uint32:
        return test<uint32_t>;
      case DataType::int64:
      case DataType::uint64:
        return test<uint64_t>;
      case DataType::float32:
        return test<float>;
      case DataType::float64:
        return test<double>;
      case DataType::complex64:
        return test<std::complex<float>>;
      case DataType::complex128:
        return test<std::complex<double>>;
      case DataType::string:
        return test<std::string>;
      default:
        return nullptr;
    }
  }
};

}  // namespace
}  // namespace epona

EPONA_OPS(non_zero) { r.add({.name = "NonZero", .since = 9, .make = make_kernel<NonZero>, .dynamic = true}); }
