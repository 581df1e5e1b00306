#include "base/shape.h"

#include "base/error.h"

namespace epona {

void Shape::assign(const int64_t* dims, size_t rank) {
  if (rank > kInline) {
    auto grown = std::make_unique<int64_t[]>(rank);
    std::copy_n(dims, rank, grown.get());
    heap_ = std::move(grown);
  } else {
    std::copy_n(dims, rank, inline_);
    heap_.reset();
  }
  rank_ = rank;
}

void Shape::resize(int rank, int64_t fill) {
  size_t wanted = static_cast<size_t>(rank);
  if (wanted > kInline) {
    auto grown = std::make_unique<int64_t[]>(wanted);
    std::copy_n(data(), std::min(rank_, wanted), grown.get());
    heap_ = std::move(grown);
  } else if (heap_) {
    std::copy_n(heap_.get(), wanted, inline_);
    heap_.reset();
  }
  if (wanted > rank_) std::fill(data() + rank_, data() + wanted, fill);
  rank_ = wanted;
}

void Shape::insert(int at, int64_t dim) {
  resize(rank() + 1, 1);
  std::copy_backward(data() + at, data() + rank_ - 1, data() + rank_);
  data()[at] = dim;
}

void Shape::erase(int at) {
  std::copy(data() + at + 1, data() + rank_, data() + at);
  resize(rank() - 1);
}

int64_t Shape::size(int from, int to) const {
  int64_t product = 1;
  const int64_t* dims = data();
  for (int i = from; i < to; ++i) {
    if (dims[i] < 0) fail(Code::invalid_argument, "negative dimension in shape ", *this);
    if (__builtin_mul_overflow(product, dims[i], &product))
      fail(Code::invalid_argument, "the number of elements of shape ", *this, " overflows");
  }
  return product;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  out << '{';
  for (int i = 0; i < shape.rank(); ++i) out << (i ? "," : "") << shape[i];
  return out << '}';
}

int64_t checked_mul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) fail(Code::invalid_argument, "size overflow: ", a, " * ", b);
  return product;
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) fail(Code::invalid_argument, "size overflow: ", a, " + ", b);
  return sum;
}

}  // namespace epona
