#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "graph/tensor.h"

namespace epona {

/// One dimension of a declared type: a number, or a symbol (empty: unknown).
struct Dim {
  int64_t value = -1;
  std::string symbol;
  bool known() const { return value >= 0; }
};

/// The declared or inferred type of a value.
struct Type {
  enum class Kind : uint8_t { unknown, tensor, sequence, optional, map, sparse };
  Kind kind = Kind::unknown;
  DataType elem = DataType::undefined;    ///< tensor, sparse; the key type of a map
  std::optional<std::vector<Dim>> shape;  ///< tensor: absent means unknown rank
  std::shared_ptr<const Type> inner;      ///< element of a sequence or optional, value of a map

  static Type tensor(DataType elem) {
    Type type;
    type.kind = Kind::tensor;
    type.elem = elem;
    return type;
  }
  static Type tensor(DataType elem, const Shape& dims);
  bool is_tensor() const { return kind == Kind::tensor; }
  /// The dims as numbers when all are known.
  std::optional<Shape> static_shape() const;
  /// "tensor(float)", "seq(tensor(int64))", "map(string,tensor(float))", ...
  std::string to_string() const;
};

class Graph;
using ValueId = int32_t;
using NodeId = int32_t;
constexpr int32_t kNone = -1;  ///< an absent optional input or output, or no producer

/// An attribute of a node. Subgraphs are owned by it.
using Attribute =
    std::variant<int64_t, float, std::string, Tensor, std::shared_ptr<Graph>, std::vector<int64_t>, std::vector<float>,
                 std::vector<std::string>, std::vector<Tensor>, std::vector<std::shared_ptr<Graph>>>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

/// A value (an edge) of the graph.
struct Value {
  std::string name;  ///< unique in its graph
  Type type;
  NodeId producer = kNone;  ///< the node that writes it; none for inputs, captures and constants
  int producer_slot = 0;
  Tensor constant;          ///< set for initialisers and folded values
  bool is_input = false;    ///< a graph input (an initialiser that is also listed as an input may be overridden)
  bool is_capture = false;  ///< comes from the enclosing graph
};

/// An operator applied to values.
struct Node {
  std::string name;
  std::string op;
  std::string domain;             ///< "" for ai.onnx; "epona" for operators made by passes
  int opset = 1;                  ///< the version of the domain that the model imports
  std::vector<ValueId> inputs;    ///< kNone where an optional input is absent
  std::vector<ValueId> outputs;   ///< kNone where an output is not wanted
  std::vector<ValueId> captures;  ///< values of this graph that the node's subgraphs read
  Attributes attributes;
  bool removed = false;  ///< erased by a pass; compact() drops it

  bool is(std::string_view op_name, std::string_view op_domain = "") const {
    return op == op_name && domain == op_domain;
  }
};

/// A computation: plain data with indices. Nodes are kept in topological order by sort().
class Graph {
 public:
  std::string name;
  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<ValueId> inputs;  ///< in declared order; without initialisers unless they are listed as inputs
  std::vector<ValueId> outputs;
  /// For a subgraph: its values that stand for the enclosing node's `captures`, as {index in captures, value here}.
  std::vector<std::pair<int, ValueId>> captured;
  std::map<std::string, int, std::less<>> opsets;  ///< domain -> version

  ValueId add_value(std::string name, Type type = {});
  /// A name not yet taken in this graph, starting with `stem`.
  std::string unique_name(std::string_view stem);
  ValueId add_constant(std::string name, Tensor tensor);
  /// Appends a node and sets its outputs' producers. Call sort() when its place is not at the end.
  NodeId add_node(Node node);
  ValueId find(std::string_view value_name) const;  ///< kNone when there is none

  const Tensor* constant(ValueId id) const {  ///< nullptr when not constant or overridable by a feed
    return id != kNone && values[id].constant && !values[id].is_input ? &values[id].constant : nullptr;
  }
  bool is_output(ValueId id) const;
  /// Nodes that read a value (also through captures), in order.
  std::vector<std::vector<NodeId>> consumers() const;
  /// Makes every reader of `from` (nodes, captures, graph outputs) read `to`.
  void replace_uses(ValueId from, ValueId to);
  void remove_node(NodeId id);
  /// Orders nodes topologically (stable); throws invalid_graph naming the nodes of a cycle.
  void sort();
  /// Drops removed nodes and renumbers.
  void compact();

  template <class T>
  const T* attribute(const Node& node, std::string_view key) const {
    auto it = node.attributes.find(key);
    return it == node.attributes.end() ? nullptr : std::get_if<T>(&it->second);
  }

 private:
  std::map<std::string, ValueId, std::less<>> names_;
};

/// Calls fn(graph) for a node's subgraphs.
template <class Fn>
void for_each_subgraph(const Node& node, Fn&& fn) {
  for (auto& [key, attribute] : node.attributes) {
    if (auto* one = std::get_if<std::shared_ptr<Graph>>(&attribute)) fn(**one);
    if (auto* many = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute))
      for (auto& graph : *many) fn(*graph);
  }
}

/// How a node is called in messages: "Conv node 'conv1'".
std::string describe(const Node& node);

/// Checks indices, producers and order. Throws invalid_graph saying what is broken (used after every pass).
void verify(const Graph& graph);

/// ONNX-like text, for --dump and debugging.
std::string to_text(const Graph& graph);

}  // namespace epona
