#include <algorithm>
#include <limits>
#include <vector>

#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// Boxes as corners, field by field: the compare of one box with many is then a plain vector loop.
struct Boxes {
  std::vector<float> x1, y1, x2, y2, area;
  void resize(size_t n) {
    for (auto* field : {&x1, &y1, &x2, &y2, &area}) field->resize(n);
  }
  void set(size_t i, const Boxes& from, size_t j) {
    x1[i] = from.x1[j], y1[i] = from.y1[j], x2[i] = from.x2[j], y2[i] = from.y2[j], area[i] = from.area[j];
  }
};

/// Whether box i overlaps one of the first n of `kept` by more than the threshold (intersection over union).
bool overlaps(const Boxes& boxes, size_t i, const Boxes& kept, size_t n, float threshold) {
  constexpr size_t kBlock = 64;
  float x1 = boxes.x1[i], y1 = boxes.y1[i], x2 = boxes.x2[i], y2 = boxes.y2[i], area = boxes.area[i];
  for (size_t begin = 0; begin < n; begin += kBlock) {
    int hits = 0;
    for (size_t k = begin, end = std::min(n, begin + kBlock); k < end; ++k) {
      float w = std::max(0.0f, std::min(x2, kept.x2[k]) - std::max(x1, kept.x1[k]));
      float h = std::max(0.0f, std::min(y2, kept.y2[k]) - std::max(y1, kept.y1[k]));
      float both = w * h, either = area + kept.area[k] - both;
      // both / either > threshold without the division; boxes without area overlap nothing.
      hits += static_cast<int>((both > threshold * either) & (both > 0));
    }
    if (hits) return true;
  }
  return false;
}

/// NonMaxSuppression: for each batch and class the boxes by falling score, without those that overlap a better one.
class NonMaxSuppression final : public Kernel {
 public:
  explicit NonMaxSuppression(const NodeInfo& info) : centers_(info.attr("center_point_box", 0) != 0) {}
  void shapes(ShapeContext&) const override {}
  void run(const RunContext& c) const override {
    const Shape &boxes = c.in(0).shape, &scores = c.in(1).shape;
    if (boxes.rank() != 3 || scores.rank() != 3 || boxes[2] != 4 || boxes[0] != scores[0] || boxes[1] != scores[2])
      c.refuse("boxes of shape ", boxes, " (wanted [batch, boxes, 4]) do not fit scores of shape ", scores,
               " (wanted [batch, classes, boxes])");
    int64_t batches = scores[0], classes = scores[1], count = scores[2];
    int64_t most = c.has(2) ? one_int(c, c.in(2), "max_output_boxes_per_class") : 0;
    float overlap = number(c, 3, 0), least = number(c, 4, -std::numeric_limits<float>::infinity());
    if (!(overlap >= 0 && overlap <= 1)) c.refuse("iou_threshold ", overlap, " is out of range [0,1]");
    std::vector<Boxes> corners(static_cast<size_t>(batches));
    std::vector<std::vector<int64_t>> chosen(static_cast<size_t>(batches * classes));
    if (most > 0 && count > 0) {
      for (int64_t b = 0; b < batches; ++b)
        read_boxes(c.data<float>(0) + b * count * 4, static_cast<size_t>(count), corners[static_cast<size_t>(b)]);
      c.pool().parallel_for(batches * classes, static_cast<double>(count) * 10, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          choose(c.data<float>(1) + i * count, corners[static_cast<size_t>(i / classes)], most, overlap, least,
                 chosen[static_cast<size_t>(i)]);
      });
    }
    int64_t total = 0;
    for (auto& list : chosen) total += static_cast<int64_t>(list.size());
    int64_t* out = c.allocate(0, {total, 3}, DataType::int64).as<int64_t>();
    for (int64_t i = 0; i < batches * classes; ++i)
      for (int64_t box : chosen[static_cast<size_t>(i)]) *out++ = i / classes, *out++ = i % classes, *out++ = box;
  }

 private:
  static float number(const RunContext& c, int input, float otherwise) {
    if (!c.has(input)) return otherwise;
    if (c.in(input).size() != 1) c.refuse("input ", input, " must be one number, found shape ", c.in(input).shape);
    return *c.data<float>(input);
  }
  void read_boxes(const float* from, size_t n, Boxes& boxes) const {
    boxes.resize(n);
    for (size_t i = 0; i < n; ++i, from += 4) {
      if (centers_) {  // x, y, width, height
        float w = from[2] / 2, h = from[3] / 2;
        boxes.x1[i] = from[0] - w, boxes.x2[i] = from[0] + w;
        boxes.y1[i] = from[1] - h, boxes.y2[i] = from[1] + h;
      } else {  // any two opposite corners: y, x, y, x
        boxes.x1[i] = std::min(from[1], from[3]), boxes.x2[i] = std::max(from[1], from[3]);
        boxes.y1[i] = std::min(from[0], from[2]), boxes.y2[i] = std::max(from[0], from[2]);
      }
      boxes.area[i] = (boxes.x2[i] - boxes.x1[i]) * (boxes.y2[i] - boxes.y1[i]);
    }
  }
  static void choose(const float* scores, const Boxes& boxes, int64_t most, float overlap, float least,
                     std::vector<int64_t>& chosen) {
    std::vector<std::pair<float, int64_t>> order;
    for (size_t i = 0; i < boxes.x1.size(); ++i)
      if (scores[i] > least) order.emplace_back(-scores[i], static_cast<int64_t>(i));
    std::sort(order.begin(), order.end());
    Boxes kept;
    for (auto& [score, box] : order) {
      if (static_cast<int64_t>(chosen.size()) == most) return;
      size_t n = chosen.size(), i = static_cast<size_t>(box);
      if (overlaps(boxes, i, kept, n, overlap)) continue;
      if (n == kept.x1.size()) kept.resize(std::max<size_t>(64, 2 * n));
      kept.set(n, boxes, i);
      chosen.push_back(box);
    }
  }

  bool centers_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(non_max_suppression) {
  r.add({.name = "NonMaxSuppression", .since = 10, .make = make_kernel<NonMaxSuppression>, .dynamic = true});
}
