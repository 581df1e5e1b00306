#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace epona {

/// Levenshtein's distance: how many insertions, deletions and replacements of a character lead from a to b, ignoring case.
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that is most like `word` by edit distance, ignoring case; empty when none is near enough to be meant.
std::string nearest(std::string_view word, std::span<const std::string_view> candidates);

/// " Did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace epona
