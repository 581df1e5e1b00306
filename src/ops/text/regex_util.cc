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

bool Regex::full_match(std::string_view text) const {
  std::vector<int> now, next;
  std::vector<char> seen(states_.size());
  uint32_t before = 0;
  bool begin = true;
  auto position = [&](std::string_view rest) {
    uint32_t after = 0;
    if (!rest.empty()) {
      std::string_view copy = rest;
      after = next_code_point(copy);
    }
    bool word_before = !begin && is_word_code(before), word_after = !rest.empty() && is_word_code(after);
    return Position{begin, rest.empty(), begin || before == '\n', rest.empty() || after == '\n',
                    word_before != word_after};
  };
  add(start_, position(text), now, seen);
  while (!text.empty() && !now.empty()) {
    uint32_t code = next_code_point(text);
    before = code;
    begin = false;
    Position here = position(text);
    next.clear();
    std::fill(seen.begin(), seen.end(), 0);
    for (int at : now) {
      const State& s = states_[static_cast<size_t>(at)];
      if (s.kind != State::Kind::range_set) continue;
      bool inside =
          std::any_of(s.ranges.begin(), s.ranges.end(), [&](Range r) { return r.low <= code && code <= r.high; });
      if (inside) add(s.next, here, next, seen);
    }
    now.swap(next);
  }
  if (!text.empty()) return false;
  return std::any_of(now.begin(), now.end(),
                     [&](int at) { return states_[static_cast<size_t>(at)].kind == State::Kind::match; });
}

}  // namespace epona
