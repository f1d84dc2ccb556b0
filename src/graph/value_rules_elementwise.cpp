// Arithmetic, comparison and choice on known elements, with broadcasting.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "graph/value_rules.h"

namespace mk {
namespace {

using Element = KnownValue::Element;

struct Operands {
  std::span<const Element* const> values;
  DataType type;  // of the inputs (of the last one for Where)
  const Element& operator[](std::size_t i) const { return *values[i]; }
};

Element add_elements(const Operands& x) {
  Element sum = x[0];
  for (std::size_t i = 1; sum && i < x.values.size(); ++i) sum = x[i] ? add(*sum, *x[i]) : std::nullopt;
  return sum;
}
Element subtract_elements(const Operands& x) { return x[0] && x[1] ? subtract(*x[0], *x[1]) : std::nullopt; }

Element multiply_elements(const Operands& x) {
  // 0 times anything: also where the other factor is not known (in floats it could be infinite).
  const bool zero = (x[0] && *x[0] == SymbolicInt(0)) || (x[1] && *x[1] == SymbolicInt(0));
  if (zero && !is_float(x.type)) return SymbolicInt(0);
  return x[0] && x[1] ? multiply(*x[0], *x[1]) : std::nullopt;
}

// Towards zero for integers; for floats only where the quotient is whole.
Element divide_elements(const Operands& x) {
  if (!x[0] || !x[1] || *x[1] == SymbolicInt(0)) return std::nullopt;
  const SymbolicInt& a = *x[0];
  const SymbolicInt& b = *x[1];
  if (const auto exact = divide_exactly(a, b)) return exact;
  if (is_float(x.type) || !b.is_known()) return std::nullopt;
  if (a.is_known()) {
    const bool overflows = a.value() == std::numeric_limits<std::int64_t>::min() && b.value() == -1;
    return overflows ? Element() : Element(a.value() / b.value());
  }
  return a.is_non_negative() ? divide_down(a, b.value()) : std::nullopt;
}

Element modulo_elements(const Operands& x) {
  if (!x[0] || !x[1] || *x[1] == SymbolicInt(0)) return std::nullopt;
  if (divide_exactly(*x[0], *x[1])) return SymbolicInt(0);
  // Signs differ between fmod and mod: only what both agree on.
  if (!x[0]->is_known() || !x[1]->is_known() || x[0]->value() < 0 || x[1]->value() < 0) return std::nullopt;
  return SymbolicInt(x[0]->value() % x[1]->value());
}

// a - b, where its sign can be told: 1, 0, -1; 2 for "not negative", -2 for "not positive"; nothing otherwise.
std::optional<int> compare(const Element& a, const Element& b) {
  if (!a || !b) return std::nullopt;
  const auto difference = subtract(*a, *b);
  if (!difference) return std::nullopt;
  if (difference->is_known()) return difference->value() > 0 ? 1 : difference->value() < 0 ? -1 : 0;
  if (difference->is_positive()) return 1;
  if (difference->is_non_negative()) return 2;
  const auto opposite = subtract(*b, *a);
  if (opposite && opposite->is_positive()) return -1;
  if (opposite && opposite->is_non_negative()) return -2;
  return std::nullopt;
}

Element truth(bool value) { return SymbolicInt(value ? 1 : 0); }

Element equal_elements(const Operands& x) {
  const auto sign = compare(x[0], x[1]);
  if (!sign || *sign == 2 || *sign == -2) return std::nullopt;
  return truth(*sign == 0);
}

Element greater_elements(const Operands& x) {
  const auto sign = compare(x[0], x[1]);
  if (!sign || *sign == 2) return std::nullopt;
  return truth(*sign == 1);
}

Element greater_or_equal_elements(const Operands& x) {
  const auto sign = compare(x[0], x[1]);
  if (!sign || *sign == -2) return std::nullopt;
  return truth(*sign >= 0);
}

Element swapped(const Operands& x, Element (*operation)(const Operands&)) {
  const std::array<const Element*, 2> reversed{x.values[1], x.values[0]};
  return operation({reversed, x.type});
}
Element less_elements(const Operands& x) { return swapped(x, greater_elements); }
Element less_or_equal_elements(const Operands& x) { return swapped(x, greater_or_equal_elements); }

Element largest_element(const Operands& x) {
  Element best = x[0];
  for (std::size_t i = 1; i < x.values.size(); ++i) {
    const auto sign = compare(best, x[i]);
    if (!sign) return std::nullopt;
    if (*sign < 0) best = x[i];
  }
  return best;
}

Element smallest_element(const Operands& x) {
  Element best = x[0];
  for (std::size_t i = 1; best && i < x.values.size(); ++i) best = x[i] ? minimum(*best, *x[i]) : std::nullopt;
  return best;
}

Element square_root(const Element& x) {
  if (!x || !x->is_known() || x->value() < 0) return std::nullopt;
  const auto root = static_cast<std::int64_t>(std::llround(std::sqrt(static_cast<double>(x->value()))));
  return root < INT32_MAX && root * root == x->value() ? Element(root) : Element();
}
Element square_root_element(const Operands& x) { return square_root(x[0]); }

// Exponents that shapes are computed with: 2, and a half.
std::optional<KnownValue> power(const NodeFacts& node, const Type&, std::size_t) {
  const KnownValue* base = node.input_value(0);
  const Tensor* exponent = node.input_tensor(1);
  const auto numbers = exponent ? number_values(*exponent) : Result<std::vector<double>>();
  if (!base || !numbers || numbers->size() != 1 || exponent->dims.size() > base->dims.size()) return std::nullopt;
  KnownValue result{base->type, base->dims, {}};
  for (const Element& element : base->elements) {
    Element value;
    if ((*numbers)[0] == 0.5) value = square_root(element);
    if ((*numbers)[0] == 1.0) value = element;
    if ((*numbers)[0] == 2.0 && element) value = multiply(*element, *element);
    if (value && value->is_known() && !is_representable(value->value(), result.type)) value.reset();
    result.elements.push_back(std::move(value));
  }
  return result;
}

Element negate_element(const Operands& x) { return x[0] ? multiply(*x[0], -1) : std::nullopt; }

Element absolute_element(const Operands& x) {
  if (!x[0] || x[0]->is_non_negative()) return x[0];
  const auto opposite = multiply(*x[0], -1);
  return opposite && opposite->is_non_negative() ? opposite : std::nullopt;
}

Element same_element(const Operands& x) { return x[0]; }

std::optional<bool> as_bool(const Element& element) {
  return element && element->is_known() ? std::optional(element->value() != 0) : std::nullopt;
}

Element not_element(const Operands& x) {
  const auto value = as_bool(x[0]);
  return value ? truth(!*value) : Element();
}

Element and_elements(const Operands& x) {
  const auto a = as_bool(x[0]);
  const auto b = as_bool(x[1]);
  if ((a && !*a) || (b && !*b)) return truth(false);
  return a && b ? truth(true) : Element();
}

Element or_elements(const Operands& x) {
  const auto a = as_bool(x[0]);
  const auto b = as_bool(x[1]);
  if ((a && *a) || (b && *b)) return truth(true);
  return a && b ? truth(false) : Element();
}

Element where_elements(const Operands& x) {
  const auto condition = as_bool(x[0]);
  if (condition) return *condition ? x[1] : x[2];
  return x[1] == x[2] ? x[1] : Element();
}

std::optional<std::vector<std::int64_t>> broadcast(std::span<const KnownValue* const> inputs) {
  std::size_t rank = 0;
  for (const KnownValue* input : inputs) rank = std::max(rank, input->dims.size());
  std::vector<std::int64_t> dims(rank, 1);
  for (const KnownValue* input : inputs) {
    const std::size_t offset = rank - input->dims.size();
    for (std::size_t i = 0; i < input->dims.size(); ++i) {
      std::int64_t& dim = dims[offset + i];
      if (input->dims[i] == 1 || input->dims[i] == dim) continue;
      if (dim != 1) return std::nullopt;
      dim = input->dims[i];
    }
  }
  return dims;
}

// Index into a broadcast operand of the element at `index` of the result.
std::size_t operand_index(std::size_t index, const std::vector<std::int64_t>& result,
                          const std::vector<std::int64_t>& operand) {
  std::size_t at = 0;
  std::size_t stride = 1;
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const auto extent = static_cast<std::size_t>(result[result.size() - 1 - i]);
    const auto own = static_cast<std::size_t>(operand[operand.size() - 1 - i]);
    if (own != 1) at += index % extent * stride;
    stride *= own;
    index /= extent;
  }
  return at;
}

DataType element_type(const Type& output, DataType otherwise) {
  return output.is_tensor() && output.element != DataType::undefined ? output.element : otherwise;
}

template <Element (*operation)(const Operands&)>
std::optional<KnownValue> elementwise(const NodeFacts& node, const Type& output, std::size_t) {
  std::vector<const KnownValue*> inputs;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    inputs.push_back(node.input_value(i));
    if (!inputs.back()) return std::nullopt;
  }
  if (inputs.empty()) return std::nullopt;
  const auto dims = broadcast(inputs);
  const auto count = dims ? known_count(*dims) : std::nullopt;
  if (!count) return std::nullopt;
  const DataType type = inputs.back()->type;
  KnownValue result{element_type(output, type), *dims, {}};
  std::vector<const Element*> operands(inputs.size());
  for (std::size_t i = 0; i < *count; ++i) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      operands[k] = &inputs[k]->elements[operand_index(i, *dims, inputs[k]->dims)];
    }
    Element element = operation({operands, type});
    if (element && element->is_known() && !is_representable(element->value(), result.type)) element.reset();
    result.elements.push_back(std::move(element));
  }
  return result;
}

// To bool: whether it is not zero. To a number: itself, where the type holds it; symbols are taken to be small enough
// for any type of at least 32 bits.
std::optional<KnownValue> cast_value(const NodeFacts& node, const Type& output, std::size_t) {
  const KnownValue* input = node.input_value(0);
  const DataType to = element_type(output, DataType::undefined);
  if (!input || to == DataType::undefined || to == DataType::string) return std::nullopt;
  KnownValue result{to, input->dims, {}};
  for (const Element& element : input->elements) {
    Element cast;
    if (element && to == DataType::boolean) {
      if (element->is_known()) cast = truth(element->value() != 0);
      if (element->is_positive()) cast = truth(true);
    } else if (element && (element->is_known() ? is_representable(element->value(), to) : bits_of(to) >= 32)) {
      cast = element;
    }
    result.elements.push_back(std::move(cast));
  }
  return result;
}

}  // namespace

std::span<const ValueRuleRow> elementwise_value_rules() {
  static constexpr std::array rows{
      ValueRuleRow{"Abs", elementwise<absolute_element>},
      ValueRuleRow{"Add", elementwise<add_elements>},
      ValueRuleRow{"And", elementwise<and_elements>},
      ValueRuleRow{"Cast", cast_value},
      ValueRuleRow{"CastLike", cast_value},
      ValueRuleRow{"Ceil", elementwise<same_element>},
      ValueRuleRow{"Div", elementwise<divide_elements>},
      ValueRuleRow{"Equal", elementwise<equal_elements>},
      ValueRuleRow{"Floor", elementwise<same_element>},
      ValueRuleRow{"Greater", elementwise<greater_elements>},
      ValueRuleRow{"GreaterOrEqual", elementwise<greater_or_equal_elements>},
      ValueRuleRow{"Less", elementwise<less_elements>},
      ValueRuleRow{"LessOrEqual", elementwise<less_or_equal_elements>},
      ValueRuleRow{"Max", elementwise<largest_element>},
      ValueRuleRow{"Min", elementwise<smallest_element>},
      ValueRuleRow{"Mod", elementwise<modulo_elements>},
      ValueRuleRow{"Mul", elementwise<multiply_elements>},
      ValueRuleRow{"Neg", elementwise<negate_element>},
      ValueRuleRow{"Not", elementwise<not_element>},
      ValueRuleRow{"Or", elementwise<or_elements>},
      ValueRuleRow{"Pow", power},
      ValueRuleRow{"Round", elementwise<same_element>},
      ValueRuleRow{"Sqrt", elementwise<square_root_element>},
      ValueRuleRow{"Sub", elementwise<subtract_elements>},
      ValueRuleRow{"Sum", elementwise<add_elements>},
      ValueRuleRow{"Where", elementwise<where_elements>},
  };
  return rows;
}

}  // namespace mk
