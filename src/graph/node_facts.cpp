#include "graph/node_facts.h"

namespace mk {

const Type* NodeFacts::input_type(std::size_t i) const {
  return has_input(i) && node_.input(i)->type.kind != Type::Kind::none ? &node_.input(i)->type : nullptr;
}

const Shape* NodeFacts::input_shape(std::size_t i) const {
  const Type* type = input_type(i);
  return type && type->is_tensor() && type->shape ? &*type->shape : nullptr;
}

const KnownValue* NodeFacts::input_value(std::size_t i) const {
  return has_input(i) ? state_.value_of(*node_.input(i)) : nullptr;
}

const Tensor* NodeFacts::input_tensor(std::size_t i) const {
  return has_input(i) ? state_.tensor_of(*node_.input(i)) : nullptr;
}

std::optional<std::vector<std::int64_t>> NodeFacts::input_constants(std::size_t i) const {
  const KnownValue* value = input_value(i);
  if (!value || !value->is_constant()) return std::nullopt;
  return value->constants();
}

const Attribute* NodeFacts::attribute(std::string_view name) const {
  const Attribute* found = node_.attribute(name);
  return found ? state_.resolve(*found) : nullptr;
}

std::int64_t NodeFacts::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* found = attribute(name);
  const auto* value = found ? std::get_if<std::int64_t>(&found->value) : nullptr;
  return value ? *value : otherwise;
}

std::string_view NodeFacts::string(std::string_view name, std::string_view otherwise) const {
  const Attribute* found = attribute(name);
  const auto* value = found ? std::get_if<std::string>(&found->value) : nullptr;
  return value ? *value : otherwise;
}

const std::vector<std::int64_t>* NodeFacts::integers(std::string_view name) const {
  const Attribute* found = attribute(name);
  return found ? std::get_if<std::vector<std::int64_t>>(&found->value) : nullptr;
}

std::optional<std::vector<std::int64_t>> NodeFacts::integers_or_input(std::string_view name, std::size_t input,
                                                                      std::vector<std::int64_t> otherwise) const {
  if (const auto* list = integers(name)) return *list;
  if (!has_input(input)) return otherwise;
  return input_constants(input);
}

std::optional<std::size_t> normal_axis(std::int64_t axis, std::size_t rank) {
  const auto signed_rank = static_cast<std::int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) return std::nullopt;
  return static_cast<std::size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::optional<std::size_t> known_count(const std::vector<std::int64_t>& dims) {
  std::size_t count = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0 || dim > static_cast<std::int64_t>(max_known_elements)) return std::nullopt;
    count *= static_cast<std::size_t>(dim);
    if (count > max_known_elements) return std::nullopt;
  }
  return count;
}

}  // namespace mk
