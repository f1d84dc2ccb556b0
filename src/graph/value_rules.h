#pragma once
// Data propagation: the elements of small integer tensors, from those of an operator's inputs. Covers what exporters
// make shapes with: arithmetic, comparison and layout of shapes, ranges, constants, reductions.

#include <optional>
#include <string_view>

#include "graph/known_value.h"
#include "graph/node_facts.h"

namespace mk {

// The elements of output `index`, whose inferred type is `output`; nothing where none can be said.
using ValueRule = std::optional<KnownValue> (*)(const NodeFacts& node, const Type& output, std::size_t index);

// The rule for an operator of ai.onnx; null where there is none.
ValueRule value_rule(std::string_view op_type);

// The elements of a small integer (or whole-numbered float) tensor.
std::optional<KnownValue> known_value_of(const Tensor& tensor);

// Whether a whole number is exactly representable in a type.
bool is_representable(std::int64_t value, DataType type);
// The dims of a tensor type that are all known.
std::optional<std::vector<std::int64_t>> known_dims(const Type& type);

// Rules of value_rules_elementwise.cpp and value_rules_layout.cpp.
struct ValueRuleRow {
  std::string_view op_type;
  ValueRule rule;
};
std::span<const ValueRuleRow> elementwise_value_rules();
std::span<const ValueRuleRow> layout_value_rules();

}  // namespace mk
