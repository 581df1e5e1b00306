#include "model/wire.h"

#include <charconv>

namespace epona {
namespace {

// Protobuf wire format: https://protobuf.dev/programming-guides/encoding/ ; field numbers from onnx.proto.
enum class Message { model, graph, node, attribute, tensor, function, training, sparse };

struct Reader {
  const std::byte* at;
  const std::byte* end;
  bool failed = false;

  bool done() const { return at >= end || failed; }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at >= end) break;
      auto byte = static_cast<uint8_t>(*at++);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return value;
    }
    failed = true;
    return 0;
  }
  std::span<const std::byte> take(uint64_t count) {
    if (count > static_cast<uint64_t>(end - at)) {
      failed = true;
      return {};
    }
    std::span<const std::byte> bytes(at, static_cast<size_t>(count));
    at += count;
    return bytes;
  }
};

void put_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void put_bytes(std::string& out, uint64_t tag, std::string_view bytes) {
  put_varint(out, tag);
  put_varint(out, bytes.size());
  out.append(bytes);
}

/// The message type of a length-delimited field that may hold tensors, if any.
std::optional<Message> child(Message parent, uint64_t field) {
  switch (parent) {
    case Message::model:
      if (field == 7) return Message::graph;
      if (field == 25) return Message::function;
      if (field == 20) return Message::training;
      break;
    case Message::training:
      if (field == 1 || field == 2) return Message::graph;
      break;
    case Message::function:
      if (field == 7) return Message::node;
      break;
    case Message::graph:
      if (field == 1) return Message::node;
      if (field == 5) return Message::tensor;
      if (field == 15) return Message::sparse;
      break;
    case Message::node:
      if (field == 5) return Message::attribute;
      break;
    case Message::attribute:
      if (field == 5 || field == 10) return Message::tensor;
      if (field == 6 || field == 11) return Message::graph;
      if (field == 22 || field == 23) return Message::sparse;
      break;
    case Message::sparse:
      if (field == 1 || field == 2) return Message::tensor;
      break;
    case Message::tensor:
      break;
  }
  return std::nullopt;
}

constexpr uint64_t kRawData = 9, kTensorDoc = 12;
constexpr int kMaxDepth = 100;  // protobuf's own recursion limit

bool copy(Message type, std::span<const std::byte> in, std::string& out, Skeleton& skeleton, int depth) {
  if (depth > kMaxDepth) return false;
  Reader reader{in.data(), in.data() + in.size()};
  while (!reader.done()) {
    const std::byte* start = reader.at;
    uint64_t tag = reader.varint();
    uint64_t field = tag >> 3;
    if (field == 0) return false;
    switch (tag & 7) {
      case 0:
        reader.varint();
        break;
      case 1:
        reader.take(8);
        break;
      case 5:
        reader.take(4);
        break;
      case 2: {
        auto body = reader.take(reader.varint());
        if (reader.failed) return false;
        if (type == Message::tensor && field == kTensorDoc) continue;
        if (type == Message::tensor && field == kRawData && body.size() > kBlobThreshold) {
          put_bytes(out, kTensorDoc << 3 | 2, "blob:" + std::to_string(skeleton.blobs.size()));
          skeleton.blobs.push_back(body);
          continue;
        }
        if (auto inner = child(type, field)) {
          std::string nested;
          if (!copy(*inner, body, nested, skeleton, depth + 1)) return false;
          put_bytes(out, tag, nested);
          continue;
        }
        break;
      }
      default:
        return false;  // groups are not used by ONNX
    }
    if (reader.failed) return false;
    out.append(reinterpret_cast<const char*>(start), static_cast<size_t>(reader.at - start));
  }
  return !reader.failed;
}

}  // namespace

std::optional<Skeleton> make_skeleton(std::span<const std::byte> model) {
  Skeleton skeleton;
  if (!copy(Message::model, model, skeleton.bytes, skeleton, 0)) return std::nullopt;
  return skeleton;
}

int64_t blob_index(const std::string& doc_string) {
  if (!doc_string.starts_with("blob:")) return -1;
  int64_t index = -1;
  auto [end, error] = std::from_chars(doc_string.data() + 5, doc_string.data() + doc_string.size(), index);
  return error == std::errc() && end == doc_string.data() + doc_string.size() ? index : -1;
}

}  // namespace epona
