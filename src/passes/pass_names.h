#pragma once
#include <string>
#include <string_view>

namespace epona {

/// The pass that a name means: its own, or that of the optimizer of onnxruntime which does the same. Empty when there is
/// none.
std::string find_pass(std::string_view name);

/// What to tell who asked for a pass that is not there, with the nearest name.
std::string unknown_pass(std::string_view name);

}  // namespace epona
