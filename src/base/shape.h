#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <ostream>
#include <span>
#include <vector>

namespace epona {

/// Dimensions of a tensor. Up to 8 are kept inline: building a frame allocates nothing for them.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) { assign(dims.begin(), dims.size()); }
  explicit Shape(std::span<const int64_t> dims) { assign(dims.data(), dims.size()); }
  explicit Shape(const std::vector<int64_t>& dims) { assign(dims.data(), dims.size()); }
  Shape(int rank, int64_t fill) { resize(rank, fill); }
  Shape(const Shape& other) { assign(other.data(), other.rank_); }
  Shape(Shape&& other) noexcept { take(other); }
  Shape& operator=(const Shape& other) {
    if (this != &other) assign(other.data(), other.rank_);
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }

  int rank() const { return static_cast<int>(rank_); }
  bool empty() const { return rank_ == 0; }
  int64_t* data() { return heap_ ? heap_.get() : inline_; }
  const int64_t* data() const { return heap_ ? heap_.get() : inline_; }
  int64_t& operator[](int i) { return data()[i]; }
  int64_t operator[](int i) const { return data()[i]; }
  const int64_t* begin() const { return data(); }
  const int64_t* end() const { return data() + rank_; }
  int64_t* begin() { return data(); }
  int64_t* end() { return data() + rank_; }
  int64_t back() const { return data()[rank_ - 1]; }
  std::span<const int64_t> dims() const { return {data(), rank_}; }
  std::vector<int64_t> to_vector() const { return {begin(), end()}; }

  void resize(int rank, int64_t fill = 1);
  void push_back(int64_t dim) { resize(rank() + 1, dim); }
  void insert(int at, int64_t dim);
  void erase(int at);

  /// Number of elements; throws when it does not fit in 63 bits or a dim is negative.
  int64_t size() const { return size(0, rank()); }
  /// Product of dims [from, to).
  int64_t size(int from, int to) const;

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  static constexpr size_t kInline = 8;
  void assign(const int64_t* dims, size_t rank);
  void take(Shape& other) {
    rank_ = other.rank_;
    heap_ = std::move(other.heap_);
    if (!heap_) std::copy_n(other.inline_, rank_, inline_);
    other.rank_ = 0;
  }

  size_t rank_ = 0;
  int64_t inline_[kInline];
  std::unique_ptr<int64_t[]> heap_;
};

/// "{2,3,4}"
std::ostream& operator<<(std::ostream& out, const Shape& shape);

/// a*b and a+b for sizes; throw Error(invalid_argument) on overflow.
int64_t checked_mul(int64_t a, int64_t b);
int64_t checked_add(int64_t a, int64_t b);

}  // namespace epona
