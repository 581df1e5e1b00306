#include "base/nearest.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace epona {

size_t edit_distance(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t best = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (lower(a[i - 1]) != lower(b[j - 1]))});
      diagonal = row[j];
      row[j] = best;
    }
  }
  return row.back();
}

std::string nearest(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view best;
  size_t least = 0;
  for (std::string_view candidate : candidates) {
    size_t away = edit_distance(word, candidate);
    if (best.empty() || away < least) {
      best = candidate;
      least = away;
    }
  }
  // Further away than half of the longer word it is a guess, not a slip of the pen.
  return 2 * least <= std::max(word.size(), best.size()) ? std::string(best) : std::string();
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  std::string near = nearest(word, candidates);
  return near.empty() ? near : " Did you mean '" + near + "'?";
}

}  // namespace epona
