#include "graph/graph.h"

#include <algorithm>

namespace epona {

Type Type::tensor(DataType elem, const Shape& dims) {
  Type type = tensor(elem);
  type.shape.emplace();
  for (int64_t dim : dims) type.shape->push_back({dim, ""});
  return type;
}

std::optional<Shape> Type::static_shape() const {
  if (!is_tensor() || !shape) return std::nullopt;
  Shape dims;
  for (const Dim& dim : *shape) {
    if (!dim.known()) return std::nullopt;
    dims.push_back(dim.value);
  }
  return dims;
}

std::string Type::to_string() const {
  switch (kind) {
    case Kind::unknown:
      return "unknown";
    case Kind::tensor:
      return cat("tensor(", elem, ")");
    case Kind::sparse:
      return cat("sparse_tensor(", elem, ")");
    case Kind::sequence:
      return cat("seq(", inner ? inner->to_string() : "unknown", ")");
    case Kind::optional:
      return cat("optional(", inner ? inner->to_string() : "unknown", ")");
    case Kind::map:
      return cat("map(", elem, ",", inner ? inner->to_string() : "unknown", ")");
  }
  return "unknown";
}

ValueId Graph::add_value(std::string value_name, Type type) {
  ValueId id = static_cast<ValueId>(values.size());
  names_[value_name] = id;
  Value value;
  value.name = std::move(value_name);
  value.type = std::move(type);
  values.push_back(std::move(value));
  return id;
}

std::string Graph::unique_name(std::string_view stem) {
  std::string candidate(stem);
  for (int i = 1; names_.contains(candidate); ++i) candidate = cat(stem, "_", i);
  return candidate;
}

ValueId Graph::add_constant(std::string value_name, Tensor tensor) {
  Type type = Type::tensor(tensor.type, tensor.shape);
  if (names_.contains(value_name)) value_name = unique_name(value_name);
  ValueId id = add_value(std::move(value_name), std::move(type));
  values[id].constant = std::move(tensor);
  return id;
}

NodeId Graph::add_node(Node node) {
  NodeId id = static_cast<NodeId>(nodes.size());
  for (size_t slot = 0; slot < node.outputs.size(); ++slot) {
    if (node.outputs[slot] == kNone) continue;
    Value& value = values[node.outputs[slot]];
    value.producer = id;
    value.producer_slot = static_cast<int>(slot);
  }
  nodes.push_back(std::move(node));
  return id;
}

ValueId Graph::find(std::string_view value_name) const {
  auto it = names_.find(value_name);
  return it == names_.end() ? kNone : it->second;
}

bool Graph::is_output(ValueId id) const { return std::find(outputs.begin(), outputs.end(), id) != outputs.end(); }

std::vector<std::vector<NodeId>> Graph::consumers() const {
  std::vector<std::vector<NodeId>> readers(values.size());
  for (NodeId id = 0; id < static_cast<NodeId>(nodes.size()); ++id) {
    const Node& node = nodes[id];
    if (node.removed) continue;
    for (const auto* list : {&node.inputs, &node.captures})
      for (ValueId value : *list)
        if (value != kNone && (readers[value].empty() || readers[value].back() != id)) readers[value].push_back(id);
  }
  return readers;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (Node& node : nodes) {
    if (node.removed) continue;
    std::replace(node.inputs.begin(), node.inputs.end(), from, to);
    std::replace(node.captures.begin(), node.captures.end(), from, to);
  }
  std::replace(outputs.begin(), outputs.end(), from, to);
}

void Graph::remove_node(NodeId id) {
  Node& node = nodes[id];
  node.removed = true;
  for (ValueId output : node.outputs)
    if (output != kNone && values[output].producer == id) values[output].producer = kNone;
  node.inputs.clear();
  node.outputs.clear();
  node.captures.clear();
  node.attributes.clear();
}

void Graph::sort() {
  const size_t count = nodes.size();
  std::vector<int> waiting(count, 0);
  auto readers = consumers();
  for (NodeId id = 0; id < static_cast<NodeId>(count); ++id)
    for (ValueId output : nodes[id].outputs)
      if (output != kNone)
        for (NodeId reader : readers[output]) ++waiting[reader];
  // Ready nodes are taken in their old order: a heap of indices keeps the sort stable.
  std::vector<NodeId> ready, order;
  auto later = std::greater<NodeId>();
  for (NodeId id = 0; id < static_cast<NodeId>(count); ++id)
    if (waiting[id] == 0) ready.push_back(id);
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    NodeId id = ready.back();
    ready.pop_back();
    order.push_back(id);
    for (ValueId output : nodes[id].outputs) {
      if (output == kNone) continue;
      for (NodeId reader : readers[output])
        if (--waiting[reader] == 0) {
          ready.push_back(reader);
          std::push_heap(ready.begin(), ready.end(), later);
        }
    }
  }
  if (order.size() != count) {
    std::string stuck;
    int listed = 0;
    for (size_t id = 0; id < count && listed < 5; ++id)
      if (waiting[id] > 0) stuck += cat(listed++ ? ", " : "", describe(nodes[id]));
    fail(Code::fail,
         "This is an invalid model. Error: the graph is not acyclic. Nodes on or behind the cycle: ", stuck);
  }
  std::vector<Node> sorted;
  sorted.reserve(count);
  for (NodeId id : order) sorted.push_back(std::move(nodes[id]));
  nodes = std::move(sorted);
  for (NodeId id = 0; id < static_cast<NodeId>(count); ++id)
    for (ValueId output : nodes[id].outputs)
      if (output != kNone) values[output].producer = id;
}

void Graph::compact() {
  std::erase_if(nodes, [](const Node& node) { return node.removed; });
  // Values keep their numbers only while somebody may name them: drop those that nothing refers to.
  std::vector<char> used(values.size(), 0);
  auto mark = [&](const std::vector<ValueId>& list) {
    for (ValueId id : list)
      if (id != kNone) used[id] = 1;
  };
  for (const Node& node : nodes) {
    mark(node.inputs);
    mark(node.outputs);
    mark(node.captures);
  }
  mark(inputs);
  mark(outputs);
  for (auto& [slot, id] : captured) used[id] = 1;
  std::vector<ValueId> renumbered(values.size(), kNone);
  std::vector<Value> kept;
  for (size_t id = 0; id < values.size(); ++id) {
    if (!used[id]) continue;
    renumbered[id] = static_cast<ValueId>(kept.size());
    kept.push_back(std::move(values[id]));
  }
  values = std::move(kept);
  auto rename = [&](std::vector<ValueId>& list) {
    for (ValueId& id : list)
      if (id != kNone) id = renumbered[id];
  };
  for (size_t id = 0; id < values.size(); ++id) values[id].producer = kNone;
  for (size_t n = 0; n < nodes.size(); ++n) {
    rename(nodes[n].inputs);
    rename(nodes[n].outputs);
    rename(nodes[n].captures);
    for (size_t slot = 0; slot < nodes[n].outputs.size(); ++slot)
      if (ValueId id = nodes[n].outputs[slot]; id != kNone) {
        values[id].producer = static_cast<NodeId>(n);
        values[id].producer_slot = static_cast<int>(slot);
      }
  }
  rename(inputs);
  rename(outputs);
  for (auto& [slot, id] : captured) id = renumbered[id];
  names_.clear();
  for (size_t id = 0; id < values.size(); ++id) names_[values[id].name] = static_cast<ValueId>(id);
}

std::string describe(const Node& node) {
  return cat(node.domain.empty() || node.domain == "ai.onnx" ? "" : node.domain + ":", node.op, " node '", node.name,
             "'");
}

}  // namespace epona
