#include "plan/segments.h"

#include <algorithm>

namespace epona {
namespace {

class Cutter {
 public:
  explicit Cutter(Plan& plan) : plan_(plan), producer_known_(plan.slots.size(), 0) {
    for (const StepPlan& step : plan.steps)
      for (int slot : step.outputs)
        if (slot >= 0 && step.shape_time) producer_known_[slot] = 1;
  }

  void cut() {
    plan_.segments.emplace_back();
    for (int s = 0; s < static_cast<int>(plan_.steps.size()); ++s) {
      const StepPlan& step = plan_.steps[s];
      if (must_break(step)) {
        plan_.segments.back().end = s;
        plan_.segments.emplace_back().begin = s;
      }
      place(step);
    }
    plan_.segments.back().end = static_cast<int>(plan_.steps.size());
    for (SegmentPlan& segment : plan_.segments) {
      unique(segment.dim_sources);
      unique(segment.content_sources);
    }
  }

 private:
  int current() const { return static_cast<int>(plan_.segments.size()) - 1; }
  bool made_here(int slot) const { return plan_.slots[slot].segment == current(); }
  /// Nothing to wait for: a constant, or computed when the frame is built.
  bool known(int slot) const {
    const SlotPlan& plan = plan_.slots[slot];
    return (plan.constant && !plan.is_input) || producer_known_[slot];
  }
  static bool reads_elements(const StepPlan& step, size_t input) {
    return input < 32 && (step.shape_inputs >> input & 1);
  }

  bool must_break(const StepPlan& step) const {
    if (step.dynamic) return false;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      int slot = step.inputs[i];
      if (slot < 0) continue;
      if (made_here(slot) && plan_.slots[plan_.slots[slot].root].dynamic) return true;
      if (reads_elements(step, i) && !known(slot) && made_here(slot)) return true;
    }
    return false;
  }

  void place(const StepPlan& step) {
    SegmentPlan& segment = plan_.segments.back();
    if (!step.dynamic) {
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        int slot = step.inputs[i];
        if (slot < 0 || made_here(slot)) continue;
        const SlotPlan& plan = plan_.slots[slot];
        if (reads_elements(step, i) && !known(slot)) segment.content_sources.push_back(slot);
        if (plan.constant && !plan.is_input) continue;
        segment.dim_sources.push_back(slot);
      }
    }
    for (int slot : step.outputs)
      if (slot >= 0) plan_.slots[slot].segment = current();
    if (step.alias) segment.alias_slots.push_back(step.outputs[0]);
  }

  static void unique(std::vector<int>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }

  Plan& plan_;
  std::vector<char> producer_known_;
};

}  // namespace

void cut_segments(Plan& plan) { Cutter(plan).cut(); }

}  // namespace epona
