#pragma once
#include <initializer_list>

#include "ops/kernel.h"

namespace epona {

/// Converts n elements between two of the types float, double, float16, bfloat16 (equal types: a copy).
void convert_floats(DataType from_type, const void* from, DataType to_type, void* to, int64_t n, ThreadPool& pool);

/// Lets a kernel written for float (or double) take the 16-bit floats too: inputs are converted into scratch memory,
/// outputs on the way back. A tensor that has the wanted type already is used where it is.
///   shapes(): c.workspace(own + FloatIo::bytes(c, {output shapes}));
///   run():    FloatIo io(c, own); auto* x = io.in<float>(0); auto* y = io.out<float>(0); ...; io.store();
class FloatIo {
 public:
  /// Scratch for all inputs that are 16-bit floats and for outputs of these shapes; 0 when no input is one.
  static size_t bytes(const ShapeContext& c, std::initializer_list<Shape> outputs);
  /// `own` bytes at the start of the workspace belong to the kernel.
  FloatIo(const RunContext& c, size_t own) : c_(&c), next_(c.workspace_as<char>() + align(own)) {}

  /// The elements of an input as T; nullptr when it is absent.
  template <class T>
  const T* in(int i) {
    return static_cast<const T*>(convert_in(i, data_type_of<T>));
  }
  template <class T>
  T* out(int o) {
    return static_cast<T*>(place_out(o, data_type_of<T>));
  }
  /// Converts the outputs that were handed out as scratch.
  void store();

  static size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

 private:
  static constexpr int kOutputs = 4;
  const void* convert_in(int i, DataType type);
  void* place_out(int o, DataType type);

  const RunContext* c_;
  char* next_;
  struct {
    void* data = nullptr;
    DataType type = DataType::undefined;
  } outs_[kOutputs];
};

/// A kernel written once, as compute<T>(), for float and double: input 0 says which of them runs. 16-bit floats are
/// computed in float (see FloatIo); other types are refused.
template <class Derived>
class FloatKernel : public Kernel {
 public:
  explicit FloatKernel(const NodeInfo& info) {
    if (!is_float(info.in_type(0))) info.refuse(Code::not_implemented, "type ", info.in_type(0));
  }
  void run(const RunContext& c) const final {
    const auto& kernel = static_cast<const Derived&>(*this);
    if (c.in(0).type == DataType::float64)
      kernel.template compute<double>(c);
    else
      kernel.template compute<float>(c);
  }
};

}  // namespace epona
