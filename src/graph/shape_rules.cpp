#include "graph/shape_rules.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

namespace mk {
namespace {

std::optional<SymbolicInt> product(const Shape& shape, std::size_t from, std::size_t to) {
  std::optional<SymbolicInt> total = SymbolicInt(1);
  for (std::size_t i = from; i < to && total; ++i) {
    const auto factor = SymbolicInt::of(shape[i]);
    total = factor ? multiply(*total, *factor) : std::nullopt;
  }
  return total;
}

void complete_concat(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* first = node.input_shape(0);
  Shape* out = first ? shape_of_rank(outputs, first->size()) : nullptr;
  const auto axis = out ? normal_axis(node.integer("axis", 0), out->size()) : std::nullopt;
  if (!axis) return;
  std::optional<SymbolicInt> length = SymbolicInt(0);
  for (std::size_t i = 0; i < node.input_count() && length; ++i) {
    const Shape* shape = node.input_shape(i);
    const auto part = shape && shape->size() == out->size() ? SymbolicInt::of((*shape)[*axis]) : std::nullopt;
    length = part ? add(*length, *part) : std::nullopt;
  }
  complete((*out)[*axis], length);
}

void complete_flatten(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  Shape* out = in ? shape_of_rank(outputs, 2) : nullptr;
  if (!out) return;
  const std::int64_t axis = node.integer("axis", 1);
  const auto rank = static_cast<std::int64_t>(in->size());
  if (axis < -rank || axis > rank) return;
  const auto at = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  complete((*out)[0], product(*in, 0, at));
  complete((*out)[1], product(*in, at, in->size()));
}

// Length of the slice [start, end) of a dimension, in steps of one; dimensions are taken to hold at least one element.
std::optional<SymbolicInt> slice_length(const SymbolicInt& dim, SymbolicInt start, SymbolicInt end) {
  const auto is_inside = [](const std::optional<SymbolicInt>& at) { return at && at->is_non_negative(1); };
  for (SymbolicInt* at : {&start, &end}) {
    if (!at->is_known() || at->value() >= 0) continue;
    const auto from_the_back = add(dim, *at);
    if (!is_inside(from_the_back)) return std::nullopt;
    *at = *from_the_back;
  }
  if (end.is_known() && end.value() >= INT32_MAX) end = dim;
  if (!is_inside(subtract(dim, end))) {
    // Past the end is the end.
    if (start != SymbolicInt(0) || !is_inside(end)) return std::nullopt;
    return minimum(dim, end);
  }
  const auto length = subtract(end, start);
  return is_inside(start) && is_inside(length) ? length : std::nullopt;
}

void complete_slice(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  Shape* out = in ? shape_of_rank(outputs, in->size()) : nullptr;
  if (!out) return;
  const bool by_attribute = node.attribute("starts") != nullptr;
  std::vector<std::int64_t> axes(in->size());
  std::iota(axes.begin(), axes.end(), 0);
  const auto bounds = [&](std::string_view name, std::size_t input) -> std::optional<KnownValue> {
    if (const auto* list = node.integers(name)) {
      return KnownValue{DataType::int64, {static_cast<std::int64_t>(list->size())}, {list->begin(), list->end()}};
    }
    const KnownValue* value = node.input_value(input);
    return value ? std::optional(*value) : std::nullopt;
  };
  const auto starts = bounds("starts", 1);
  const auto ends = bounds("ends", 2);
  if (by_attribute ? node.integers("axes") != nullptr : node.has_input(3)) {
    const auto given = node.integers_or_input("axes", 3, {});
    if (!given) return;
    axes = *given;
  } else if (starts && starts->elements.size() <= axes.size()) {
    axes.resize(starts->elements.size());
  } else if (const Shape* length = node.input_shape(1); length && length->size() == 1 && (*length)[0].is_known() &&
                                                        (*length)[0].value <= static_cast<std::int64_t>(axes.size())) {
    axes.resize(static_cast<std::size_t>((*length)[0].value));
  }
  std::vector<bool> sliced(in->size(), false);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = normal_axis(axes[i], in->size());
    if (!axis || sliced[*axis]) return;
    sliced[*axis] = true;
    const auto steps = node.has_input(4) ? node.input_constants(4) : std::optional(std::vector<std::int64_t>{});
    const bool by_one = steps && (i >= steps->size() || (*steps)[i] == 1);
    const auto dim = SymbolicInt::of((*in)[*axis]);
    if (!by_one || !dim || !starts || !ends || i >= starts->elements.size() || i >= ends->elements.size()) continue;
    const auto& start = starts->elements[i];
    const auto& end = ends->elements[i];
    if (start && end) complete((*out)[*axis], slice_length(*dim, *start, *end));
  }
  for (std::size_t axis = 0; axis < in->size(); ++axis) {
    if (!sliced[axis]) complete((*out)[axis], SymbolicInt::of((*in)[axis]));
  }
}

void complete_split(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  const auto axis = in ? normal_axis(node.integer("axis", 0), in->size()) : std::nullopt;
  if (!axis) return;
  const auto sizes = node.integers_or_input("split", 1, {});
  const auto whole = SymbolicInt::of((*in)[*axis]);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_tensor() || !outputs[i].shape || outputs[i].shape->size() != in->size()) continue;
    std::optional<SymbolicInt> part;
    if (sizes && !sizes->empty()) {
      if (i < sizes->size()) part = SymbolicInt((*sizes)[i]);
    } else if (sizes && whole) {
      part = divide_exactly(*whole, static_cast<std::int64_t>(outputs.size()));
    }
    complete((*outputs[i].shape)[*axis], part);
  }
}

void complete_pad(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  Shape* out = in ? shape_of_rank(outputs, in->size()) : nullptr;
  const KnownValue* pads = out ? node.input_value(1) : nullptr;
  if (!pads || node.has_input(3) || pads->elements.size() != 2 * in->size()) return;
  for (std::size_t i = 0; i < in->size(); ++i) {
    const auto dim = SymbolicInt::of((*in)[i]);
    const auto& before = pads->elements[i];
    const auto& after = pads->elements[i + in->size()];
    if (!dim || !before || !after) continue;
    const auto longer = add(*dim, *before);
    complete((*out)[i], longer ? add(*longer, *after) : std::nullopt);
  }
}

void complete_tile(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  Shape* out = in ? shape_of_rank(outputs, in->size()) : nullptr;
  const KnownValue* repeats = out ? node.input_value(1) : nullptr;
  if (!repeats || repeats->elements.size() != in->size()) return;
  for (std::size_t i = 0; i < in->size(); ++i) {
    const auto dim = SymbolicInt::of((*in)[i]);
    const auto& times = repeats->elements[i];
    complete((*out)[i], dim && times ? multiply(*dim, *times) : std::nullopt);
  }
}

void complete_range(const NodeFacts& node, std::vector<Type>& outputs) {
  Shape* out = shape_of_rank(outputs, 1);
  if (!out || node.input_count() != 3) return;
  std::array<std::optional<SymbolicInt>, 3> values;  // start, limit, step
  for (std::size_t i = 0; i < 3; ++i) {
    const KnownValue* value = node.input_value(i);
    if (!value || value->elements.size() != 1 || !value->elements[0]) return;
    values[i] = value->elements[0];
  }
  const bool forward = values[2]->is_known() && values[2]->value() > 0;
  const auto extent = forward ? subtract(*values[1], *values[0]) : std::nullopt;
  if (extent && extent->is_non_negative()) complete((*out)[0], divide_up(*extent, values[2]->value()));
}

// x and min(512, x) broadcast to x: they are equal, or no run succeeds.
bool is_minimum_of(const std::string& text, const std::string& other) {
  return text.starts_with("min(") && text.ends_with(", " + other + ")") &&
         SymbolicInt::of_text(other).is_non_negative();
}

void complete_expand(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  const KnownValue* target = node.input_value(1);
  if (!in || !target || target->dims.size() != 1) return;
  Shape* out = shape_of_rank(outputs, std::max(in->size(), target->elements.size()));
  if (!out) return;
  for (std::size_t i = 0; i < out->size(); ++i) {
    // Counted from the back; where one side has no such dimension the other's is the result.
    const auto own = i < in->size() ? SymbolicInt::of((*in)[in->size() - 1 - i]) : SymbolicInt(1);
    const auto wanted =
        i < target->elements.size() ? target->elements[target->elements.size() - 1 - i] : SymbolicInt(1);
    if (!own || !wanted) continue;
    std::optional<SymbolicInt> result;
    if (*wanted == SymbolicInt(1) || *own == *wanted) result = own;
    if (*own == SymbolicInt(1) || is_minimum_of(own->to_string(), wanted->to_string())) result = wanted;
    complete((*out)[out->size() - 1 - i], result);
  }
}

void complete_broadcast(const NodeFacts& node, std::vector<Type>& outputs) {
  Shape* out = outputs.empty() || !outputs[0].shape ? nullptr : &*outputs[0].shape;
  for (std::size_t back = 1; out && back <= out->size(); ++back) {
    Dim& dim = (*out)[out->size() - back];
    if (dim.is_known() || dim.is_symbolic()) continue;
    const Dim* largest = nullptr;
    bool agree = true;
    for (std::size_t i = 0; i < node.input_count(); ++i) {
      const Shape* shape = node.input_shape(i);
      if (!shape || shape->size() < back) continue;
      const Dim& own = (*shape)[shape->size() - back];
      if (own.is_known()) continue;  // a 1: others the library has seen to
      if (!largest || is_minimum_of(largest->symbol, own.symbol)) {
        largest = &own;
      } else {
        agree &= own.symbol == largest->symbol || is_minimum_of(own.symbol, largest->symbol);
      }
    }
    if (largest && agree) complete(dim, SymbolicInt::of(*largest));
  }
}

// The onnx library has only a function body here.
InferredTypes infer_group_normalization(const NodeFacts& node) {
  InferredTypes result{std::vector<Type>(node.output_count()), {}, false};
  if (const Type* input = node.input_type(0); input && !result.outputs.empty()) result.outputs[0] = *input;
  return result;
}

struct TypeRuleRow {
  std::string_view op_type;
  TypeRule rule;
};
constexpr std::array type_rules{
    TypeRuleRow{"GroupNormalization", infer_group_normalization},
    TypeRuleRow{"Reshape", infer_reshape},
};

struct CompletionRow {
  std::string_view op_type;
  ShapeCompletion rule;
};
constexpr std::array completions{
    CompletionRow{"Add", complete_broadcast},
    CompletionRow{"And", complete_broadcast},
    CompletionRow{"AveragePool", complete_pooling},
    CompletionRow{"Concat", complete_concat},
    CompletionRow{"Conv", complete_convolution},
    CompletionRow{"ConvInteger", complete_convolution},
    CompletionRow{"ConvTranspose", complete_transposed_convolution},
    CompletionRow{"Div", complete_broadcast},
    CompletionRow{"Equal", complete_broadcast},
    CompletionRow{"Expand", complete_expand},
    CompletionRow{"Flatten", complete_flatten},
    CompletionRow{"Greater", complete_broadcast},
    CompletionRow{"GreaterOrEqual", complete_broadcast},
    CompletionRow{"Less", complete_broadcast},
    CompletionRow{"LessOrEqual", complete_broadcast},
    CompletionRow{"LpPool", complete_pooling},
    CompletionRow{"MaxPool", complete_pooling},
    CompletionRow{"Mul", complete_broadcast},
    CompletionRow{"Or", complete_broadcast},
    CompletionRow{"Pad", complete_pad},
    CompletionRow{"Pow", complete_broadcast},
    CompletionRow{"QLinearConv", complete_convolution},
    CompletionRow{"Range", complete_range},
    CompletionRow{"Resize", complete_resize},
    CompletionRow{"Slice", complete_slice},
    CompletionRow{"Split", complete_split},
    CompletionRow{"Sub", complete_broadcast},
    CompletionRow{"Sum", complete_broadcast},
    CompletionRow{"Tile", complete_tile},
    CompletionRow{"Upsample", complete_resize},
    CompletionRow{"Where", complete_broadcast},
};

template <typename Rows>
auto look_up(const Rows& rows, std::string_view op_type) -> decltype(rows[0].rule) {
  for (const auto& row : rows) {
    if (row.op_type == op_type) return row.rule;
  }
  return nullptr;
}

}  // namespace

TypeRule type_rule(std::string_view op_type) { return look_up(type_rules, op_type); }
ShapeCompletion shape_completion(std::string_view op_type) { return look_up(completions, op_type); }

Shape* shape_of_rank(std::vector<Type>& outputs, std::size_t rank) {
  if (outputs.empty() || !outputs[0].is_tensor() || !outputs[0].shape || outputs[0].shape->size() != rank) {
    return nullptr;
  }
  return &*outputs[0].shape;
}

void complete(Dim& dim, const std::optional<SymbolicInt>& value) {
  if (!value || dim.is_known() || dim.is_symbolic()) return;
  Dim found = value->to_dim();
  dim.value = found.value;
  dim.symbol = std::move(found.symbol);
}

}  // namespace mk
