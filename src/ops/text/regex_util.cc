#include "ops/text/regex_util.h"

#include <algorithm>

#include "ops/text/utf8_util.h"

namespace epona {

void Regex::add(int state, const Position& position, std::vector<int>& list, std::vector<char>& seen) const {
  std::vector<int> todo{state};
  while (!todo.empty()) {
    int at = todo.back();
    todo.pop_back();
    if (seen[static_cast<size_t>(at)]) continue;
    seen[static_cast<size_t>(at)] = 1;
    const State& s = states_[static_cast<size_t>(at)];
    bool go = true;
    switch (s.kind) {
      case State::Kind::range_set:
      case State::Kind::match:
        list.push_back(at);
        continue;
      case State::Kind::split:
        todo.push_back(s.other);
        break;
      case State::Kind::jump:
        break;
      case State::Kind::begin_text:
        go = position.at_begin;
        break;
      case State::Kind::end_text:
        go = position.at_end;
        break;
      case State::Kind::begin_line:
        go = position.after_newline;
        break;
      case State::Kind::end_line:
        go = position.before_newline;
        break;
      case State::Kind::word:
        go = position.between_words;
        break;
      case State::Kind::not_word:
        go = !position.between_words;
        break;
    }
    if (go) todo.push_back(s.next);
  }
}

Regex::Position Regex::position(std::string_view text, size_t at) {
  std::string_view rest = text.substr(at);
  bool begin = at == 0, end = rest.empty();
  uint32_t after = end ? 0 : next_code_point(rest);
  // Words and line ends are ASCII: the byte before is enough.
  uint32_t before = begin ? 0 : static_cast<unsigned char>(text[at - 1]);
  bool word_before = !begin && is_word_code(before), word_after = !end && is_word_code(after);
  return {begin, end, begin || before == '\n', end || after == '\n', word_before != word_after};
}

void Regex::build_table() {
  constexpr size_t kMostRows = 64;
  for (const State& s : states_)
    if (s.kind >= State::Kind::begin_text && s.kind <= State::Kind::not_word) return;
  std::vector<std::vector<int>> sets;
  std::vector<char> seen(states_.size());
  const Position nowhere{};
  auto row_of = [&](std::vector<int> set) -> int16_t {
    if (set.empty()) return kDead;
    std::sort(set.begin(), set.end());
    auto found = std::find(sets.begin(), sets.end(), set);
    if (found == sets.end()) found = sets.insert(sets.end(), std::move(set));
    return static_cast<int16_t>(found - sets.begin());
  };
  std::vector<int> list;
  add(start_, nowhere, list, seen);
  row_of(list);
  std::vector<Row> table;
  for (size_t row = 0; row < sets.size(); ++row) {
    if (sets.size() > kMostRows) return;
    table.emplace_back();
    table[row].accepts = std::any_of(sets[row].begin(), sets[row].end(), [&](int state) {
      return states_[static_cast<size_t>(state)].kind == State::Kind::match;
    });
    for (uint32_t code = 0; code < 128; ++code) {
      list.clear();
      std::fill(seen.begin(), seen.end(), 0);
      for (int state : sets[row]) {
        const State& s = states_[static_cast<size_t>(state)];
        if (s.kind != State::Kind::range_set) continue;
        if (std::any_of(s.ranges.begin(), s.ranges.end(), [&](Range r) { return r.low <= code && code <= r.high; }))
          add(s.next, nowhere, list, seen);
      }
      table[row].next[code] = row_of(list);
    }
  }
  table_ = std::move(table);
}

/// `ascii` becomes false, and the result void, when the match meets a byte that the table does not know.
size_t Regex::longest_by_table(std::string_view text, size_t from, bool& ascii) const {
  size_t end = std::string_view::npos;
  int row = 0;
  for (size_t at = from;; ++at) {
    if (table_[static_cast<size_t>(row)].accepts) end = at;
    if (at == text.size()) return end;
    unsigned char byte = static_cast<unsigned char>(text[at]);
    if (byte >= 128) {
      ascii = false;
      return end;
    }
    row = table_[static_cast<size_t>(row)].next[byte];
    if (row == kDead) return end;
  }
}

size_t Regex::longest(std::string_view text, size_t from) const {
  if (!table_.empty()) {
    bool ascii = true;
    size_t found = longest_by_table(text, from, ascii);
    if (ascii) return found;
  }
  std::vector<int> now, next;
  std::vector<char> seen(states_.size());
  size_t at = from, end = std::string_view::npos;
  add(start_, position(text, at), now, seen);
  for (;;) {
    for (int state : now)
      if (states_[static_cast<size_t>(state)].kind == State::Kind::match) end = at;
    if (at == text.size() || now.empty()) return end;
    std::string_view rest = text.substr(at);
    uint32_t code = next_code_point(rest);
    at = text.size() - rest.size();
    Position here = position(text, at);
    next.clear();
    std::fill(seen.begin(), seen.end(), 0);
    for (int state : now) {
      const State& s = states_[static_cast<size_t>(state)];
      if (s.kind != State::Kind::range_set) continue;
      bool inside =
          std::any_of(s.ranges.begin(), s.ranges.end(), [&](Range r) { return r.low <= code && code <= r.high; });
      if (inside) add(s.next, here, next, seen);
    }
    now.swap(next);
  }
}

// The longest match reaches the end exactly when some match does.
bool Regex::full_match(std::string_view text) const { return longest(text, 0) == text.size(); }

std::optional<std::pair<size_t, size_t>> Regex::find(std::string_view text, size_t from) const {
  while (from <= text.size()) {
    size_t end = longest(text, from);
    if (end != std::string_view::npos) return std::pair(from, end);
    if (from == text.size()) break;
    std::string_view rest = text.substr(from);
    next_code_point(rest);
    from = text.size() - rest.size();
  }
  return std::nullopt;
}

}  // namespace epona
