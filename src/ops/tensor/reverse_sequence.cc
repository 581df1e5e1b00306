#include "kernels/strided_copy.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// ReverseSequence: the first sequence_lens[b] steps of each batch in reverse order, the rest as it is.
class ReverseSequence final : public Kernel {
 public:
  explicit ReverseSequence(const NodeInfo& info)
      : time_(info.attr("time_axis", 0)), batch_(info.attr("batch_axis", 1)) {
    if (time_ + batch_ != 1 || time_ * batch_ != 0)
      info.refuse(Code::invalid_graph, "time_axis and batch_axis must be 0 and 1 or 1 and 0, found ", time_, " and ",
                  batch_);
  }
  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    if (in.rank() < 2 || c.in(1).rank() != 1 || c.in(1)[0] != in[static_cast<int>(batch_)])
      c.refuse("sequence_lens of shape ", c.in(1), " does not fit input of shape ", in);
    c.out(0, in);
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    Tensor& out = c.out(0);
    const int64_t* lengths = c.data<int64_t>(1);
    int64_t steps = in.shape[static_cast<int>(time_)], batches = in.shape[static_cast<int>(batch_)];
    int64_t inner = in.shape.size(2, in.shape.rank());
    int64_t time_stride = time_ == 0 ? batches * inner : inner, batch_stride = time_ == 0 ? inner : steps * inner;
    for (int64_t b = 0; b < batches; ++b) {
      int64_t length = lengths[b];
      if (length < 0 || length > steps) c.refuse("sequence length ", length, " is out of range [0,", steps, "]");
      for (int64_t t = 0; t < steps; ++t) {
        int64_t from = t < length ? length - 1 - t : t;
        copy_elements(in.type, inner, in.data, from * time_stride + b * batch_stride, out.data,
                      t * time_stride + b * batch_stride);
      }
    }
  }

 private:
  int64_t time_, batch_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(reverse_sequence) { r.add({.name = "ReverseSequence", .since = 10, .make = make_kernel<ReverseSequence>}); }
