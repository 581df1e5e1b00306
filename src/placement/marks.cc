#include "placement/marks.h"

#include <charconv>

namespace epona {

void mark_node(Node& node, const std::vector<int>& providers) {
  std::string mark = "@";
  for (int provider : providers) mark += std::to_string(provider) + (provider == providers.back() ? "" : ",");
  node.domain = mark + "/" + node.domain;
}

bool is_marked(const Node& node) { return node.domain.starts_with('@'); }

std::vector<int> unmark_node(Node& node) {
  std::vector<int> providers;
  if (!is_marked(node)) return providers;
  size_t end = node.domain.find('/');
  for (const char* at = node.domain.data() + 1; at < node.domain.data() + end;) {
    int provider = 0;
    at = std::from_chars(at, node.domain.data() + end, provider).ptr + 1;
    providers.push_back(provider);
  }
  node.domain.erase(0, end + 1);
  return providers;
}

}  // namespace epona
