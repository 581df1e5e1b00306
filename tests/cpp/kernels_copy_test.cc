#include <numeric>

#include "kernels/strided_copy.h"
#include "vec_test_util.h"

namespace epona {
namespace {

/// Element i of the source holds i in its first bytes; copies element by element with plain indexing and compares.
void check(int bytes, const std::vector<int64_t>& dims, const std::vector<int64_t>& in_strides,
           const std::vector<int64_t>& out_strides, int64_t in_offset, int64_t in_size, int64_t out_size) {
  std::vector<uint8_t> in(static_cast<size_t>(in_size * bytes)), out(static_cast<size_t>(out_size * bytes), 0xEE);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 131 + i / 251);
  std::vector<uint8_t> expected = out;
  const int64_t total = std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i, from = in_offset, to = 0;
    for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
      from += rest % dims[d] * in_strides[d];
      to += rest % dims[d] * out_strides[d];
      rest /= dims[d];
    }
    std::memcpy(&expected[to * bytes], &in[from * bytes], static_cast<size_t>(bytes));
  }
  const DataType type = bytes == 1   ? DataType::uint8
                        : bytes == 2 ? DataType::uint16
                        : bytes == 4 ? DataType::uint32
                        : bytes == 8 ? DataType::uint64
                                     : DataType::complex128;
  StridedCopy copy(type);
  for (size_t d = 0; d < dims.size(); ++d) copy.dim(dims[d], in_strides[d], out_strides[d]);
  copy.run(test_pool(), in.data(), in_offset, out.data(), 0);
  EXPECT_EQ(out, expected) << bytes << " bytes";
}

std::vector<int64_t> dense(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t d = dims.size(); d-- > 0;) strides[d] = stride, stride *= dims[d];
  return strides;
}

TEST(StridedCopyKernel, every_transposition) {
  const std::vector<std::vector<int64_t>> shapes = {
      {7},           {5, 9},       {64, 48},        {33, 70},   {2, 3, 5}, {3, 17, 20},
      {1, 12, 1, 9}, {2, 9, 4, 8}, {2, 1, 3, 2, 4}, {16, 8, 2}, {3, 0, 4}};
  for (const auto& dims : shapes) {
    std::vector<int64_t> perm(dims.size());
    std::iota(perm.begin(), perm.end(), 0);
    do {
      std::vector<int64_t> out_dims(dims.size()), in_strides(dims.size());
      for (size_t d = 0; d < dims.size(); ++d) out_dims[d] = dims[perm[d]], in_strides[d] = dense(dims)[perm[d]];
      int64_t n = 1;
      for (int64_t d : dims) n *= d;
      for (int bytes : {1, 2, 4, 8, 16}) check(bytes, out_dims, in_strides, dense(out_dims), 0, n, n);
    } while (std::next_permutation(perm.begin(), perm.end()));
  }
}

TEST(StridedCopyKernel, slices_repeats_and_steps) {
  for (int bytes : {1, 2, 4, 8}) {
    check(bytes, {3, 5}, {20, 1}, {5, 1}, 3, 80, 15);                // a window
    check(bytes, {3, 5}, {20, 2}, {5, 1}, 1, 80, 15);                // every second column
    check(bytes, {4, 3}, {-10, -3}, {3, 1}, 39, 40, 12);             // backwards
    check(bytes, {2, 4, 3}, {0, 1, 0}, {12, 3, 1}, 0, 4, 24);        // repeated
    check(bytes, {6, 10}, {10, 1}, {25, 1}, 0, 60, 160);             // into a wider tensor
    check(bytes, {9, 2}, {4, 1}, {2, 1}, 1, 40, 18);                 // runs of two, not aligned to two
    check(bytes, {40, 33}, {1, 41}, {50, 1}, 2, 41 * 33 + 2, 2000);  // a transposition out of and into windows
    check(bytes, {}, {}, {}, 0, 1, 1);
  }
}

}  // namespace
}  // namespace epona
