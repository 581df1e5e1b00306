#include "providers/openvino/claim_record.h"

#include <algorithm>
#include <cstring>

namespace epona::openvino {
namespace {

class Writer {
 public:
  void number(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void text(const std::string& value) {
    number(static_cast<int64_t>(value.size()));
    bytes_ += value;
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  int64_t number() {
    int64_t value = 0;
    std::span<const std::byte> raw = take(sizeof(value));
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof(value));
    return value;
  }
  int64_t number(int64_t limit) {
    int64_t value = number();
    ok_ &= value >= 0 && value < limit;
    return ok_ ? value : 0;
  }
  std::string text() {
    std::span<const std::byte> raw = take(static_cast<size_t>(number(static_cast<int64_t>(left_.size()) + 1)));
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && left_.empty(); }
  size_t left() const { return left_.size(); }

 private:
  std::span<const std::byte> take(size_t count) {
    ok_ &= count <= left_.size();
    if (!ok_) return {};
    auto taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }

  std::span<const std::byte> left_;
  bool ok_ = true;
};

std::vector<NodeId> present(const Graph& graph) {
  std::vector<NodeId> ids;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
    if (!graph.nodes[id].removed) ids.push_back(id);
  return ids;
}

}  // namespace

std::string write_claim(const ClaimRecord& record, const Graph& graph) {
  std::vector<NodeId> ids = present(graph);
  auto place = [&](NodeId id) { return std::lower_bound(ids.begin(), ids.end(), id) - ids.begin(); };
  Writer out;
  for (int element : record.abilities.element) out.number(element);
  out.number(record.abilities.weights_by_address);
  out.number(static_cast<int64_t>(record.claim.groups.size()));
  for (auto& group : record.claim.groups) {
    out.number(static_cast<int64_t>(group.size()));
    for (NodeId id : group) out.number(place(id));
  }
  out.number(static_cast<int64_t>(record.claim.refused.size()));
  for (auto& [id, refusal] : record.claim.refused) {
    out.number(place(id));
    out.number(static_cast<int64_t>(refusal.reason));
    out.text(refusal.text);
  }
  return out.take();
}

std::optional<ClaimRecord> read_claim(std::span<const std::byte> bytes, const Graph& graph) {
  std::vector<NodeId> ids = present(graph);
  auto count = static_cast<int64_t>(ids.size());
  Reader in(bytes);
  ClaimRecord record;
  for (int& element : record.abilities.element) element = static_cast<int>(in.number());
  record.abilities.weights_by_address = in.number() != 0;
  int64_t groups = in.number(count + 1);
  for (int64_t g = 0; g < groups && in.ok(); ++g) {
    auto& group = record.claim.groups.emplace_back();
    int64_t size = in.number(count + 1);
    for (int64_t i = 0; i < size && in.ok(); ++i) {
      int64_t place = in.number(count);
      if (in.ok()) group.push_back(ids[static_cast<size_t>(place)]);
    }
  }
  int64_t refused = in.number(count + 1);
  for (int64_t r = 0; r < refused && in.ok(); ++r) {
    int64_t place = in.number(count);
    auto reason = static_cast<Reason>(in.number(static_cast<int64_t>(Reason::better_on_cpu) + 1));
    std::string text = in.text();
    if (in.ok()) record.claim.refused[ids[static_cast<size_t>(place)]] = {reason, std::move(text)};
  }
  if (!in.done()) return std::nullopt;
  return record;
}

}  // namespace epona::openvino
