#include "run/separate.h"

#include <algorithm>
#include <set>
#include <vector>

namespace epona {
namespace {

bool has_elements(const Tensor& tensor) { return tensor.data && tensor.size() > 0; }

void list_memory(const RuntimeValue& value, std::vector<const void*>& list) {
  if (value.kind == RuntimeValue::Kind::tensor && has_elements(value.tensor)) list.push_back(value.tensor.data);
  if (value.kind == RuntimeValue::Kind::sequence && value.items)
    for (const RuntimeValue& item : *value.items) list_memory(item, list);
}

void separate(RuntimeValue& value, std::set<const void*>& taken) {
  if (value.kind == RuntimeValue::Kind::tensor && has_elements(value.tensor)) {
    if (!taken.insert(value.tensor.data).second) {
      value.tensor = value.tensor.clone();
      taken.insert(value.tensor.data);
    }
  } else if (value.kind == RuntimeValue::Kind::sequence && value.items) {
    std::vector<RuntimeValue> items = *value.items;
    for (RuntimeValue& item : items) separate(item, taken);
    value.items = std::make_shared<const std::vector<RuntimeValue>>(std::move(items));
  }
}

bool shares(std::span<const RuntimeValue> results) {
  constexpr size_t kFew = 64;
  auto is_tensor = [](const RuntimeValue& result) { return result.kind == RuntimeValue::Kind::tensor; };
  if (results.size() <= kFew && std::all_of(results.begin(), results.end(), is_tensor)) {
    for (size_t i = 1; i < results.size(); ++i)
      for (size_t j = 0; j < i && has_elements(results[i].tensor); ++j)
        if (results[j].tensor.data == results[i].tensor.data && has_elements(results[j].tensor)) return true;
    return false;
  }
  std::vector<const void*> list;
  list.reserve(results.size());
  for (const RuntimeValue& result : results) list_memory(result, list);
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) != list.end();
}

}  // namespace

void separate_memory(std::span<RuntimeValue> results, std::span<const void* const> given) {
  if (!shares(results)) return;
  auto is_given = [&](size_t i) { return given[i] && results[i].tensor.data == given[i]; };
  std::set<const void*> taken;
  for (size_t i = 0; i < results.size(); ++i)
    if (is_given(i)) taken.insert(given[i]);
  for (size_t i = 0; i < results.size(); ++i)
    if (!is_given(i)) separate(results[i], taken);
}

}  // namespace epona
