#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace epona {

/// A regular expression of RE2's syntax. All states are followed at once, so the time is
/// linear in the text whatever the pattern. Works on code points. Not there: \p{..} classes (refused), captures (parsed
/// and ignored).
class Regex {
 public:
  /// Throws Error(invalid_argument) saying what is wrong with the pattern and where.
  explicit Regex(std::string_view pattern);
  bool full_match(std::string_view text) const;
  /// The first match at or after `from`, the longest one there, as begin and end.
  std::optional<std::pair<size_t, size_t>> find(std::string_view text, size_t from) const;

 private:
  friend class RegexParser;
  struct Range {
    uint32_t low, high;
  };
  struct State {
    enum class Kind : uint8_t {
      range_set,
      split,
      jump,
      begin_text,
      end_text,
      begin_line,
      end_line,
      word,
      not_word,
      match
    };
    Kind kind;
    int next = 0, other = 0;      ///< where to go; `other` for split
    std::vector<Range> ranges{};  ///< of range_set
  };
  struct Position {
    bool at_begin, at_end, after_newline, before_newline, between_words;
  };
  static Position position(std::string_view text, size_t at);
  /// Where the longest match that begins at `from` ends; npos when there is none.
  size_t longest(std::string_view text, size_t from) const;
  void add(int state, const Position& position, std::vector<int>& list, std::vector<char>& seen) const;

  /// A table over ASCII for patterns without assertions: row of transitions a set of states. Small patterns only.
  struct Row {
    int16_t next[128];  ///< a row; kDead
    bool accepts;
  };
  static constexpr int16_t kDead = -1;
  void build_table();
  size_t longest_by_table(std::string_view text, size_t from, bool& ascii) const;

  std::vector<State> states_;
  int start_ = 0;
  std::vector<Row> table_;  ///< empty: follow the states
};

/// A letter, digit or underscore of ASCII: what \w, \b and [[:word:]] mean.
inline bool is_word_code(uint32_t code) {
  return (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || code == '_';
}

}  // namespace epona
