#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/json.h"
#include "commands.h"
#include "kernels/isa.h"

namespace epona::cli {
namespace {

/// Sums the time of every node over the runs.
class NodeTimes final : public RunObserver {
 public:
  void step(const Node& node, const std::string&, int64_t begin_ns, int64_t end_ns) override {
    auto& entry = times_[node.op + " " + node.name];
    entry.first += end_ns - begin_ns;
    ++entry.second;
    by_op_[node.op] += end_ns - begin_ns;
    total_ += end_ns - begin_ns;
  }
  void write(JsonWriter& json, int runs) const {
    json.key("profile").begin_array();
    for (auto& [name, entry] : times_)
      json.begin_object().field("node", name).field("ms", static_cast<double>(entry.first) / 1e6 / runs).end_object();
    json.end_array();
  }
  void print(int runs) const {
    auto list = [&](std::vector<std::pair<int64_t, std::string>> rows, size_t most) {
      std::sort(rows.rbegin(), rows.rend());
      for (size_t i = 0; i < std::min(most, rows.size()); ++i)
        std::printf("  %9.4f ms %5.1f%%  %s\n", static_cast<double>(rows[i].first) / 1e6 / runs,
                    100.0 * static_cast<double>(rows[i].first) / static_cast<double>(std::max<int64_t>(total_, 1)),
                    rows[i].second.c_str());
    };
    std::vector<std::pair<int64_t, std::string>> ops, nodes;
    for (auto& [name, ns] : by_op_) ops.emplace_back(ns, name);
    for (auto& [name, entry] : times_) nodes.emplace_back(entry.first, name);
    std::printf("by operator\n");
    list(ops, 15);
    std::printf("by node\n");
    list(nodes, 25);
  }

 private:
  std::map<std::string, std::pair<int64_t, int>> times_;
  std::map<std::string, int64_t> by_op_;
  int64_t total_ = 0;
};

}  // namespace

int command_bench(const std::vector<std::string>& words) {
  Args args = parse(words, session_specs({{"input", true},
                                          {"random", false},
                                          {"seed", true},
                                          {"runs", true},
                                          {"warmup", true},
                                          {"seconds", true},
                                          {"profile", false}}));
  std::string path = model_argument(args);
  int runs = args.has("runs") ? args.number("runs", 0, 1) : 0;
  double seconds = args.seconds("seconds", 2);
  using Clock = std::chrono::steady_clock;
  auto ms_since = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  auto start = Clock::now();
  auto session = [&] {
    Progress progress("loading " + path);
    return std::make_unique<Session>(path, session_options(args));
  }();
  double creation = ms_since(start);
  auto feeds = make_feeds(*session, args, false);
  std::vector<RuntimeValue> results(session->outputs().size());
  Progress progress("running " + path);
  for (int i = 0, n = args.number("warmup", 3); i < n; ++i) {
    results.assign(results.size(), {});
    session->run_positional(feeds, results);
  }
  std::vector<double> times;
  NodeTimes profile;
  auto begin = Clock::now();
  while (runs > 0 ? static_cast<int>(times.size()) < runs : times.empty() || ms_since(begin) < seconds * 1000) {
    results.assign(results.size(), {});
    auto one = Clock::now();
    session->run_positional(feeds, results, nullptr, args.has("profile") ? &profile : nullptr);
    times.push_back(ms_since(one));
  }
  std::sort(times.begin(), times.end());
  double median = times[times.size() / 2], low = times.front(), p90 = times[times.size() * 9 / 10];
  if (args.has("json")) {
    JsonWriter json;
    json.begin_object().field("model", path).field("isa", isa_name()).field("creation_ms", creation);
    json.field("runs", times.size()).field("min_ms", low).field("median_ms", median).field("p90_ms", p90);
    if (args.has("profile")) profile.write(json, static_cast<int>(times.size()));
    json.end_object();
    std::printf("%s\n", json.text().c_str());
    return 0;
  }
  std::printf("%s  [%s]\n  created in %.1f ms", path.c_str(), isa_name(), creation);
  for (auto& [phase, ms] : session->creation_times()) std::printf("  (%s %.1f)", phase.c_str(), ms);
  std::printf("\n  %zu runs: min %.4f  median %.4f  p90 %.4f ms\n", times.size(), low, median, p90);
  if (args.has("profile")) profile.print(static_cast<int>(times.size()));
  return 0;
}

}  // namespace epona::cli
