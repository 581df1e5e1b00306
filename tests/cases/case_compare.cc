#include <cmath>

#include "case_file.h"
#include "ops/convert.h"

namespace epona::test {
namespace {

double default_tolerance(DataType type) {
  switch (type) {
    case DataType::float16:
      return 1e-3;
    case DataType::bfloat16:
      return 8e-3;
    case DataType::float32:
      return 1e-5;
    case DataType::float64:
      return 1e-7;
    default:
      return 0;
  }
}

std::string text_of(const Tensor& tensor, int64_t i) {
  if (tensor.type == DataType::string) return "\"" + tensor.as<std::string>()[i] + "\"";
  int64_t from = i / 4 * 4;
  std::string text[4];
  convert_elements(tensor.type,
                   static_cast<char*>(tensor.data) + static_cast<size_t>(from) * type_bits(tensor.type) / 8,
                   DataType::string, text, 0, i - from + 1);
  return text[i - from];
}

std::string compare_tensors(const Tensor& wanted, const Tensor& found, double tolerance) {
  if (found.type != wanted.type) return cat("expected type ", wanted.type, ", found ", found.type);
  if (!(found.shape == wanted.shape)) return cat("expected shape ", wanted.shape, ", found ", found.shape);
  const int64_t n = wanted.size();
  if (is_any(wanted)) return "";
  auto differs = [&](int64_t i) {
    return cat("element ", i, ": expected ", text_of(wanted, i), ", found ", text_of(found, i));
  };
  if (wanted.type == DataType::string || (!is_float(wanted.type) && !is_small_float(wanted.type))) {
    for (int64_t i = 0; i < n; ++i)
      if (text_of(wanted, i) != text_of(found, i)) return differs(i);
    return "";
  }
  std::vector<double> a(static_cast<size_t>(n)), b(a.size());
  convert_elements(wanted.type, wanted.data, DataType::float64, a.data(), 0, n);
  convert_elements(found.type, found.data, DataType::float64, b.data(), 0, n);
  double largest = 0;
  for (double value : a)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  const double allowed = (tolerance >= 0 ? tolerance : default_tolerance(wanted.type)) * largest;
  for (int64_t i = 0; i < n; ++i) {
    double x = a[static_cast<size_t>(i)], y = b[static_cast<size_t>(i)];
    bool same = std::isnan(x) ? std::isnan(y) : std::isinf(x) ? x == y : std::abs(x - y) <= allowed;
    if (!same) return differs(i);
  }
  return "";
}

const char* kind_name(RuntimeValue::Kind kind) {
  constexpr const char* kNames[] = {"none", "tensor", "sequence", "map"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace

std::string compare(const RuntimeValue& wanted, const RuntimeValue& found, double tolerance) {
  if (wanted.kind != found.kind) return cat("expected a ", kind_name(wanted.kind), ", found a ", kind_name(found.kind));
  switch (wanted.kind) {
    case RuntimeValue::Kind::none:
      return "";
    case RuntimeValue::Kind::tensor:
      return compare_tensors(wanted.tensor, found.tensor, tolerance);
    case RuntimeValue::Kind::map: {
      std::string keys = compare_tensors(wanted.map->keys, found.map->keys, 0);
      return keys.empty() ? compare_tensors(wanted.map->values, found.map->values, tolerance) : "keys: " + keys;
    }
    case RuntimeValue::Kind::sequence: {
      size_t count = found.items ? found.items->size() : 0;
      if (count != wanted.items->size()) return cat("expected ", wanted.items->size(), " items, found ", count);
      for (size_t i = 0; i < count; ++i)
        if (auto text = compare((*wanted.items)[i], (*found.items)[i], tolerance); !text.empty())
          return cat("item ", i, ": ", text);
      return "";
    }
  }
  return "";
}

}  // namespace epona::test
