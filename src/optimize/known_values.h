#pragma once
// Elements of small tensors as they follow from shapes, node by node: what shape inference knows while it runs, for
// passes that walk a graph in order.

#include <unordered_map>

#include "graph/node_facts.h"

namespace mk {

class KnownValues final : public InferenceState {
 public:
  explicit KnownValues(const Model& model) : model_(model) {}

  // Learns the outputs of a node, whose inputs were learnt before. Outputs of nodes that were never followed must not
  // be asked for: they may stand where values that are gone stood.
  void follow(const Node& node);
  void forget() { values_.clear(); }

  const KnownValue* value_of(const Value& value) override;
  const Tensor* tensor_of(const Value& value) override;
  const Attribute* resolve(const Attribute& attribute) const override {
    return attribute.reference.empty() ? &attribute : nullptr;
  }
  bool is_absent(const Value&) const override { return false; }
  Result<std::vector<Type>> infer_subgraph(Graph&, std::span<const Type* const>) override {
    return fail(ErrorCode::unsupported, "sub-graphs are not followed");
  }

 private:
  const Model& model_;
  // Of an initializer, while it has these bytes.
  struct Constant {
    Bytes data;
    std::optional<KnownValue> known;
  };
  std::unordered_map<const Value*, KnownValue> values_;  // outputs of nodes
  std::unordered_map<const Value*, Constant> constants_;
};

// The dims of `result` as a Reshape of `from` takes them: numbers, 0 where a dim is that of `from` at its place, and at
// most one -1. Nothing where types do not tell.
std::optional<std::vector<std::int64_t>> reshape_target(const Shape& from, const Shape& result);
// The same with elements of a known shape value.
std::optional<std::vector<std::int64_t>> reshape_target(const Shape& from, const KnownValue& shape);

}  // namespace mk
