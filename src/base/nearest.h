#pragma once
#include <span>
#include <string>
#include <string_view>

namespace epona {

/// The candidate that is most like `word` by edit distance, ignoring case; empty when none is near enough to be meant.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

/// " Did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace epona
