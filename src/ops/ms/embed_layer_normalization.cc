#include <cmath>
#include <cstring>

#include "ops/float_io.h"
#include "ops/nn/rows.h"
#include "ops/registry.h"

namespace epona {
namespace {

enum Input { kIds, kSegmentIds, kWords, kPositions, kSegments, kGamma, kBeta, kMask, kPositionIds };

/// EmbedLayerNormalization: word, position and segment embeddings added up and normalised; output 1 counts the ones of
/// every row of the mask.
class EmbedLayerNorm final : public Kernel {
 public:
  explicit EmbedLayerNorm(const NodeInfo& info) : epsilon_(info.attr("epsilon", 1e-12f)) {
    const DataType type = info.in_type(kWords);
    if (!is_float(type) || type == DataType::float64) info.refuse(Code::not_implemented, "type ", type);
  }

  void shapes(ShapeContext& c) const override {
    const Shape &ids = c.in(kIds), &words = c.in(kWords);
    if (ids.rank() != 2 || words.rank() != 2 || words[1] == 0) c.refuse("ids ", ids, " or word embeddings ", words);
    const int64_t hidden = words[1];
    auto table = [&](int i) {
      if (c.has(i) && (c.in(i).rank() != 2 || c.in(i)[1] != hidden))
        c.refuse("input ", i, " has shape ", c.in(i), "; expected {..., ", hidden, "}");
    };
    table(kPositions);
    table(kSegments);
    if (c.has(kSegmentIds) && (c.in(kSegmentIds) != ids || !c.has(kSegments)))
      c.refuse("segment_ids ", c.in(kSegmentIds), " do not fit");
    for (int i : {kGamma, kBeta})
      if (c.in(i).size() != hidden) c.refuse("input ", i, " has shape ", c.in(i), "; expected {", hidden, "}");
    if (c.has(kMask) && c.in(kMask) != ids) c.refuse("mask has shape ", c.in(kMask), "; expected ", ids);
    if (c.has(kPositionIds) && c.in(kPositionIds) != ids && c.in(kPositionIds) != Shape{1, ids[1]})
      c.refuse("position_ids has shape ", c.in(kPositionIds), "; expected ", ids);
    const Shape y{ids[0], ids[1], hidden};
    c.workspace(FloatIo::bytes(c, {y, Shape{0}, y}));
    c.out(0, y);
    c.out(1, {ids[0]});
    c.out(2, y);
  }

  void run(const RunContext& c) const override {
    FloatIo io(c, 0);
    const int32_t *ids = c.data<int32_t>(kIds), *segment_ids = c.data<int32_t>(kSegmentIds);
    const int32_t *mask = c.data<int32_t>(kMask), *position_ids = c.data<int32_t>(kPositionIds);
    const float *words = io.in<float>(kWords), *positions = io.in<float>(kPositions);
    const float *segments = io.in<float>(kSegments), *gamma = io.in<float>(kGamma), *beta = io.in<float>(kBeta);
    float *y = io.out<float>(0), *sum_out = io.out<float>(2);
    int32_t* mask_index = c.out_data<int32_t>(1);
    const int64_t batch = c.in(kIds).shape[0], length = c.in(kIds).shape[1], n = c.in(kWords).shape[1];
    const bool one_row = position_ids && c.in(kPositionIds).shape[0] == 1;
    auto row_of = [&](int input, const float* table, int64_t at) {
      if (at < 0 || at >= c.in(input).shape[0])
        c.refuse("index ", at, " is out of range for embeddings of shape ", c.in(input).shape);
      return table + at * n;
    };
    c.pool().parallel_for(batch * length, 4.0 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t t = row % length;
        const float* word = row_of(kWords, words, ids[row]);
        const float* position = row_of(kPositions, positions, position_ids ? position_ids[one_row ? t : row] : t);
        float* sum = (sum_out ? sum_out : y) + row * n;
        for (int64_t i = 0; i < n; ++i) sum[i] = word[i] + position[i];
        if (segment_ids) {
          const float* segment = row_of(kSegments, segments, segment_ids[row]);
          for (int64_t i = 0; i < n; ++i) sum[i] += segment[i];
        }
        const float mean = row_sum(sum, n) / static_cast<float>(n);
        const float inverse = 1 / std::sqrt(row_square_sum(sum, mean, n) / static_cast<float>(n) + epsilon_);
        for (int64_t i = 0; i < n; ++i) y[row * n + i] = (sum[i] - mean) * inverse * gamma[i] + beta[i];
      }
    });
    for (int64_t b = 0; mask_index && b < batch; ++b) {
      mask_index[b] = 0;
      for (int64_t t = 0; mask && t < length; ++t) mask_index[b] += mask[b * length + t] == 1;
    }
    io.store();
  }

 private:
  float epsilon_;
};

}  // namespace
}  // namespace epona

EPONA_OPS(embed_layer_normalization) {
  r.add({.name = "EmbedLayerNormalization", .domain = "com.microsoft", .make = make_kernel<EmbedLayerNorm>});
}
