#include <fstream>
#include <iterator>

#include "providers/openvino/config.h"

namespace epona::openvino {
namespace {

/// Reads the JSON that load_config has: objects of objects of plain values.
class Reader {
 public:
  Reader(std::string text, const std::string& path) : text_(std::move(text)), path_(path) {}

  std::vector<Property> read() {
    std::vector<Property> properties;
    object([&](const std::string& device) {
      object([&](const std::string& key) { properties.push_back({device, key, value()}); });
    });
    skip();
    if (at_ != text_.size()) wrong("the end");
    return properties;
  }

 private:
  [[noreturn]] void wrong(const char* expected) const {
    size_t line = 1 + static_cast<size_t>(std::count(text_.begin(), text_.begin() + static_cast<long>(at_), '\n'));
    fail(Code::invalid_argument, "OpenVINOExecutionProvider: load_config file ", path_, ", line ", line, ": expected ",
         expected);
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  template <class Fn>
  void object(Fn&& item) {
    if (!take('{')) wrong("an object of devices with objects of properties");
    if (take('}')) return;
    do {
      std::string key = string();
      if (!take(':')) wrong("':'");
      item(key);
    } while (take(','));
    if (!take('}')) wrong("',' or '}'");
  }
  std::string string() {
    if (!take('"')) wrong("text in quotes");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      out += text_[at_++];
    }
    if (!take('"')) wrong("the closing quote");
    return out;
  }
  std::string value() {
    skip();
    if (at_ < text_.size() && text_[at_] == '"') return string();
    size_t from = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' ||
                                  text_[at_] == '-' || text_[at_] == '+'))
      ++at_;
    if (from == at_) wrong("text, a number, true or false");
    std::string word = text_.substr(from, at_ - from);
    if (word == "true") return "YES";
    if (word == "false") return "NO";
    return word;
  }

  std::string text_;
  const std::string& path_;
  size_t at_ = 0;
};

}  // namespace

std::vector<Property> parse_config_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(Code::invalid_argument, "OpenVINOExecutionProvider: cannot open the load_config file ", path);
  return Reader(std::string(std::istreambuf_iterator<char>(file), {}), path).read();
}

}  // namespace epona::openvino
