#include "ops/text/regex_util.h"

#include <algorithm>

#include "base/error.h"
#include "ops/text/utf8_util.h"

namespace epona {
namespace {

constexpr uint32_t kLast = 0x10ffff;
constexpr int kMaxStates = 200000;  // a{1000}{1000} must not eat all memory
constexpr int kMaxRepeat = 1000;    // as RE2

}  // namespace

/// Recursive descent over the pattern; builds states from the back: each part is told which state follows it.
class RegexParser {
 public:
  RegexParser(std::string_view pattern, Regex& regex) : whole_(pattern), rest_(pattern), regex_(regex) {}

  void parse() {
    Node root = alternatives(0);
    if (!rest_.empty()) wrong("unexpected ')'");
    int match = emit({State::Kind::match});
    regex_.start_ = compile(root, match);
  }

 private:
  using State = Regex::State;
  using Range = Regex::Range;
  using Ranges = std::vector<Range>;

  struct Node {
    enum class Kind { empty, set, assertion, sequence, alternatives, repeat } kind = Kind::empty;
    Ranges ranges;
    State::Kind assertion{};
    std::vector<Node> children;
    int least = 0, most = 0;  ///< repeat; most < 0: no limit
  };

  [[noreturn]] void wrong(const char* what) const {
    fail(Code::invalid_argument, "pattern '", whole_, "': ", what, " at position ", whole_.size() - rest_.size());
  }
  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  Node alternatives(int depth) {
    if (depth > 200) wrong("groups are nested too deeply");
    Node node;
    node.kind = Node::Kind::alternatives;
    do {
      node.children.push_back(sequence(depth));
    } while (take("|"));
    return node;
  }
  Node sequence(int depth) {
    Node node;
    node.kind = Node::Kind::sequence;
    while (!rest_.empty() && rest_[0] != '|' && rest_[0] != ')') {
      Node part = atom(depth);
      if (repeats(part) && repeats(part)) wrong("bad repetition");
      node.children.push_back(std::move(part));
    }
    return node;
  }
  /// Wraps `part` when a repetition follows.
  bool repeats(Node& part) {
    int least, most;
    std::string_view before = rest_;
    if (take("*")) {
      least = 0, most = -1;
    } else if (take("+")) {
      least = 1, most = -1;
    } else if (take("?")) {
      least = 0, most = 1;
    } else if (!counted(least, most)) {
      rest_ = before;
      return false;
    }
    take("?");  // lazy: a full match is the same
    Node node;
    node.kind = Node::Kind::repeat;
    node.least = least, node.most = most;
    node.children.push_back(std::move(part));
    part = std::move(node);
    return true;
  }
  bool counted(int& least, int& most) {
    if (!take("{") || !number(least)) return false;
    most = least;
    if (take(",") && !number(most)) most = -1;
    if (!take("}")) return false;
    if (most >= 0 && most < least) wrong("bad repetition");
    return true;
  }
  bool number(int& value) {
    if (rest_.empty() || rest_[0] < '0' || rest_[0] > '9') return false;
    for (value = 0; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; rest_.remove_prefix(1)) {
      value = value * 10 + (rest_[0] - '0');
      if (value > kMaxRepeat) wrong("a repetition of more than 1000");
    }
    return true;
  }

  Node atom(int depth) {
    if (take("(")) return group(depth);
    if (take("[")) return set(bracket());
    if (take(".")) return set(dot_all_ ? Ranges{{0, kLast}} : Ranges{{0, '\n' - 1}, {'\n' + 1, kLast}});
    if (take("^")) return assertion(multi_line_ ? State::Kind::begin_line : State::Kind::begin_text);
    if (take("$")) return assertion(multi_line_ ? State::Kind::end_line : State::Kind::end_text);
    if (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?') wrong("nothing to repeat");
    if (take("\\")) return escape();
    return literal(next_code_point(rest_));
  }
  Node group(int depth) {
    bool fold = fold_, dot_all = dot_all_, multi_line = multi_line_;
    bool only_flags = false;
    if (take("?")) {
      if (take("P<") || take("<")) {
        size_t end = rest_.find('>');
        if (end == std::string_view::npos) wrong("a group's name without end");
        rest_.remove_prefix(end + 1);
      } else {
        only_flags = flags();
      }
    }
    if (only_flags) return {};  // they stay on until the enclosing group ends
    Node node = alternatives(depth + 1);
    if (!take(")")) wrong("missing ')'");
    fold_ = fold, dot_all_ = dot_all, multi_line_ = multi_line;
    return node;
  }
  /// (?flags) or (?flags:  ; true for the first.
  bool flags() {
    for (bool on = true; !rest_.empty();) {
      char c = rest_[0];
      rest_.remove_prefix(1);
      switch (c) {
        case 'i':
          fold_ = on;
          break;
        case 's':
          dot_all_ = on;
          break;
        case 'm':
          multi_line_ = on;
          break;
        case 'U':
          break;
        case '-':
          on = false;
          break;
        case ':':
          return false;
        case ')':
          return true;
        default:
          wrong("unknown flag");
      }
    }
    wrong("missing ')'");
  }

  Node escape() {
    if (rest_.empty()) wrong("a '\\' at the end");
    switch (rest_[0]) {
      case 'b':
        rest_.remove_prefix(1);
        return assertion(State::Kind::word);
      case 'B':
        rest_.remove_prefix(1);
        return assertion(State::Kind::not_word);
      case 'A':
        rest_.remove_prefix(1);
        return assertion(State::Kind::begin_text);
      case 'z':
        rest_.remove_prefix(1);
        return assertion(State::Kind::end_text);
      case 'C':
        rest_.remove_prefix(1);
        return set({{0, kLast}});
      case 'Q':
        return quoted();
      default:
        break;
    }
    Ranges ranges;
    if (perl_class(ranges)) return set(ranges);
    return literal(escaped_code());
  }
  Node quoted() {
    rest_.remove_prefix(1);
    Node node;
    node.kind = Node::Kind::sequence;
    while (!rest_.empty() && !take("\\E")) node.children.push_back(literal(next_code_point(rest_)));
    return node;
  }
  /// \d \w \s and their complements.
  bool perl_class(Ranges& ranges) {
    Ranges found;
    switch (rest_[0]) {
      case 'd':
      case 'D':
        found = {{'0', '9'}};
        break;
      case 'w':
      case 'W':
        found = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
        break;
      case 's':
      case 'S':
        found = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
        break;
      default:
        return false;
    }
    if (rest_[0] < 'a') found = complement(found);
    rest_.remove_prefix(1);
    ranges.insert(ranges.end(), found.begin(), found.end());
    return true;
  }
  uint32_t escaped_code() {
    uint32_t code = next_code_point(rest_);
    switch (code) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case 'a':
        return '\a';
      case 'x':
        return hexadecimal();
      default:
        break;
    }
    if (code == '0') {
      uint32_t value = 0;
      for (int i = 0; i < 2 && !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '7'; ++i, rest_.remove_prefix(1))
        value = value * 8 + static_cast<uint32_t>(rest_[0] - '0');
      return value;
    }
    if (code < 0x80 && is_word_code(code)) wrong("an escape that is not supported");
    return code;
  }
  uint32_t hexadecimal() {
    bool braces = take("{");
    uint32_t value = 0;
    int digits = 0;
    while (!rest_.empty() && digits < (braces ? 6 : 2)) {
      char c = rest_[0];
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
      if (digit < 0) break;
      value = value * 16 + static_cast<uint32_t>(digit);
      ++digits;
      rest_.remove_prefix(1);
    }
    if (digits == 0 || (braces ? !take("}") : digits != 2) || value > kLast) wrong("a bad hexadecimal escape");
    return value;
  }

  Ranges bracket() {
    bool negated = take("^");
    Ranges ranges;
    for (bool first = true; first || !take("]"); first = false) {
      if (rest_.empty()) wrong("missing ']'");
      if (posix_class(ranges)) continue;
      if (rest_[0] == '\\' && rest_.size() > 1) {
        std::string_view before = rest_;
        rest_.remove_prefix(1);
        if (perl_class(ranges)) continue;
        rest_ = before;
      }
      uint32_t low = bracket_code(), high = low;
      if (rest_.size() > 1 && rest_[0] == '-' && rest_[1] != ']') {
        rest_.remove_prefix(1);
        high = bracket_code();
        if (high < low) wrong("a range that ends before it begins");
      }
      add_range(ranges, low, high);
    }
    return negated ? complement(ranges) : ranges;
  }
  uint32_t bracket_code() {
    if (rest_.empty()) wrong("missing ']'");
    return take("\\") ? (rest_.empty() ? static_cast<uint32_t>(0) : escaped_code()) : next_code_point(rest_);
  }
  bool posix_class(Ranges& ranges) {
    if (!rest_.starts_with("[:")) return false;
    size_t end = rest_.find(":]");
    if (end == std::string_view::npos) return false;
    std::string_view name = rest_.substr(2, end - 2);
    bool negated = name.starts_with("^");
    if (negated) name.remove_prefix(1);
    static const std::pair<std::string_view, Ranges> kClasses[] = {
        {"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
        {"alpha", {{'A', 'Z'}, {'a', 'z'}}},
        {"ascii", {{0, 127}}},
        {"blank", {{'\t', '\t'}, {' ', ' '}}},
        {"cntrl", {{0, 31}, {127, 127}}},
        {"digit", {{'0', '9'}}},
        {"graph", {{'!', '~'}}},
        {"lower", {{'a', 'z'}}},
        {"print", {{' ', '~'}}},
        {"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
        {"space", {{'\t', '\r'}, {' ', ' '}}},
        {"upper", {{'A', 'Z'}}},
        {"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
        {"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
    for (auto& [known, list] : kClasses) {
      if (name != known) continue;
      rest_.remove_prefix(end + 2);
      Ranges found = negated ? complement(list) : list;
      for (Range range : found) add_range(ranges, range.low, range.high);
      return true;
    }
    wrong("an unknown class");
  }

  void add_range(Ranges& ranges, uint32_t low, uint32_t high) const {
    ranges.push_back({low, high});
    if (!fold_) return;
    // Letters of the other case; beyond Latin, Greek and Cyrillic ranges are left as they are.
    for (uint32_t code = low; code <= std::min<uint32_t>(high, 0x24ff); ++code)
      for (uint32_t other : {to_lower(code), to_upper(code)})
        if (other != code) ranges.push_back({other, other});
  }
  static Ranges complement(Ranges ranges) {
    std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.low < b.low; });
    Ranges out;
    uint32_t next = 0;
    for (Range range : ranges) {
      if (range.low > next) out.push_back({next, range.low - 1});
      next = std::max(next, range.high + 1);
    }
    if (next <= kLast) out.push_back({next, kLast});
    return out;
  }

  Node literal(uint32_t code) {
    Ranges ranges;
    add_range(ranges, code, code);
    return set(ranges);
  }
  static Node set(Ranges ranges) {
    Node node;
    node.kind = Node::Kind::set;
    node.ranges = std::move(ranges);
    return node;
  }
  static Node assertion(State::Kind kind) {
    Node node;
    node.kind = Node::Kind::assertion;
    node.assertion = kind;
    return node;
  }

  int emit(State state) {
    if (regex_.states_.size() >= static_cast<size_t>(kMaxStates)) wrong("the pattern is too large");
    regex_.states_.push_back(std::move(state));
    return static_cast<int>(regex_.states_.size()) - 1;
  }
  /// Builds the states of a node that continues at `next`; returns the first.
  int compile(const Node& node, int next) {
    switch (node.kind) {
      case Node::Kind::empty:
        return next;
      case Node::Kind::set:
        return emit({State::Kind::range_set, next, 0, node.ranges});
      case Node::Kind::assertion:
        return emit({node.assertion, next});
      case Node::Kind::sequence:
        for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) next = compile(*child, next);
        return next;
      case Node::Kind::alternatives: {
        int first = compile(node.children.back(), next);
        for (size_t i = node.children.size() - 1; i-- > 0;)
          first = emit({State::Kind::split, compile(node.children[i], next), first});
        return first;
      }
      case Node::Kind::repeat:
        break;
    }
    const Node& child = node.children[0];
    if (node.most < 0) {
      int loop = emit({State::Kind::split, 0, next});
      int body = compile(child, loop);
      regex_.states_[static_cast<size_t>(loop)].next = body;
      next = loop;
    } else {
      int end = next;
      for (int i = node.least; i < node.most; ++i) next = emit({State::Kind::split, compile(child, next), end});
    }
    for (int i = 0; i < node.least; ++i) next = compile(child, next);
    return next;
  }

  std::string_view whole_, rest_;
  Regex& regex_;
  bool fold_ = false, dot_all_ = false, multi_line_ = false;
};

Regex::Regex(std::string_view pattern) {
  RegexParser(pattern, *this).parse();
  build_table();
}

}  // namespace epona
