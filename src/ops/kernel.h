#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace epona {

class RunContext;

/// A subgraph made runnable (a plan of its own), as the kernels of If, Loop and Scan see it.
class Subgraph {
 public:
  virtual ~Subgraph() = default;
  virtual int inputs() const = 0;
  virtual int outputs() const = 0;
  virtual const Type& input_type(int i) const = 0;
  virtual const Type& output_type(int i) const = 0;
  /// Runs the body. Captured outer values come from `outer`, the context of the node that owns the subgraph.
  /// Outputs own their memory (they may share that of an input or a capture).
  virtual void run(const RunContext& outer, std::span<const RuntimeValue> inputs,
                   std::span<RuntimeValue> outputs) const = 0;
};

/// What a kernel may know of its node when it is built: attributes, types, constants.
class NodeInfo {
 public:
  virtual ~NodeInfo() = default;

  const Node& node() const { return *node_; }
  const Graph& graph() const { return *graph_; }
  int opset() const { return node_->opset; }
  int inputs() const { return static_cast<int>(node_->inputs.size()); }
  int outputs() const { return static_cast<int>(node_->outputs.size()); }
  bool has(int input) const { return input < inputs() && node_->inputs[input] != kNone; }
  bool wants(int output) const { return output < outputs() && node_->outputs[output] != kNone; }
  /// Type of an input or output; kind unknown when it is absent or could not be inferred.
  const Type& in(int input) const;
  const Type& out(int output) const;
  DataType in_type(int input) const { return in(input).elem; }
  DataType out_type(int output) const { return out(output).elem; }
  /// The tensor of a constant input; nullptr when it is absent or computed.
  const Tensor* constant(int input) const { return has(input) ? graph_->constant(node_->inputs[input]) : nullptr; }

  bool has_attr(std::string_view key) const { return node_->attributes.contains(key); }
  /// Attribute values with a default. An attribute of another kind is an error naming the node.
  int64_t attr(std::string_view key, int64_t otherwise) const;
  int64_t attr(std::string_view key, int otherwise) const { return attr(key, static_cast<int64_t>(otherwise)); }
  float attr(std::string_view key, float otherwise) const;
  std::string attr(std::string_view key, const char* otherwise) const;
  std::vector<int64_t> ints(std::string_view key, std::vector<int64_t> otherwise = {}) const;
  std::vector<float> floats(std::string_view key, std::vector<float> otherwise = {}) const;
  std::vector<std::string> strings(std::string_view key) const;
  const Tensor* tensor_attr(std::string_view key) const;
  /// A subgraph attribute, made runnable. Throws when it is missing.
  virtual std::shared_ptr<Subgraph> subgraph(std::string_view key) const = 0;

  /// Throws with the node's name and operator in front of the message.
  template <class... Parts>
  [[noreturn]] void refuse(Code code, const Parts&... parts) const {
    fail(code, describe(*node_), ": ", parts...);
  }

 protected:
  NodeInfo(const Graph& graph, const Node& node) : graph_(&graph), node_(&node) {}
  const Graph* graph_;
  const Node* node_;
};

/// Asked when a frame is built: output shapes from input shapes.
class ShapeContext {
 public:
  ShapeContext(const Node& node, std::span<RuntimeValue* const> inputs, std::span<RuntimeValue* const> outputs,
               uint64_t known_inputs, int threads = 1)
      : node_(&node), inputs_(inputs), outputs_(outputs), known_(known_inputs), threads_(threads) {}

  int inputs() const { return static_cast<int>(inputs_.size()); }
  int outputs() const { return static_cast<int>(outputs_.size()); }
  bool has(int i) const { return i < inputs() && inputs_[i] != nullptr; }
  bool wants(int o) const { return o < outputs() && outputs_[o] != nullptr; }
  const Shape& in(int i) const { return inputs_[i]->tensor.shape; }
  DataType in_type(int i) const { return inputs_[i]->tensor.type; }
  /// The elements of input i, when they are known before the run: always so for constants and for the inputs that the
  /// operator lists in OpDef::shape_inputs. nullptr otherwise or when the input is absent.
  const Tensor* value(int i) const { return has(i) && (i >= 64 || (known_ >> i & 1)) ? &inputs_[i]->tensor : nullptr; }
  /// int32/int64 elements of a shape input; throws when it is absent.
  std::vector<int64_t> ints(int i) const;

  void out(int o, Shape shape) {
    if (wants(o)) outputs_[o]->tensor.shape = std::move(shape);
  }
  /// Scratch memory that run() will get, 64-byte aligned.
  void workspace(size_t bytes) { workspace_ = bytes; }
  /// Threads of the pool that run() will get, for scratch memory that each of them needs.
  int threads() const { return threads_; }
  size_t workspace() const { return workspace_; }

  const Node& node() const { return *node_; }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Code::invalid_argument, describe(*node_), ": ", parts...);
  }

 private:
  const Node* node_;
  std::span<RuntimeValue* const> inputs_, outputs_;
  uint64_t known_;
  int threads_;
  size_t workspace_ = 0;
};

/// Told of every kernel call of a run, on the thread that runs it (profiling).
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// Times in nanoseconds of the steady clock.
  virtual void step(const Node& node, const std::string& provider, int64_t begin_ns, int64_t end_ns) = 0;
};

class Interrupter;

/// What all kernels of one run share.
struct RunEnv {
  ThreadPool* pool = nullptr;
  const std::atomic<bool>* terminate = nullptr;  ///< set by RunOptions.terminate
  RunObserver* observer = nullptr;
  Interrupter* interrupter = nullptr;  ///< looks up now and then (run/interrupter.h)
};

/// One call of a kernel: inputs and outputs with their memory.
class RunContext {
 public:
  RunContext(const Node& node, const RunEnv& env, std::span<RuntimeValue* const> inputs,
             std::span<RuntimeValue* const> outputs, std::span<RuntimeValue* const> captures, void* workspace)
      : node_(&node), env_(&env), inputs_(inputs), outputs_(outputs), captures_(captures), workspace_(workspace) {}

  int inputs() const { return static_cast<int>(inputs_.size()); }
  int outputs() const { return static_cast<int>(outputs_.size()); }
  bool has(int i) const { return i < inputs() && inputs_[i] != nullptr; }
  bool wants(int o) const { return o < outputs() && outputs_[o] != nullptr; }
  const Tensor& in(int i) const { return inputs_[i]->tensor; }
  /// An output whose shape shapes() gave: its memory is there.
  Tensor& out(int o) const { return outputs_[o]->tensor; }
  template <class T>
  const T* data(int i) const {
    return has(i) ? inputs_[i]->tensor.template as<T>() : nullptr;
  }
  template <class T>
  T* out_data(int o) const {
    return wants(o) ? outputs_[o]->tensor.template as<T>() : nullptr;
  }

  /// For operators with OpDef::dynamic: gives output o its shape and memory. Its type is that of the graph value,
  /// or `type` when the graph does not know it.
  Tensor& allocate(int o, Shape shape, DataType type = DataType::undefined) const;
  /// Sequences, maps, optionals (inputs of any operator; outputs of dynamic operators).
  const RuntimeValue& value(int i) const { return *inputs_[i]; }
  void set(int o, RuntimeValue value) const {
    if (wants(o)) *outputs_[o] = std::move(value);
  }
  const RuntimeValue& capture(int i) const { return *captures_[i]; }
  int captures() const { return static_cast<int>(captures_.size()); }

  void* workspace() const { return workspace_; }
  void set_workspace(void* memory) { workspace_ = memory; }
  template <class T>
  T* workspace_as() const {
    return static_cast<T*>(workspace_);
  }
  ThreadPool& pool() const { return *env_->pool; }
  const RunEnv& env() const { return *env_; }
  const Node& node() const { return *node_; }
  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    fail(Code::fail, describe(*node_), ": ", parts...);
  }

 private:
  const Node* node_;
  const RunEnv* env_;
  std::span<RuntimeValue* const> inputs_, outputs_, captures_;
  void* workspace_;
};

/// One node (or fused group) ready to run. Built once per session; holds attributes and packed constants and nothing
/// that a run changes: many threads call run() at once. run() must not allocate memory unless the operator is dynamic.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Sets the shape of every wanted output (dynamic operators: none) and asks for scratch memory.
  virtual void shapes(ShapeContext& c) const = 0;
  virtual void run(const RunContext& c) const = 0;
  /// Whether run() still reads constant input i. A kernel that packed it says false, and its memory is given back.
  virtual bool reads_constant(int input) const {
    (void)input;
    return true;
  }
};
using KernelPtr = std::unique_ptr<Kernel>;

}  // namespace epona
