#pragma once
#include <filesystem>

#include "graph/tensor.h"

namespace epona::cli {

// NumPy's .npy format, versions 1.0 to 3.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

/// Reads a file; Fortran order and big-endian files are converted. Throws Error naming the file.
Tensor read_npy(const std::filesystem::path& path);

/// Writes a tensor. bfloat16 and 8-bit floats are written as unsigned integers of their size; strings as fixed-width
/// unicode ('<U'); other types as themselves.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace epona::cli
