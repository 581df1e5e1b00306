#pragma once
#include "kernels/conv.h"

namespace epona {

enum class ConvAlgorithm { direct, winograd2, winograd4 };

/// The fastest algorithm for an undilated 3x3 convolution of stride 1 in NCHW16c by a model of the arithmetic and of
/// the weights that have to be streamed; `direct` for every other. An output size of 0 is not known: then large images
/// are assumed, because that is where the choice matters.
ConvAlgorithm choose_conv_algorithm(const ConvParams& params, int64_t out_h, int64_t out_w);

}  // namespace epona
