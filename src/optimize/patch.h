#pragma once
// What a pass wants changed: new nodes, and which values they take the place of. A patch changes nothing until the
// applier splices it in.
//
//   PatchValue y = patch.op("LayerNormalization", {m["x"], m["scale"], m["bias"]}).with("axis", -1);
//   patch.replace(m["y"], y);

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/ir.h"

namespace mk {

// A value of the graph, or one that the patch makes; empty is an absent input.
class PatchValue {
 public:
  PatchValue() = default;
  PatchValue(Value* existing) : existing_(existing) {}  // NOLINT(google-explicit-constructor): values are operands
  Value* existing() const { return existing_; }

 private:
  friend class Patch;
  friend class PatchNode;
  friend class PatchApplier;
  Value* existing_ = nullptr;
  std::int32_t node_ = -1;      // index of the new node that makes it
  std::int32_t constant_ = -1;  // index of the new initializer that it is
  std::uint32_t output_ = 0;
};

struct NewNode {
  std::string domain, op_type;
  std::vector<PatchValue> inputs;
  // By index, the type where no schema gives it. Those that nobody asks for are absent, but for the first.
  std::vector<std::optional<Type>> outputs;
  std::vector<Attribute> attributes;
  std::string name;                  // empty: after the node that the patch stands before
  std::optional<Metadata> metadata;  // the same
};

class Patch;

// A new node while it is written down.
class PatchNode {
 public:
  template <typename T>
  PatchNode& with(std::string name, T value) {
    node().attributes.emplace_back(std::move(name), std::move(value));
    return *this;
  }
  PatchNode& with(const Attribute& attribute) {
    node().attributes.push_back(attribute.clone());
    return *this;
  }
  PatchNode& with(Attribute&& attribute) {
    node().attributes.push_back(std::move(attribute));
    return *this;
  }
  // The type of an output, where the operator has no schema (com.microsoft).
  PatchNode& typed(Type type, std::uint32_t output = 0) {
    PatchValue value = (*this)[output];
    node().outputs[value.output_] = std::move(type);
    return *this;
  }
  PatchNode& like(const Value* value, std::uint32_t output = 0) { return typed(value->type, output); }
  PatchValue operator[](std::uint32_t output) const;
  operator PatchValue() const { return (*this)[0]; }  // NOLINT(google-explicit-constructor): a node is its first output

 private:
  friend class Patch;
  PatchNode(Patch& patch, std::int32_t index) : patch_(&patch), index_(index) {}
  NewNode& node() const;
  Patch* patch_;
  std::int32_t index_;
};

class Patch {
 public:
  explicit Patch(std::int64_t opset) : opset_(opset) {}
  std::int64_t opset() const { return opset_; }  // of ai.onnx, that the new nodes will be of

  // `op`: "Add", or with a domain "com.microsoft.Gelu" (its version 1 is then imported). Trailing empty inputs are
  // dropped.
  PatchNode op(std::string_view op, std::vector<PatchValue> inputs);
  // A node like another, which keeps its name, metadata and attributes, with other inputs.
  PatchNode copy(const Node& node, std::vector<PatchValue> inputs);
  PatchValue constant(Tensor tensor);
  PatchValue integers(const std::vector<std::int64_t>& values);  // int64, one dimension
  // A float scalar of the type.
  PatchValue scalar(DataType type, double value);

  // `with` takes the place of `old` everywhere, as a graph output too, and takes over its name. Nodes that nothing uses
  // any more go.
  void replace(Value* old, PatchValue with);

  // Another input of a node that stays.
  void set_input(Node* node, std::uint32_t input, PatchValue value);
  // An attribute of a node that stays. Its outputs keep the types they have unless they are said to change.
  void set_attribute(Node* node, Attribute attribute);

  bool empty() const { return replaced_.empty() && inputs_.empty() && attributes_.empty(); }

 private:
  friend class PatchNode;
  friend class PatchApplier;
  struct InputChange {
    Node* node;
    std::uint32_t input;
    PatchValue value;
  };
  std::int64_t opset_;
  std::deque<NewNode> nodes_;
  std::deque<Tensor> constants_;
  std::vector<std::pair<Value*, PatchValue>> replaced_;
  std::vector<InputChange> inputs_;
  std::vector<std::pair<Node*, Attribute>> attributes_;
};

}  // namespace mk
