#include "optimize/known_values.h"

#include <algorithm>

#include "graph/value_rules.h"

namespace mk {
namespace {

bool is_plain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

// The dims of the input, from `start` to `end`.
std::optional<KnownValue> shape_value(const NodeFacts& facts) {
  const Shape* shape = facts.input_shape(0);
  if (!shape) return std::nullopt;
  const auto rank = static_cast<std::int64_t>(shape->size());
  const auto bound = [&](std::int64_t value) {
    return std::clamp<std::int64_t>(value < 0 ? value + rank : value, 0, rank);
  };
  const std::int64_t start = bound(facts.integer("start", 0)), end = bound(facts.integer("end", rank));
  KnownValue known{DataType::int64, {std::max<std::int64_t>(end - start, 0)}, {}};
  for (std::int64_t i = start; i < end; ++i) {
    known.elements.push_back(SymbolicInt::of((*shape)[static_cast<std::size_t>(i)]));
  }
  return known;
}

}  // namespace

void KnownValues::follow(const Node& node) {
  for (const Value* output : node.outputs()) values_.erase(output);
  if (!is_plain(node.domain)) return;
  const bool is_shape = node.op_type == "Shape";
  const ValueRule rule = is_shape ? nullptr : value_rule(node.op_type);
  if (!rule && !is_shape) return;
  const NodeFacts facts(node, model_.opset(), *this);
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.output(i);
    if (!output || !output->type.is_tensor()) continue;
    const auto dims = known_dims(output->type);
    if (!dims || !known_count(*dims)) continue;
    std::optional<KnownValue> known = is_shape ? shape_value(facts) : rule(facts, output->type, i);
    if (!known || known->dims != *dims) continue;
    known->type = output->type.element;
    values_[output] = std::move(*known);
  }
}

const KnownValue* KnownValues::value_of(const Value& value) {
  if (const Tensor* tensor = value.initializer()) {
    if (value.is_graph_input() || !tensor->data) return nullptr;
    Constant& held = constants_[&value];
    if (held.data != tensor->data) held = {tensor->data, known_value_of(*tensor)};
    return held.known ? &*held.known : nullptr;
  }
  const auto found = values_.find(&value);
  return found == values_.end() ? nullptr : &found->second;
}

const Tensor* KnownValues::tensor_of(const Value& value) {
  const Tensor* tensor = value.is_graph_input() ? nullptr : value.initializer();
  return tensor && tensor->data && tensor->data->size() <= 1024 ? tensor : nullptr;
}

namespace {

template <typename ElementAt>
std::optional<std::vector<std::int64_t>> target(const Shape& from, std::size_t count, const ElementAt& element_at) {
  std::vector<std::int64_t> dims;
  int unknown = 0;
  bool has_zero = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::optional<SymbolicInt> wanted = element_at(i);
    if (wanted && wanted->is_known()) {
      if (wanted->value() < 0) return std::nullopt;
      has_zero |= wanted->value() == 0;
      dims.push_back(wanted->value());
      continue;
    }
    const auto there = i < from.size() ? SymbolicInt::of(from[i]) : std::nullopt;
    const bool is_copied = wanted && there && *wanted == *there;
    dims.push_back(is_copied ? 0 : -1);
    unknown += is_copied ? 0 : 1;
  }
  // A dimension of length 0 would be taken for a copy, and nothing can be inferred from it.
  if (unknown > 1 || has_zero) return std::nullopt;
  return dims;
}

}  // namespace

std::optional<std::vector<std::int64_t>> reshape_target(const Shape& from, const Shape& result) {
  return target(from, result.size(), [&](std::size_t i) { return SymbolicInt::of(result[i]); });
}

std::optional<std::vector<std::int64_t>> reshape_target(const Shape& from, const KnownValue& shape) {
  if (shape.dims.size() != 1) return std::nullopt;
  return target(from, shape.elements.size(), [&](std::size_t i) { return shape.elements[i]; });
}

}  // namespace mk
