#include "case_file.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/error.h"
#include "ops/convert.h"

namespace epona::test {
namespace {

/// Reads a VALUE from text.
class ValueReader {
 public:
  explicit ValueReader(std::string_view text) : text_(text) {}

  RuntimeValue read() {
    RuntimeValue value = value_of();
    skip();
    if (at_ != text_.size()) fail(Code::invalid_argument, "text after the value: '", text_.substr(at_), "'");
    return value;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail(Code::invalid_argument, "expected '", c, "' at '", text_.substr(at_), "'");
  }
  std::string_view word() {
    skip();
    size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    return text_.substr(start, at_ - start);
  }

  RuntimeValue value_of() {
    std::string_view type = word();
    if (type == "none") return {};
    if (type == "seq") {
      expect('(');
      std::vector<RuntimeValue> items;
      DataType element = DataType::undefined;
      if (!take(')')) {
        do items.push_back(value_of());
        while (take(','));
        expect(')');
        element = items[0].tensor.type;
      }
      return RuntimeValue::sequence(element, std::move(items));
    }
    if (type == "map") {
      expect('(');
      MapValue map;
      map.keys = value_of().tensor;
      expect(',');
      map.values = value_of().tensor;
      expect(')');
      return RuntimeValue::of_map(std::move(map));
    }
    DataType elem = type_from_name(type);
    if (elem == DataType::undefined) fail(Code::invalid_argument, "unknown type '", type, "'");
    return tensor_of(elem);
  }

  Tensor tensor_of(DataType type) {
    Shape shape;
    if (take('[')) {
      while (!take(']')) {
        std::string_view dim = word();
        int64_t size = 0;
        std::from_chars(dim.data(), dim.data() + dim.size(), size);
        shape.push_back(size);
        take(',');
      }
    }
    skip();
    Tensor tensor = Tensor::allocate(type, shape);
    if (text_.substr(at_, 3) == "any") {
      at_ += 3;
      tensor.data = nullptr;
      return tensor;
    }
    std::vector<std::string> items = elements();
    if (static_cast<int64_t>(items.size()) != tensor.size())
      fail(Code::invalid_argument, items.size(), " elements for shape ", shape);
    if (type == DataType::boolean)
      for (std::string& item : items) item = item == "true" ? "1" : item == "false" ? "0" : item;
    convert_elements(DataType::string, items.data(), type, tensor.data, 0, tensor.size(), {.saturate = false});
    return tensor;
  }

  std::vector<std::string> elements() {
    std::vector<std::string> items;
    expect('{');
    while (!take('}')) {
      skip();
      if (at_ >= text_.size()) fail(Code::invalid_argument, "missing '}'");
      std::string item = text_[at_] == '"' ? quoted() : plain();
      int64_t times = 1;
      if (take('*')) {
        std::string_view count = word();
        std::from_chars(count.data(), count.data() + count.size(), times);
      }
      items.insert(items.end(), static_cast<size_t>(times), item);
      take(',');
    }
    return items;
  }

  std::string plain() {
    size_t start = at_;
    while (at_ < text_.size() && !std::strchr(",}* \t\n", text_[at_])) ++at_;
    if (at_ == start) fail(Code::invalid_argument, "expected an element at '", text_.substr(at_), "'");
    return std::string(text_.substr(start, at_ - start));
  }

  std::string quoted() {
    std::string item;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        char c = text_[++at_];
        item += c == 'n' ? '\n' : c == 't' ? '\t' : c == '0' ? '\0' : c;
      } else {
        item += text_[at_];
      }
    }
    expect('"');
    return item;
  }

  std::string_view text_;
  size_t at_ = 0;
};

void strip_comment(std::string& line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
    if (line[i] == '#' && !quoted) {
      line.resize(i);
      return;
    }
  }
}

std::string trimmed(const std::string& text) {
  size_t first = text.find_first_not_of(" \t\r\n"), last = text.find_last_not_of(" \t\r\n");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::pair<std::string, RuntimeValue> binding(const std::string& text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos) fail(Code::invalid_argument, "expected NAME = VALUE");
  return {trimmed(text.substr(0, equals)), ValueReader(std::string_view(text).substr(equals + 1)).read()};
}

std::vector<std::string> words(const std::string& text) {
  std::vector<std::string> list;
  for (size_t i = 0; i < text.size();) {
    size_t end = text.find(' ', i);
    if (end == std::string::npos) end = text.size();
    if (end > i) list.push_back(text.substr(i, end - i));
    i = end + 1;
  }
  return list;
}

void apply(Case& c, const std::string& key, const std::string& rest) {
  if (key == "model") {
    c.model = rest;
  } else if (key == "feed") {
    c.feeds.push_back(binding(rest));
  } else if (key == "want") {
    c.wants.push_back(binding(rest));
  } else if (key == "tolerance") {
    c.tolerance = std::strtod(rest.c_str(), nullptr);
  } else if (key == "fails") {
    c.fails = rest.size() >= 2 && rest.front() == '"' ? rest.substr(1, rest.size() - 2) : rest;
    if (c.fails.empty()) fail(Code::invalid_argument, "fails needs a part of the message");
  } else if (key == "keep") {
    c.keep = true;
  } else if (key == "becomes") {
    c.becomes = words(rest);
  }
}

bool is_key(const std::string& word) {
  static constexpr std::string_view kKeys[] = {"case",      "model", "feed", "want",
                                               "tolerance", "fails", "keep", "becomes"};
  return std::find(std::begin(kKeys), std::end(kKeys), word) != std::end(kKeys);
}

}  // namespace

bool is_any(const Tensor& tensor) { return tensor.data == nullptr && tensor.owner != nullptr; }

std::vector<Case> read_cases(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(Code::no_such_file, "cannot read ", path);
  std::vector<Case> cases;
  std::string line, key, text;
  int number = 0, start = 0;
  auto flush = [&] {
    if (key.empty()) return;
    try {
      if (key == "case") {
        Case c;
        c.file = path;
        c.name = trimmed(text);
        c.line = start;
        cases.push_back(std::move(c));
      } else if (cases.empty()) {
        fail(Code::invalid_argument, "'", key, "' before the first case");
      } else {
        apply(cases.back(), key, trimmed(text));
      }
    } catch (const Error& e) {
      fail(e.code(), path, ":", start, ": ", e.what());
    }
    key.clear();
  };
  while (std::getline(file, line)) {
    ++number;
    strip_comment(line);
    std::string body = trimmed(line);
    if (body.empty()) continue;
    std::string first = body.substr(0, body.find_first_of(" \t"));
    if (is_key(first)) {
      flush();
      key = first;
      text = body.substr(first.size());
      start = number;
    } else if (key.empty()) {
      fail(Code::invalid_argument, path, ":", number, ": unknown key '", first, "'");
    } else {
      text += "\n" + body;
    }
  }
  flush();
  return cases;
}

}  // namespace epona::test
