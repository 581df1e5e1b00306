#include <algorithm>

#include "plan/copies.h"
#include "plan/plan.h"
#include "plan/segments.h"

namespace epona {
namespace {

class PlanNodeInfo final : public NodeInfo {
 public:
  PlanNodeInfo(const Graph& graph, const Node& node, const PlanOptions& options)
      : NodeInfo(graph, node), options_(options) {}

  std::shared_ptr<Subgraph> subgraph(std::string_view key) const override {
    auto* body = graph_->attribute<std::shared_ptr<Graph>>(*node_, key);
    if (!body) refuse(Code::invalid_graph, "attribute '", key, "' should be a graph");
    return options_.make_subgraph(*body);
  }

 private:
  const PlanOptions& options_;
};

/// Who still needs a constant.
struct Readers {
  int to_build = 0;          ///< inputs of kernels that are not built yet
  bool at_run_time = false;  ///< a kernel, a subgraph or the caller
};

class PlanBuilder {
 public:
  PlanBuilder(Graph& graph, const PlanOptions& options)
      : graph_(graph), options_(options), plan_(std::make_shared<Plan>()), copies_(*plan_) {}

  std::shared_ptr<const Plan> build() {
    plan_->name = graph_.name;
    make_slots();
    count_readers();
    make_steps();
    for (int& slot : plan_->outputs) slot = copies_.bring(slot, 0);
    settle_constants();
    mark_known();
    share_memory();
    cut_segments(*plan_);
    bind_outputs();
    compute_lifetimes();
    plan_devices();
    return plan_;
  }

 private:
  void make_slots() {
    for (Value& value : graph_.values) {
      SlotPlan slot;
      slot.name = value.name;
      slot.type = value.type;
      slot.constant = value.constant;
      slot.is_input = value.is_input || value.is_capture;
      slot.root = static_cast<int>(plan_->slots.size());
      plan_->slots.push_back(std::move(slot));
    }
    plan_->inputs.assign(graph_.inputs.begin(), graph_.inputs.end());
    plan_->outputs.assign(graph_.outputs.begin(), graph_.outputs.end());
    for (auto& [index, id] : graph_.captured) plan_->captures.emplace_back(index, id);
  }

  void count_readers() {
    readers_.resize(plan_->slots.size());
    const auto keep = [&](int slot) { readers_[slot].at_run_time = true; };
    for (const Node& node : graph_.nodes) {
      if (node.removed) continue;
      for (int slot : node.inputs)
        if (slot != kNone) ++readers_[slot].to_build;
      std::for_each(node.captures.begin(), node.captures.end(), keep);
    }
    std::for_each(plan_->outputs.begin(), plan_->outputs.end(), keep);
  }

  void make_steps() {
    for (Node& node : graph_.nodes) {
      if (node.removed) continue;
      for (auto& [key, attribute] : node.attributes)
        if (auto* tensor = std::get_if<Tensor>(&attribute)) options_.keep(*tensor);
      auto [kernel, provider, traits] = options_.build(PlanNodeInfo(graph_, node, options_));
      StepPlan step;
      step.provider = provider->name();
      plan_->kernels.push_back(std::move(kernel));
      step.kernel = plan_->kernels.back().get();
      step.node.name = node.name;
      step.node.op = node.op;
      step.node.domain = node.domain;
      step.node.opset = node.opset;
      step.inputs.assign(node.inputs.begin(), node.inputs.end());
      step.outputs.assign(node.outputs.begin(), node.outputs.end());
      step.captures.assign(node.captures.begin(), node.captures.end());
      if (const OpDef* def = traits ? traits : provider->traits(node)) {
        step.shape_inputs = def->shape_inputs;
        step.inplace = def->inplace;
        step.dynamic = def->dynamic;
        step.shape_only = def->shape_only;
        step.alias = def->alias >= 0 && !def->dynamic;
        step.random = def->random;
      }
      step.memory = memory_of(*provider);
      for (int output : step.outputs) {
        if (output < 0) continue;
        // Anything that is not a tensor has no dims to plan with.
        Type::Kind kind = plan_->slots[output].type.kind;
        if (kind != Type::Kind::tensor && kind != Type::Kind::unknown) step.dynamic = true;
      }
      for (int output : step.outputs)
        if (!step.dynamic && output >= 0 && plan_->slots[output].type.elem == DataType::undefined)
          fail(Code::invalid_graph, describe(node), ": the type of its output '", plan_->slots[output].name,
               "' is neither declared nor can it be inferred");
      if (step.dynamic) {
        step.alias = false;
        for (int output : step.outputs)
          if (output >= 0) plan_->slots[output].dynamic = true;
      }
      bring_inputs(step);
      release_packed(node, step);
      plan_->steps.push_back(std::move(step));
    }
  }

  int memory_of(Provider& provider) {
    Device* device = provider.device();
    if (!device) return 0;
    auto& memories = plan_->memories;
    auto known =
        std::find_if(memories.begin(), memories.end(), [&](const PlanMemory& m) { return m.device == device; });
    if (known == memories.end()) known = memories.insert(known, {device, provider.name()});
    return static_cast<int>(known - memories.begin());
  }

  /// Inputs come to the memory of the step's kernel, those whose elements shapes() reads to the host's; outputs are made
  /// where the kernel works.
  void bring_inputs(StepPlan& step) {
    if (step.memory != 0 && (step.dynamic || !step.captures.empty()))
      throw ProviderFailure(step.provider, cat(describe(step.node), " was taken by ", step.provider,
                                               ", whose device cannot "
                                               "run operators with output shapes that depend on data"));
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      int slot = step.inputs[i];
      if (slot < 0 || step.shape_only) continue;  // dims are the frame's, wherever the elements are
      if (plan_->slots[slot].constant && !plan_->slots[slot].is_input &&
          !step.kernel->reads_constant(static_cast<int>(i)))
        continue;
      bool on_host = i < 32 && (step.shape_inputs >> i & 1);
      step.inputs[i] = copies_.bring(slot, on_host ? 0 : step.memory);
    }
    for (int& slot : step.captures) slot = copies_.bring(slot, 0);
    for (int slot : step.outputs)
      if (slot >= 0) plan_->slots[slot].memory = step.memory;
  }

  /// After the kernel of a step is built: constants that every reader has packed are given back at once, so that never
  /// more than one weight is held twice.
  void release_packed(const Node& node, const StepPlan& step) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const int slot = node.inputs[i];
      if (slot < 0) continue;
      Readers& readers = readers_[slot];
      const bool copied = step.inputs[i] != slot;  // to another memory
      readers.at_run_time |= !copied && step.kernel->reads_constant(static_cast<int>(i));
      if (--readers.to_build == 0 && !readers.at_run_time) release(slot);
    }
  }

  void release(int index) {
    SlotPlan& slot = plan_->slots[index];
    if (!slot.constant || slot.is_input) return;
    // The dims stay: kernels ask for the shapes of inputs that they have packed.
    if (options_.release) options_.release(slot.constant);
    for (Tensor* tensor : {&slot.constant, &graph_.values[index].constant}) {
      tensor->owner.reset();
      tensor->data = nullptr;
    }
  }

  /// The constants that are left belong to the plan alone, aligned for their type. Those nobody reads are given back.
  void settle_constants() {
    for (size_t i = 0; i < readers_.size(); ++i) {
      SlotPlan& slot = plan_->slots[i];
      if (!slot.constant || !slot.constant.data) continue;
      if (!readers_[i].at_run_time && !slot.is_input) {
        release(static_cast<int>(i));
        continue;
      }
      graph_.values[i].constant.owner.reset();
      options_.keep(slot.constant);
      size_t unit = std::max<size_t>(1, std::min<size_t>(8, type_bits(slot.constant.type) / 8));
      if (slot.constant.type != DataType::string && reinterpret_cast<uintptr_t>(slot.constant.data) % unit != 0)
        slot.constant = slot.constant.clone();
    }
  }

  /// A step is known when its results follow from constants and dims alone.
  void mark_known() {
    std::vector<char> known(plan_->slots.size(), 0), needed(plan_->slots.size(), 0);
    for (size_t i = 0; i < plan_->slots.size(); ++i)
      known[i] = plan_->slots[i].constant && plan_->slots[i].constant.data && !plan_->slots[i].is_input &&
                 plan_->slots[i].memory == 0;
    for (StepPlan& step : plan_->steps) {
      step.known = !step.dynamic && !step.random && step.captures.empty() && step.memory == 0 && !step.copy &&
                   (step.shape_only || std::all_of(step.inputs.begin(), step.inputs.end(),
                                                   [&](int slot) { return slot < 0 || known[slot]; }));
      if (!step.known) continue;
      step.alias = false;
      for (int slot : step.outputs)
        if (slot >= 0) known[slot] = 1;
    }
    for (auto step = plan_->steps.rbegin(); step != plan_->steps.rend(); ++step) {
      for (int slot : step->outputs) step->shape_time |= step->known && slot >= 0 && needed[slot];
      for (size_t i = 0; i < step->inputs.size(); ++i) {
        int slot = step->inputs[i];
        bool by_shape = i < 32 && (step->shape_inputs >> i & 1);
        if (slot >= 0 && (by_shape || (step->shape_time && !step->shape_only))) needed[slot] = 1;
      }
    }
  }

  void share_memory() {
    for (StepPlan& step : plan_->steps) {
      if (!step.alias) continue;
      int input = step.inputs[0], output = step.outputs[0];
      SlotPlan& from = plan_->slots[input];
      bool tensor = !from.type.is_tensor() ? from.type.kind == Type::Kind::unknown : true;
      if (!tensor || output < 0) {
        step.alias = false;
        continue;
      }
      plan_->slots[output].root = from.root;
    }
  }

  void bind_outputs() {
    std::vector<const StepPlan*> producer(plan_->slots.size(), nullptr);
    for (const StepPlan& step : plan_->steps)
      for (int slot : step.outputs)
        if (slot >= 0) producer[slot] = &step;
    for (size_t i = 0; i < plan_->outputs.size(); ++i) {
      SlotPlan& root = plan_->slots[plan_->slots[plan_->outputs[i]].root];
      const StepPlan* step = producer[plan_->slots[plan_->outputs[i]].root];
      if (!step || step->dynamic || step->shape_time || root.bound_output >= 0) continue;
      // An alias in a later segment: its dims are not known yet when the root needs memory.
      if (plan_->slots[plan_->outputs[i]].segment != root.segment) continue;
      root.bound_output = static_cast<int>(i);
      plan_->segments[root.segment].bound_roots.push_back(root.root);
    }
  }

  /// What a run can spare when inputs are fed in the memory of a device, or outputs wanted there.
  void plan_devices() {
    std::vector<StepPlan*> producer(plan_->slots.size(), nullptr);
    std::vector<int> readers(plan_->slots.size(), 0);
    auto& slots = plan_->slots;
    plan_->kept_sources.assign(plan_->outputs.size(), -1);
    for (size_t s = 0; s < plan_->steps.size(); ++s) {
      StepPlan& step = plan_->steps[s];
      for (int slot : step.outputs)
        if (slot >= 0) producer[slot] = &step;
      for (int slot : step.captures) slots[slot].read_on_host = true;
      for (const auto* list : {&step.inputs, &step.captures})
        for (int slot : *list)
          if (slot >= 0) ++readers[slot];
      if (!step.copy && !step.shape_only)
        for (int slot : step.inputs)
          if (slot >= 0) slots[slot].read_on_host = true;
      if (!step.copy) continue;
      auto input = std::find(plan_->inputs.begin(), plan_->inputs.end(), step.inputs[0]);
      if (input == plan_->inputs.end()) continue;
      step.fed_input = static_cast<int>(input - plan_->inputs.begin());
      plan_->segments[slots[step.outputs[0]].segment].fed_copies.push_back(static_cast<int>(s));
    }
    for (int slot : plan_->outputs) {
      slots[slot].read_on_host = true;
      ++readers[slot];
    }
    for (size_t i = 0; i < plan_->outputs.size(); ++i) {
      int shown = plan_->outputs[i];
      if (!producer[shown] || !producer[shown]->copy || slots[shown].bound_output != static_cast<int>(i)) continue;
      int source = producer[shown]->inputs[0];
      SlotPlan& root = slots[slots[source].root];
      const StepPlan* step = producer[root.root];
      if (!step || step->copy || step->dynamic || root.kept_output >= 0 || slots[source].segment != root.segment)
        continue;
      root.kept_output = static_cast<int>(i);
      plan_->kept_sources[i] = source;
      plan_->segments[root.segment].kept_roots.push_back(root.root);
      if (readers[shown] == 1) producer[shown]->kept_output = static_cast<int>(i);
    }
  }

  void compute_lifetimes() {
    std::vector<int> last(plan_->slots.size(), -1);
    for (size_t g = 0; g < plan_->segments.size(); ++g) {
      const SegmentPlan& segment = plan_->segments[g];
      for (int s = segment.begin; s < segment.end; ++s) {
        const StepPlan& step = plan_->steps[s];
        auto touch = [&](int slot) {
          if (slot < 0) return;
          int root = plan_->slots[slot].root;
          last[root] = s;
          if (plan_->slots[root].segment != static_cast<int>(g)) plan_->slots[root].leaves_segment = true;
        };
        for (int slot : step.inputs) touch(slot);
        for (int slot : step.captures) touch(slot);
        for (int slot : step.outputs) touch(slot);
      }
    }
    for (int slot : plan_->outputs) plan_->slots[plan_->slots[slot].root].leaves_segment = true;
    for (size_t i = 0; i < plan_->slots.size(); ++i) {
      const SlotPlan& slot = plan_->slots[i];
      if (slot.dynamic) plan_->dynamic_slots.push_back(static_cast<int>(i));
      if (slot.root == static_cast<int>(i) && last[i] >= 0 && !slot.leaves_segment && slot.segment >= 0)
        plan_->steps[last[i]].frees.push_back(static_cast<int>(i));
    }
  }

  Graph& graph_;
  const PlanOptions& options_;
  std::shared_ptr<Plan> plan_;
  CopyInserter copies_;
  std::vector<Readers> readers_;  // per value of the graph
};

}  // namespace

int Plan::memory_of(const Device* device) const {
  for (size_t m = 0; m < memories.size(); ++m)
    if (same_memory(memories[m].device, device)) return static_cast<int>(m);
  return -1;
}

std::shared_ptr<const Plan> build_plan(Graph& graph, const PlanOptions& options) {
  return PlanBuilder(graph, options).build();
}

}  // namespace epona
