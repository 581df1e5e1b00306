#include "graph/graph.h"

namespace epona {
namespace {

void print_dims(std::ostream& out, const Type& type) {
  out << (type.is_tensor() ? type_name(type.elem) : type.to_string());
  if (!type.is_tensor() || !type.shape) return;
  out << '[';
  for (size_t i = 0; i < type.shape->size(); ++i) {
    const Dim& dim = (*type.shape)[i];
    out << (i ? "," : "");
    if (dim.known())
      out << dim.value;
    else
      out << (dim.symbol.empty() ? "?" : dim.symbol);
  }
  out << ']';
}

template <class T>
void print_list(std::ostream& out, const std::vector<T>& list) {
  out << '[';
  for (size_t i = 0; i < list.size(); ++i) out << (i ? ", " : "") << list[i];
  out << ']';
}

void print_attribute(std::ostream& out, const Attribute& attribute) {
  std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, float>)
          out << value;
        else if constexpr (std::is_same_v<T, std::string>)
          out << '"' << value << '"';
        else if constexpr (std::is_same_v<T, Tensor>)
          out << value.type << value.shape;
        else if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<float>> ||
                           std::is_same_v<T, std::vector<std::string>>)
          print_list(out, value);
        else if constexpr (std::is_same_v<T, std::shared_ptr<Graph>>)
          out << "{ " << to_text(*value) << " }";
        else
          out << "[" << value.size() << " items]";
      },
      attribute);
}

void print_values(std::ostream& out, const Graph& graph, const std::vector<ValueId>& list) {
  for (size_t i = 0; i < list.size(); ++i)
    out << (i ? ", " : "") << (list[i] == kNone ? std::string("\"\"") : graph.values[list[i]].name);
}

void print_typed(std::ostream& out, const Graph& graph, const std::vector<ValueId>& list) {
  for (size_t i = 0; i < list.size(); ++i) {
    out << (i ? ", " : "");
    print_dims(out, graph.values[list[i]].type);
    out << ' ' << graph.values[list[i]].name;
  }
}

}  // namespace

std::string to_text(const Graph& graph) {
  std::ostringstream out;
  out << graph.name << " (";
  print_typed(out, graph, graph.inputs);
  out << ") => (";
  print_typed(out, graph, graph.outputs);
  out << ")\n{\n";
  for (const Node& node : graph.nodes) {
    if (node.removed) continue;
    out << "  ";
    print_values(out, graph, node.outputs);
    out << " = " << (node.domain.empty() ? "" : node.domain + ".") << node.op;
    if (!node.attributes.empty()) {
      out << " <";
      bool first = true;
      for (auto& [key, attribute] : node.attributes) {
        out << (first ? "" : ", ") << key << " = ";
        print_attribute(out, attribute);
        first = false;
      }
      out << '>';
    }
    out << " (";
    print_values(out, graph, node.inputs);
    out << ")\n";
  }
  out << "}";
  return out.str();
}

}  // namespace epona
