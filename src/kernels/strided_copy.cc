#include "kernels/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"
#include "kernels/transpose2d.h"

namespace epona {
namespace {

struct ByteDim {
  int64_t n, in, out;  // strides in bytes
};

/// Walks the outer dims: keeps both byte offsets while the flat index goes up.
class Walk {
 public:
  Walk(const ByteDim* dims, int rank, int64_t start) : dims_(dims), rank_(rank) {
    for (int i = rank - 1; i >= 0; --i) {
      at_[i] = start % dims[i].n;
      start /= dims[i].n;
      in += at_[i] * dims[i].in;
      out += at_[i] * dims[i].out;
    }
  }
  void next() {
    for (int i = rank_ - 1; i >= 0; --i) {
      in += dims_[i].in;
      out += dims_[i].out;
      if (++at_[i] < dims_[i].n) return;
      in -= dims_[i].in * dims_[i].n;
      out -= dims_[i].out * dims_[i].n;
      at_[i] = 0;
    }
  }
  int64_t in = 0, out = 0;

 private:
  const ByteDim* dims_;
  int rank_;
  int64_t at_[32];
};

template <int Bytes>
struct Bits {
  uint8_t bytes[Bytes];
};

template <class T>
void copy_row(int64_t n, const char* in, int64_t in_step, char* out, int64_t out_step) {
  if (in_step == 0) {
    T value;
    std::memcpy(&value, in, sizeof(T));
    if (out_step == static_cast<int64_t>(sizeof(T))) {
      for (int64_t i = 0; i < n; ++i) std::memcpy(out + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
      return;
    }
    for (int64_t i = 0; i < n; ++i) std::memcpy(out + i * out_step, &value, sizeof(T));
    return;
  }
  for (int64_t i = 0; i < n; ++i) std::memcpy(out + i * out_step, in + i * in_step, sizeof(T));
}

using RowFn = void (*)(int64_t, const char*, int64_t, char*, int64_t);

RowFn row_fn(int64_t bytes) {
  switch (bytes) {
    case 1:
      return copy_row<uint8_t>;
    case 2:
      return copy_row<uint16_t>;
    case 4:
      return copy_row<uint32_t>;
    case 8:
      return copy_row<uint64_t>;
    default:
      return copy_row<Bits<16>>;
  }
}

bool is_word(int64_t bytes) { return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16; }

/// Copies rows of `bytes` contiguous bytes.
void copy_chunks(ThreadPool& pool, const ByteDim* dims, int rank, int64_t bytes, const char* in, char* out) {
  constexpr int64_t kPiece = 1 << 16;
  ByteDim split[33];
  int64_t rows = 1;
  for (int i = 0; i < rank; ++i) rows *= dims[i].n;
  if (bytes >= 2 * kPiece && rows < 4 * pool.threads()) {
    // Few long rows: cut each into pieces; the last piece is shorter.
    std::copy_n(dims, rank, split);
    int64_t pieces = (bytes + kPiece - 1) / kPiece;
    split[rank] = {pieces, kPiece, kPiece};
    pool.parallel_for(rows * pieces, kPiece * 0.1, [&](int64_t begin, int64_t end) {
      Walk walk(split, rank + 1, begin);
      for (int64_t i = begin; i < end; ++i, walk.next())
        std::memcpy(out + walk.out, in + walk.in, static_cast<size_t>(std::min(kPiece, bytes - i % pieces * kPiece)));
    });
    return;
  }
  pool.parallel_for(rows, 2 + static_cast<double>(bytes) * 0.1, [&](int64_t begin, int64_t end) {
    Walk walk(dims, rank, begin);
    for (int64_t i = begin; i < end; ++i, walk.next())
      std::memcpy(out + walk.out, in + walk.in, static_cast<size_t>(bytes));
  });
}

/// Copies a block of which dim `p` is contiguous in the input and the last dim in the output.
void copy_transposed(ThreadPool& pool, ByteDim* dims, int rank, int p, int64_t bytes, const char* in, char* out) {
  constexpr int64_t kRows = 64;
  ByteDim row = dims[p], column = dims[rank - 1];
  std::copy(dims + p + 1, dims + rank - 1, dims + p);
  int64_t outer = 1;
  for (int i = 0; i < rank - 2; ++i) outer *= dims[i].n;
  int64_t blocks = (row.n + kRows - 1) / kRows;
  dims[rank - 2] = {blocks, kRows * row.in, kRows * row.out};
  double cost = static_cast<double>(std::min(row.n, kRows) * column.n) * 0.4;
  pool.parallel_for(outer * blocks, cost, [&](int64_t begin, int64_t end) {
    Walk walk(dims, rank - 1, begin);
    for (int64_t i = begin; i < end; ++i, walk.next())
      transpose2d(static_cast<int>(bytes), std::min(kRows, row.n - i % blocks * kRows), column.n, in + walk.in,
                  column.in, out + walk.out, row.out);
  });
}

}  // namespace

void StridedCopy::dim(int64_t n, int64_t in_stride, int64_t out_stride) {
  if (n == 0) empty_ = true;
  if (n <= 1) return;
  if (rank_ > 0) {
    Dim& last = dims_[rank_ - 1];
    if (last.in == n * in_stride && last.out == n * out_stride) {
      last = {last.n * n, in_stride, out_stride};
      return;
    }
  }
  if (rank_ == kMaxDims) fail(Code::not_implemented, "a tensor of more than ", kMaxDims, " dimensions");
  dims_[rank_++] = {n, in_stride, out_stride};
}

void StridedCopy::run(ThreadPool& pool, const void* in, int64_t in_offset, void* out, int64_t out_offset) const {
  if (empty_) return;
  if (is_subbyte(type_)) return run_subbyte(in, in_offset, out, out_offset);
  if (type_ == DataType::string)
    return run_strings(static_cast<const std::string*>(in) + in_offset, static_cast<std::string*>(out) + out_offset);
  int64_t bytes = static_cast<int64_t>(type_bits(type_) / 8);
  const char* from = static_cast<const char*>(in) + in_offset * bytes;
  char* to = static_cast<char*>(out) + out_offset * bytes;
  ByteDim dims[kMaxDims];
  int rank = rank_;
  for (int i = 0; i < rank; ++i) dims[i] = {dims_[i].n, dims_[i].in * bytes, dims_[i].out * bytes};
  if (rank > 0 && dims[rank - 1].in == bytes && dims[rank - 1].out == bytes) bytes *= dims[--rank].n;
  if (!is_word(bytes)) return copy_chunks(pool, dims, rank, bytes, from, to);
  if (rank == 0) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  ByteDim last = dims[rank - 1];
  if (last.out == bytes && last.n >= 4) {
    for (int p = rank - 2; p >= 0; --p)
      if (dims[p].in == bytes && dims[p].n >= 4) return copy_transposed(pool, dims, rank, p, bytes, from, to);
  }
  int64_t rows = 1;
  for (int i = 0; i < rank - 1; ++i) rows *= dims[i].n;
  RowFn row = row_fn(bytes);
  if (rows == 1) {
    pool.parallel_for(last.n, 0.5, [&](int64_t begin, int64_t end) {
      row(end - begin, from + begin * last.in, last.in, to + begin * last.out, last.out);
    });
    return;
  }
  pool.parallel_for(rows, 2 + static_cast<double>(last.n) * 0.5, [&](int64_t begin, int64_t end) {
    Walk walk(dims, rank - 1, begin);
    for (int64_t i = begin; i < end; ++i, walk.next()) row(last.n, from + walk.in, last.in, to + walk.out, last.out);
  });
}

void StridedCopy::run_strings(const std::string* in, std::string* out) const {
  int64_t at[kMaxDims] = {};
  for (;;) {
    *out = *in;
    int i = rank_ - 1;
    for (; i >= 0; --i) {
      in += dims_[i].in;
      out += dims_[i].out;
      if (++at[i] < dims_[i].n) break;
      in -= dims_[i].in * dims_[i].n;
      out -= dims_[i].out * dims_[i].n;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

void StridedCopy::run_subbyte(const void* in, int64_t in_offset, void* out, int64_t out_offset) const {
  const uint8_t* from = static_cast<const uint8_t*>(in);
  uint8_t* to = static_cast<uint8_t*>(out);
  const int bits = static_cast<int>(type_bits(type_)), per_byte = 8 / bits, mask = (1 << bits) - 1;
  int64_t at[kMaxDims] = {};
  for (;;) {
    int value = from[in_offset / per_byte] >> (in_offset % per_byte * bits) & mask;
    uint8_t& byte = to[out_offset / per_byte];
    int shift = static_cast<int>(out_offset % per_byte) * bits;
    byte = static_cast<uint8_t>((byte & ~(mask << shift)) | value << shift);
    int i = rank_ - 1;
    for (; i >= 0; --i) {
      in_offset += dims_[i].in;
      out_offset += dims_[i].out;
      if (++at[i] < dims_[i].n) break;
      in_offset -= dims_[i].in * dims_[i].n;
      out_offset -= dims_[i].out * dims_[i].n;
      at[i] = 0;
    }
    if (i < 0) return;
  }
}

Shape row_major_strides(const Shape& dims) {
  Shape strides(dims.rank(), 1);
  for (int i = dims.rank() - 2; i >= 0; --i) strides[i] = strides[i + 1] * dims[i + 1];
  return strides;
}

void copy_elements(DataType type, int64_t count, const void* in, int64_t in_offset, void* out, int64_t out_offset) {
  if (count <= 0 || (in == out && in_offset == out_offset)) return;
  if (type == DataType::string) {
    std::copy_n(static_cast<const std::string*>(in) + in_offset, count, static_cast<std::string*>(out) + out_offset);
    return;
  }
  int64_t bits = static_cast<int64_t>(type_bits(type));
  if (bits < 8) {
    if (in_offset * bits % 8 == 0 && out_offset * bits % 8 == 0 && count * bits % 8 == 0) {
      std::memcpy(static_cast<char*>(out) + out_offset * bits / 8, static_cast<const char*>(in) + in_offset * bits / 8,
                  static_cast<size_t>(count * bits / 8));
      return;
    }
    const uint8_t* from = static_cast<const uint8_t*>(in);
    uint8_t* to = static_cast<uint8_t*>(out);
    const int64_t per_byte = 8 / bits, mask = (1 << bits) - 1;
    for (int64_t i = 0; i < count; ++i) {
      int64_t source = in_offset + i, target = out_offset + i, shift = target % per_byte * bits;
      int64_t value = from[source / per_byte] >> (source % per_byte * bits) & mask;
      uint8_t& byte = to[target / per_byte];
      byte = static_cast<uint8_t>((byte & ~(mask << shift)) | value << shift);
    }
    return;
  }
  int64_t bytes = bits / 8;
  std::memcpy(static_cast<char*>(out) + out_offset * bytes, static_cast<const char*>(in) + in_offset * bytes,
              static_cast<size_t>(count * bytes));
}

void fill_elements(DataType type, int64_t count, const void* value, void* out, int64_t offset) {
  if (count <= 0) return;
  if (type == DataType::string) {
    std::fill_n(static_cast<std::string*>(out) + offset, count, *static_cast<const std::string*>(value));
    return;
  }
  int64_t bits = static_cast<int64_t>(type_bits(type));
  if (bits < 8) {
    for (int64_t i = 0; i < count; ++i) copy_elements(type, 1, value, 0, out, offset + i);
    return;
  }
  int64_t bytes = bits / 8;
  const char* from = static_cast<const char*>(value);
  char* to = static_cast<char*>(out) + offset * bytes;
  if (std::all_of(from, from + bytes, [&](char c) { return c == from[0]; })) {
    std::memset(to, from[0], static_cast<size_t>(count * bytes));
    return;
  }
  row_fn(bytes)(count, from, 0, to, bytes);
}

}  // namespace epona
