#include <unordered_map>
#include <vector>

#include "ops/indices.h"
#include "ops/registry.h"

namespace epona {
namespace {

/// TfIdfVectorizer: counts n-grams of the pool (with skips between their items) in each row; the counts (TF), the
/// weights of those present (IDF), or their product (TFIDF).
class TfIdfVectorizer final : public Kernel {
 public:
  explicit TfIdfVectorizer(const NodeInfo& info)
      : min_length_(info.attr("min_gram_length", 1)),
        max_length_(info.attr("max_gram_length", 1)),
        max_skip_(info.attr("max_skip_count", 0)),
        targets_(info.ints("ngram_indexes")),
        weights_(info.floats("weights")) {
    std::string mode = info.attr("mode", "");
    if (mode != "TF" && mode != "IDF" && mode != "TFIDF") info.refuse(Code::invalid_graph, "unknown mode '", mode, "'");
    presence_ = mode == "IDF";
    if (mode == "TF") weights_.clear();
    if (min_length_ < 1 || max_length_ < min_length_ || max_skip_ < 0)
      info.refuse(Code::invalid_graph, "min_gram_length, max_gram_length and max_skip_count do not fit: ", min_length_,
                  ", ", max_length_, ", ", max_skip_);
    for (int64_t target : targets_) {
      if (target < 0) info.refuse(Code::invalid_graph, "ngram_indexes has the negative number ", target);
      width_ = std::max(width_, checked_add(target, 1));
    }
    if (!weights_.empty() && weights_.size() != targets_.size())
      info.refuse(Code::invalid_graph, "weights has ", weights_.size(), " numbers, ngram_indexes ", targets_.size());
    read_pool(info);
  }

  void shapes(ShapeContext& c) const override {
    const Shape& in = c.in(0);
    if (in.rank() < 1 || in.rank() > 2) c.refuse("the input must have shape [C] or [N,C], found ", in);
    c.out(0, in.rank() == 1 ? Shape{width_} : Shape{in[0], width_});
    c.workspace(static_cast<size_t>(checked_mul(in.back(), sizeof(int32_t))));
  }
  void run(const RunContext& c) const override {
    const Tensor& in = c.in(0);
    int64_t length = in.shape.back(), rows = in.shape.rank() == 1 ? 1 : in.shape[0];
    int32_t* items = c.workspace_as<int32_t>();
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < length; ++i) items[i] = item(in, row * length + i);
      float* out = c.out_data<float>(0) + row * width_;
      std::fill_n(out, width_, 0.0f);
      count(items, length, out);
    }
  }

 private:
  void read_pool(const NodeInfo& info) {
    std::vector<std::string> words = info.strings("pool_strings");
    std::vector<int64_t> numbers = info.ints("pool_int64s"), starts = info.ints("ngram_counts");
    int64_t size = static_cast<int64_t>(std::max(words.size(), numbers.size())), gram = 0;
    auto id = [&](int64_t i) {
      if (words.empty()) return numbers_.try_emplace(numbers[i], static_cast<int32_t>(numbers_.size())).first->second;
      return words_.try_emplace(words[i], static_cast<int32_t>(words_.size())).first->second;
    };
    for (int64_t n = 1; n <= static_cast<int64_t>(starts.size()); ++n) {
      int64_t begin = starts[n - 1], end = n < static_cast<int64_t>(starts.size()) ? starts[n] : size;
      if (begin < 0 || end < begin || end > size || (end - begin) % n)
        info.refuse(Code::invalid_graph, "ngram_counts does not divide a pool of ", size, " items");
      for (int64_t at = begin; at < end; at += n, ++gram) {
        if (gram >= static_cast<int64_t>(targets_.size()))
          info.refuse(Code::invalid_graph, "the pool has more n-grams than ngram_indexes has numbers");
        if (n < min_length_ || n > max_length_) continue;
        int32_t state = 0;
        for (int64_t i = at; i < at + n; ++i) {
          auto [edge, added] = edges_.try_emplace(edge_key(state, id(i)), static_cast<int32_t>(grams_.size()));
          if (added) grams_.push_back(-1);
          state = edge->second;
        }
        grams_[static_cast<size_t>(state)] = gram;
      }
    }
  }
  int32_t item(const Tensor& in, int64_t i) const {
    if (in.type == DataType::string) {
      auto found = words_.find(in.as<std::string>()[i]);
      return found == words_.end() ? -1 : found->second;
    }
    auto found = numbers_.find(int_at(in, i));
    return found == numbers_.end() ? -1 : found->second;
  }
  void count(const int32_t* items, int64_t length, float* out) const {
    // A single item has no gap, so that it is counted at the first step only.
    for (int64_t step = 1; step <= std::min(max_skip_ + 1, std::max<int64_t>(length, 1)); ++step) {
      if (step > 1 && max_length_ == 1) return;
      for (int64_t start = 0; start < length; ++start) {
        int32_t state = 0;
        for (int64_t n = 1, at = start; n <= max_length_ && at < length; ++n, at += step) {
          auto edge = items[at] < 0 ? edges_.end() : edges_.find(edge_key(state, items[at]));
          if (edge == edges_.end()) break;
          state = edge->second;
          int64_t gram = grams_[static_cast<size_t>(state)];
          if (gram < 0 || (n == 1 && step > 1)) continue;
          float weight = weights_.empty() ? 1.0f : weights_[static_cast<size_t>(gram)];
          float& cell = out[targets_[static_cast<size_t>(gram)]];
          cell = presence_ ? weight : cell + weight;
        }
      }
    }
  }
  static uint64_t edge_key(int32_t state, int32_t item) {
    return static_cast<uint64_t>(state) << 32 | static_cast<uint32_t>(item);
  }

  int64_t min_length_, max_length_, max_skip_;
  bool presence_ = false;
  int64_t width_ = 0;
  std::vector<int64_t> targets_;
  std::vector<float> weights_;
  std::unordered_map<std::string, int32_t> words_;
  std::unordered_map<int64_t, int32_t> numbers_;
  std::unordered_map<uint64_t, int32_t> edges_;  ///< the pool as a trie: (state, item) -> state
  std::vector<int64_t> grams_{-1};               ///< state -> number of the n-gram that ends there, or -1
};

}  // namespace
}  // namespace epona

EPONA_OPS(tf_idf_vectorizer) { r.add({.name = "TfIdfVectorizer", .since = 9, .make = make_kernel<TfIdfVectorizer>}); }
