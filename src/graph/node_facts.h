#pragma once
// What is known about one node while it is inferred: the types, shapes and values of its inputs, and its attributes
// with the references of a function's body resolved. The rules of shape inference see nodes only through this.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "graph/known_value.h"

namespace mk {

// What a NodeFacts asks of the inference that is running.
class InferenceState {
 public:
  virtual ~InferenceState() = default;
  // Null where they are not known. Valid while the node is inferred.
  virtual const KnownValue* value_of(const Value& value) = 0;
  virtual const Tensor* tensor_of(const Value& value) = 0;  // a small constant with data
  virtual const Attribute* resolve(const Attribute& attribute) const = 0;
  virtual bool is_absent(const Value& value) const = 0;  // an optional input that the call of a function leaves out
  // Infers a sub-graph of the node, with these types for its inputs; the types of its outputs.
  virtual Result<std::vector<Type>> infer_subgraph(Graph& graph, std::span<const Type* const> inputs) = 0;
};

class NodeFacts {
 public:
  NodeFacts(const Node& node, std::int64_t opset, InferenceState& state) : node_(node), opset_(opset), state_(state) {}

  const Node& node() const { return node_; }
  std::int64_t opset() const { return opset_; }  // of the node's domain
  InferenceState& state() const { return state_; }

  std::size_t input_count() const { return node_.inputs().size(); }
  std::size_t output_count() const { return node_.outputs().size(); }
  bool has_input(std::size_t i) const { return node_.input(i) && !state_.is_absent(*node_.input(i)); }
  // Null where they are not known, or there is no such input.
  const Type* input_type(std::size_t i) const;
  const Shape* input_shape(std::size_t i) const;  // of a tensor
  const KnownValue* input_value(std::size_t i) const;
  const Tensor* input_tensor(std::size_t i) const;
  // Elements of an integer input that is a known constant.
  std::optional<std::vector<std::int64_t>> input_constants(std::size_t i) const;

  const Attribute* attribute(std::string_view name) const;  // null where there is none
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  std::string_view string(std::string_view name, std::string_view otherwise) const;
  const std::vector<std::int64_t>* integers(std::string_view name) const;
  // An attribute, or from some opset on an input: axes, starts, repeats ... Nothing where it is there but not known;
  // `otherwise` where it is not there.
  std::optional<std::vector<std::int64_t>> integers_or_input(std::string_view name, std::size_t input,
                                                             std::vector<std::int64_t> otherwise) const;

 private:
  const Node& node_;
  std::int64_t opset_;
  InferenceState& state_;
};

// Axis counted from the front; nothing where it is out of range.
std::optional<std::size_t> normal_axis(std::int64_t axis, std::size_t rank);

}  // namespace mk
