#include "graph/value_rules.h"

#include <cmath>
#include <unordered_map>

namespace mk {

ValueRule value_rule(std::string_view op_type) {
  static const auto table = [] {
    std::unordered_map<std::string_view, ValueRule> rules;
    for (const auto& [name, rule] : elementwise_value_rules()) rules.emplace(name, rule);
    for (const auto& [name, rule] : layout_value_rules()) rules.emplace(name, rule);
    return rules;
  }();
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

bool is_representable(std::int64_t value, DataType type) {
  switch (type) {
    case DataType::boolean:
      return value == 0 || value == 1;
    case DataType::int64:
      return true;
    case DataType::uint64:
      return value >= 0;
    case DataType::int8:
    case DataType::int16:
    case DataType::int32: {
      const std::int64_t limit = std::int64_t{1} << (bits_of(type) - 1);
      return value >= -limit && value < limit;
    }
    case DataType::uint8:
    case DataType::uint16:
    case DataType::uint32:
      return value >= 0 && value < std::int64_t{1} << bits_of(type);
    case DataType::float64:
      return std::llabs(value / 2) <= std::int64_t{1} << 52;
    case DataType::float32:
      return std::llabs(value / 2) <= std::int64_t{1} << 23;
    case DataType::float16:
      return std::llabs(value / 2) <= 1024;
    case DataType::bfloat16:
      return std::llabs(value / 2) <= 128;
    default:
      return false;
  }
}

std::optional<std::vector<std::int64_t>> known_dims(const Type& type) {
  if (!type.is_tensor() || !type.shape) return std::nullopt;
  std::vector<std::int64_t> dims;
  for (const Dim& dim : *type.shape) {
    if (!dim.is_known()) return std::nullopt;
    dims.push_back(dim.value);
  }
  return dims;
}

std::optional<KnownValue> known_value_of(const Tensor& tensor) {
  const auto count = known_count(tensor.dims);
  if (!count || !tensor.data) return std::nullopt;
  KnownValue known{tensor.type, tensor.dims, {}};
  if (is_integer(tensor.type) || tensor.type == DataType::boolean) {
    const auto values = integer_values(tensor);
    if (!values || values->size() != *count) return std::nullopt;
    known.elements.assign(values->begin(), values->end());
    return known;
  }
  const auto values = number_values(tensor);
  if (!values || values->size() != *count) return std::nullopt;
  for (const double value : *values) {
    const bool whole = std::abs(value) < 1e15 && value == std::floor(value);
    known.elements.push_back(whole ? KnownValue::Element(static_cast<std::int64_t>(value)) : std::nullopt);
  }
  return known;
}

}  // namespace mk
