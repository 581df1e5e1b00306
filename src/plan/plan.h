#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "ops/kernel.h"
#include "providers/provider.h"

namespace epona {

/// A value as the executor sees it: one slot of a frame.
struct SlotPlan {
  std::string name;
  Type type;
  Tensor constant;              ///< set for constants (of an input: its default)
  int root = -1;                ///< the slot whose memory this one shares; itself when it has its own
  int memory = 0;               ///< index in Plan::memories of where its elements are
  int segment = -1;             ///< where it is produced; -1: input, capture or constant
  int bound_output = -1;        ///< root: the graph output whose memory it is written into directly
  int kept_output = -1;         ///< root on a device: the graph output that may be left in its memory
  bool is_input = false;        ///< fed: graph inputs and captures
  bool read_on_host = false;    ///< an input whose elements are read in the host's memory
  bool dynamic = false;         ///< its kernel allocates it while running
  bool leaves_segment = false;  ///< root: read after the segment that produces it
};

/// One kernel call.
struct StepPlan {
  const Kernel* kernel = nullptr;
  Node node;  ///< name and operator, for messages; attributes are dropped
  std::string provider;
  std::vector<int> inputs, outputs, captures;  ///< slots; -1 where absent
  std::vector<int> frees;                      ///< roots that nobody reads after this step
  uint32_t shape_inputs = 0, inplace = 0;
  int memory = 0;        ///< where its kernel writes
  bool copy = false;     ///< brings a value from one memory to another
  int fed_input = -1;    ///< copy: brings this graph input to a device; nothing to do when it is fed there
  int kept_output = -1;  ///< copy: brings this graph output to the host, and nobody else reads it there
  bool random = false;   ///< gives another result each time
  bool dynamic = false;
  bool alias = false;       ///< output 0 is its input under another shape: nothing to run
  bool shape_only = false;  ///< reads only the dims of its inputs
  bool known = false;       ///< all that it reads is known when the frame is built
  bool shape_time = false;  ///< known, and some shape depends on its result
};

/// A run of steps whose shapes can all be computed before the first of them runs.
struct SegmentPlan {
  int begin = 0, end = 0;            ///< steps
  std::vector<int> dim_sources;      ///< slots from outside, whose dims the shapes depend on
  std::vector<int> content_sources;  ///< slots from outside, whose elements the shapes depend on
  std::vector<int> alias_slots;      ///< slots made by alias steps
  std::vector<int> bound_roots;      ///< roots that are written into graph outputs
  std::vector<int> fed_copies;       ///< steps with a fed_input
  std::vector<int> kept_roots;       ///< roots with a kept_output
};

/// A memory that values lie in. The first is the host's and has no device.
struct PlanMemory {
  Device* device = nullptr;
  std::string provider;
  std::string name() const { return device ? device->name() : "cpu"; }
};

/// A copy between memories, done in every run or, of a constant, once.
struct PlanCopy {
  int slot = 0, from = 0, to = 0;
  int64_t bytes = -1;  ///< -1: known when it runs
  bool once = false;   ///< a constant: when the plan is built, not in every run
};

/// A graph made ready to run: kernels in order, lifetimes, segments. Immutable; shared by all threads.
struct Plan {
  std::string name;
  std::vector<SlotPlan> slots;
  std::vector<StepPlan> steps;
  std::vector<SegmentPlan> segments;
  std::vector<int> inputs;                    ///< slots of the graph's inputs
  std::vector<std::pair<int, int>> captures;  ///< {index in the owner's captures, slot}
  std::vector<int> outputs;                   ///< slots of the graph's outputs
  std::vector<int> kept_sources;              ///< of each graph output: its slot on the device it may be left on, or -1
  std::vector<int> dynamic_slots;
  std::vector<PlanMemory> memories = std::vector<PlanMemory>(1);
  std::vector<PlanCopy> copies;
  std::vector<KernelPtr> kernels;

  /// The index of a device's memory in `memories`, whichever session the device is of; -1 when no step works in it.
  int memory_of(const Device* device) const;
};

/// A kernel with the provider that built it.
struct BuiltKernel {
  KernelPtr kernel;
  Provider* provider = nullptr;
  const OpDef* traits = nullptr;  ///< null: the provider knows the operator's
};

/// What building a plan needs besides the graph.
struct PlanOptions {
  /// The kernel of a node of the graph, from the provider that runs it.
  std::function<BuiltKernel(const NodeInfo&)> build;
  /// Makes a subgraph runnable (If, Loop, Scan bodies).
  std::function<std::shared_ptr<Subgraph>(const std::shared_ptr<Graph>&)> make_subgraph;
  /// Called with the memory of constants that kernels have packed and nobody reads any more.
  std::function<void(const Tensor&)> release;
  /// Called with constants that are read at run time: gives them memory that is the plan's alone, not the model file's.
  std::function<void(Tensor&)> keep;
};

/// Builds kernels and decides everything that depends on the graph alone. Constants that no kernel reads at run time
/// are dropped from `graph`.
std::shared_ptr<const Plan> build_plan(Graph& graph, const PlanOptions& options);

}  // namespace epona
