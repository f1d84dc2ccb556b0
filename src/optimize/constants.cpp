#include "optimize/constants.h"

#include <algorithm>
#include <array>

namespace mk {
namespace {

constexpr int longest_chain = 16;  // of Identity and Cast before a constant

const Tensor* attribute_tensor(const Node& node, std::string_view name) {
  const Attribute* attribute = node.attribute(name);
  const auto* held = attribute ? std::get_if<std::shared_ptr<const Tensor>>(&attribute->value) : nullptr;
  return held ? held->get() : nullptr;
}

template <typename T>
std::optional<Tensor> held(const Node& node, std::string_view name, DataType type) {
  const Attribute* attribute = node.attribute(name);
  if (!attribute) return std::nullopt;
  if (const auto* one = std::get_if<T>(&attribute->value)) {
    return make_tensor({}, type, {}, owned_values(std::vector<T>{*one}));
  }
  const auto* many = std::get_if<std::vector<T>>(&attribute->value);
  if (!many) return std::nullopt;
  return make_tensor({}, type, {static_cast<std::int64_t>(many->size())}, owned_values(*many));
}

std::optional<Tensor> constant_node(const Node& node) {
  if (const Tensor* tensor = attribute_tensor(node, "value")) {
    return tensor->data ? std::optional(*tensor) : std::nullopt;
  }
  for (const char* name : {"value_int", "value_ints"}) {
    if (auto tensor = held<std::int64_t>(node, name, DataType::int64)) return tensor;
  }
  for (const char* name : {"value_float", "value_floats"}) {
    if (auto tensor = held<float>(node, name, DataType::float32)) return tensor;
  }
  return std::nullopt;
}

bool is_cast_between(DataType from, DataType to) {
  const auto is_number = [](DataType type) { return is_integer(type) || type == DataType::boolean; };
  constexpr std::array floats{DataType::float64, DataType::float32, DataType::float16, DataType::bfloat16};
  const auto is_plain_float = [&](DataType type) {
    return std::find(floats.begin(), floats.end(), type) != floats.end();
  };
  return (is_plain_float(from) && is_plain_float(to)) || (is_number(from) && is_number(to) && bits_of(from) >= 8 &&
                                                          bits_of(to) >= bits_of(from) && to != DataType::boolean);
}

}  // namespace

std::optional<Tensor> constant_of(const Value* value) {
  std::vector<DataType> casts;
  for (int step = 0; value && step < longest_chain; ++step) {
    std::optional<Tensor> found;
    if (const Tensor* tensor = value->initializer()) {
      if (value->is_graph_input() || !tensor->data) return std::nullopt;
      found = *tensor;
    } else {
      const Node* node = value->producer();
      if (!node || !node->domain.empty()) return std::nullopt;
      if (node->op_type == "Identity") {
        value = node->input(0);
        continue;
      }
      if (node->op_type == "Cast") {
        casts.push_back(static_cast<DataType>(node->integer("to", 0)));
        value = node->input(0);
        continue;
      }
      if (node->op_type == "Constant") found = constant_node(*node);
    }
    if (!found) return std::nullopt;
    for (auto to = casts.rbegin(); to != casts.rend(); ++to) {
      if (*to == found->type) continue;
      if (!is_cast_between(found->type, *to)) return std::nullopt;
      found->data = cast(found->data, found->type, *to);
      found->type = *to;
    }
    return found;
  }
  return std::nullopt;
}

bool is_constant(const Value* value) { return constant_of(value).has_value(); }

std::optional<double> scalar_of(const Value* value) {
  const std::optional<Tensor> tensor = constant_of(value);
  if (!tensor || tensor->element_count() != 1) return std::nullopt;
  const auto values = number_values(*tensor);
  return values ? std::optional(values->front()) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> integers_of(const Value* value) {
  const std::optional<Tensor> tensor = constant_of(value);
  if (!tensor || !is_integer(tensor->type)) return std::nullopt;
  auto values = integer_values(*tensor);
  return values ? std::optional(std::move(*values)) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> static_dims(const Value* value) {
  if (!value || !value->type.is_tensor() || !value->type.shape) return std::nullopt;
  std::vector<std::int64_t> dims;
  for (const Dim& dim : *value->type.shape) {
    if (!dim.is_known()) return std::nullopt;
    dims.push_back(dim.value);
  }
  return dims;
}

bool same_shape(const Value* a, const Value* b) {
  if (!a || !b || !a->type.shape || !b->type.shape || a->type.shape->size() != b->type.shape->size()) return false;
  for (std::size_t i = 0; i < a->type.shape->size(); ++i) {
    const Dim &x = (*a->type.shape)[i], &y = (*b->type.shape)[i];
    if (x.is_known() ? x.value != y.value : !x.is_symbolic() || y.is_known() || x.symbol != y.symbol) return false;
  }
  return true;
}

int rank_of(const Value* value) {
  return value && value->type.is_tensor() && value->type.shape ? static_cast<int>(value->type.shape->size()) : -1;
}

Dim dim_of(const Value* value, int axis) {
  const int rank = rank_of(value);
  const int index = axis < 0 ? axis + rank : axis;
  return rank > 0 && index >= 0 && index < rank ? (*value->type.shape)[static_cast<std::size_t>(index)] : Dim{};
}

}  // namespace mk
