#include "providers/gpu/cuda_options.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace epona {
namespace {

using enum OptionType;

// What both have, after their own.
constexpr OptionSpec kShared[] = {
    {"gpu_mem_limit", integer, "9223372036854775807", "1..",
     "most bytes of GPU memory for the provider: weights, values and scratch together", true},
    {"arena_extend_strategy", choice, "kNextPowerOfTwo", "kNextPowerOfTwo|kSameAsRequested",
     "how much more memory is taken when more is needed: rounded up to a power of two, or exactly that"},
    {"do_copy_in_default_stream", boolean, "1", "", "copy on the compute stream; 0 uses streams of their own"},
    {"has_user_compute_stream", boolean, "0", "", "user_compute_stream is set (follows from it)"},
    {"tunable_op_enable", boolean, "0", "", "use tuned variants of operators"},
    {"tunable_op_tuning_enable", boolean, "0", "", "tune variants while running"},
    {"tunable_op_max_tuning_duration_ms", integer, "0", "0..",
     "longest time for tuning one operator, in ms; 0: no limit"},
    {"gpu_external_alloc", integer, "0", "0..", "address of a function void*(size_t) that allocates GPU memory"},
    {"gpu_external_free", integer, "0", "0..", "address of a function void(void*) that frees it"},
    {"gpu_external_empty_cache", integer, "0", "0..", "address of a function void() that returns cached memory"},
};

template <size_t N>
constexpr auto with_shared(const OptionSpec (&own)[N]) {
  std::array<OptionSpec, N + std::size(kShared)> all{};
  std::copy(std::begin(kShared), std::end(kShared), std::copy(std::begin(own), std::end(own), all.begin()));
  return all;
}

constexpr OptionSpec kCudaOwn[] = {
    {"device_id", integer, "0", "0..1023", "the GPU to use, numbered as the driver does (CUDA_VISIBLE_DEVICES applies)",
     true},
    {"cudnn_conv_algo_search", choice, "EXHAUSTIVE", "EXHAUSTIVE|HEURISTIC|DEFAULT",
     "how a convolution's algorithm is chosen: by timing all, by cuDNN's guess, or always the implicit GEMM"},
    {"cudnn_conv_use_max_workspace", boolean, "1", "",
     "let the search use as much scratch memory as any algorithm wants"},
    {"cudnn_conv1d_pad_to_nc1d", boolean, "0", "", "treat a 1-D convolution as [N,C,1,D] rather than [N,C,D,1]"},
    {"user_compute_stream", integer, "0", "0..", "address of a cudaStream_t to run on; its owner keeps it alive"},
    {"enable_cuda_graph", boolean, "0", "",
     "capture a run as a CUDA graph and replay it; needs fixed shapes and IO binding"},
    {"use_tf32", boolean, "1", "", "allow TensorFloat-32 in float products and convolutions"},
    {"prefer_nhwc", boolean, "0", "", "run convolutions in the NHWC layout"},
    {"fuse_conv_bias", boolean, "0", "", "fuse bias and activation into convolutions"},
    {"sdpa_kernel", integer, "0", "0..1023",
     "bit mask of attention kernels that may be used; 0 lets the provider choose"},
    {"enable_skip_layer_norm_strict_mode", boolean, "0", "", "compute SkipLayerNormalization in float throughout"},
    {"use_ep_level_unified_stream", boolean, "0", "", "one stream for the whole provider"},
};

constexpr OptionSpec kRocmOwn[] = {
    {"device_id", integer, "0", "0..1023", "the GPU to use, numbered as HIP does (HIP_VISIBLE_DEVICES applies)", true},
    {"miopen_conv_exhaustive_search", boolean, "0", "", "choose a convolution's algorithm by timing all"},
    {"miopen_conv_use_max_workspace", boolean, "1", "",
     "let the search use as much scratch memory as any algorithm wants"},
    {"user_compute_stream", integer, "0", "0..", "address of a hipStream_t to run on; its owner keeps it alive"},
    {"enable_hip_graph", boolean, "0", "",
     "capture a run as a HIP graph and replay it; needs fixed shapes and IO binding"},
};

constexpr auto kCuda = with_shared(kCudaOwn);
constexpr auto kRocm = with_shared(kRocmOwn);

}  // namespace

OptionSchema cuda_options() { return kCuda; }
OptionSchema rocm_options() { return kRocm; }

}  // namespace epona
