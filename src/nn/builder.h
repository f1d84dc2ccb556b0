#pragma once
// Building a graph is a walk through the module tree of the original model. A Scope is a place in that tree: it gives
// nodes their names and tags and parameters their names, and is handed to every operator and layer, so that each node
// belongs to the module that computes it.
//
//   Scope attention = s("attention", "BertAttention");       a module: its class is in the tag
//   Value y = linear(attention["dense"], x, width);           a torch.nn layer: named, without a tag of its own
//
// The first error stays in the builder: operators on the empty Value that follows an error give an empty Value, so that
// a model reads without checks in between; status() has the error. Types and shapes of all values are known.

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "nn/weights.h"

namespace mk::nn {

class Builder;

// A value of the graph being built; empty after an error, and where an optional input is absent. Cheap to copy.
class Value {
 public:
  Value() = default;
  explicit Value(mk::Value* value) : value_(value) {}
  explicit operator bool() const { return value_ != nullptr; }

  mk::Value* ir() const { return value_; }
  DataType type() const { return value_ ? value_->type.element : DataType::undefined; }
  const Shape& shape() const;
  int rank() const { return static_cast<int>(shape().size()); }
  // Negative axes count from the end. Unknown where there is no such axis.
  Dim dim(int axis) const;

 private:
  mk::Value* value_ = nullptr;
};

// A module of the tree that was walked.
struct Module {
  Module* parent = nullptr;
  std::string name;        // in its parent; "layer.0" for an item of a list
  std::string path;        // "encoder.layer.0.attention"; empty is the root
  std::string node_path;   // "/encoder/layer.0/attention"
  std::string class_name;  // "BertAttention"
  std::string tag;         // "/BertModel/BertEncoder/BertLayer.0/BertAttention"; a torch.nn layer has its parent's
  std::string depth;       // segments of the tag, in decimal
  bool plain = false;      // a torch.nn layer
  std::vector<Module*> children;
  std::vector<std::pair<std::string_view, std::uint32_t>> operators;  // how many nodes of each kind it has
};

// Cheap to copy; valid as long as its builder.
class Scope {
 public:
  Scope(Builder& builder, Module& module) : builder_(&builder), module_(&module) {}

  // A child that is a torch.nn layer.
  Scope operator[](std::string_view name) const;
  // A child with a class of its own; `list` and `index` for an item of a ModuleList or Sequential.
  Scope operator()(std::string_view name, std::string_view class_name) const;
  Scope operator()(std::string_view list, std::int64_t index, std::string_view class_name) const;

  // Says what torch.nn class a plain child is, for the record.
  void is_a(std::string_view torch_class) const;

  // Says that the parameter `name` of this module is another one of it, e.g. at the root
  // tie("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight").
  void tie(std::string_view name, std::string_view original) const;

  // Says what the parameter `name` of this module is where the checkpoint does not have it.
  void declare(std::string_view name, const Bytes& float32_values) const;

  // A parameter of this module, under the name it has in the model.
  const Parameter& parameter(std::string_view name, std::vector<std::int64_t> dims) const;
  // The same as an initializer of the graph.
  Value weight(std::string_view name, std::vector<std::int64_t> dims) const;

  Builder& builder() const { return *builder_; }
  Module& module() const { return *module_; }

 private:
  std::string full_name(std::string_view name) const;
  Builder* builder_;
  Module* module_;
};

struct BuilderOptions {
  std::int64_t opset = 17;
  bool hierarchy_tags = true;
  DataType float_type = DataType::float32;  // of weights and activations
  bool keep_quantized = false;              // linear layers of quantized checkpoints as MatMulNBits
  std::optional<double> mask_value;         // what masked positions add to scores; the type's minimum when absent
};

class Builder {
 public:
  // Fills `graph`. All of them must outlive the builder.
  Builder(Graph& graph, Weights& weights, BuilderOptions options);
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Scope root(std::string_view class_name);
  const std::deque<Module>& modules() const { return modules_; }  // in order of first entry; the root is first

  Graph& graph() { return graph_; }
  Weights& weights() { return weights_; }
  std::int64_t opset() const { return options_.opset; }
  DataType float_type() const { return options_.float_type; }
  double mask_value() const;
  bool keeps_quantized() const { return options_.keep_quantized; }

  Value input(std::string name, DataType type, Shape shape);
  // Appends an output of that name.
  void output(Value value, std::string name);

  // Initializers, each content and each parameter once.
  Value initializer(const Parameter& parameter);
  Value transposed(const Parameter& parameter);  // of a matrix; its data is transposed when it is written
  // Some rows of a matrix, transposed.
  Value transposed_rows(const Parameter& parameter, std::int64_t first, std::int64_t count);
  Value rows(const Parameter& parameter, std::int64_t first, std::int64_t count);  // along the first axis
  Value scalar(DataType type, double value);
  Value integers(std::vector<std::int64_t> values);                  // int64, one dimension
  Value floats(std::string name, const std::vector<float>& values);  // float32, one dimension
  // A tensor that no checkpoint has, once for each name.
  Value constant(std::string name, DataType type, std::vector<std::int64_t> dims, Bytes data);

  // Keeps the first one.
  void fail(Error error);
  bool ok() const { return !error_; }
  // The first error; then what is wrong with the weights.
  Status status() const;

 private:
  friend class Scope;
  friend class Op;
  Module& child(Module& parent, std::string_view name, std::string_view class_name, bool plain);

  Graph& graph_;
  Weights& weights_;
  BuilderOptions options_;
  std::deque<Module> modules_;
  std::unordered_map<std::string, Value> constants_;  // initializers by name
  std::optional<Error> error_;
};

// A node being made:  Op(s, "Softmax", {x}).with("axis", -1).like(x)
// Nothing is made where an input is empty. `type` must outlive the builder (a literal).
class Op {
 public:
  Op(const Scope& scope, std::string_view type, std::initializer_list<Value> inputs);
  Op(const Scope& scope, std::string_view type, const std::vector<Value>& inputs, std::size_t outputs = 1);

  template <typename T>
  Op& with(const char* name, T value) {
    if (node_) node_->set_attribute(Attribute(name, std::move(value)));
    return *this;
  }
  // Puts an input at a place beyond those given; optional ones in between are absent.
  Op& at(std::size_t index, Value input) {
    if (node_ && input) node_->set_input(index, input.ir());
    return *this;
  }
  Op& of(const char* domain) {
    if (node_) node_->domain = domain;
    return *this;
  }
  // Its only output, or one of several.
  Value out(DataType type, Shape shape, std::size_t index = 0);
  Value like(Value x) { return out(x.type(), x.shape()); }

 private:
  void make(const Scope& scope, std::string_view type, const Value* inputs, std::size_t count, std::size_t outputs);
  Node* node_ = nullptr;
};

}  // namespace mk::nn
