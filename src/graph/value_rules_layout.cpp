// Where elements come from: constants, shapes, slices, concatenations, reductions.

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "graph/value_rules.h"

namespace mk {
namespace {

using Element = KnownValue::Element;
using Dims = std::vector<std::int64_t>;

std::size_t extent(const Dims& dims, std::size_t from, std::size_t to) {
  std::size_t product = 1;
  for (std::size_t i = from; i < to; ++i) product *= static_cast<std::size_t>(dims[i]);
  return product;
}

// A copy of `source` whose `axis` holds the slices at `picks`.
KnownValue take(const KnownValue& source, std::size_t axis, const Dims& picks) {
  KnownValue result{source.type, source.dims, {}};
  result.dims[axis] = static_cast<std::int64_t>(picks.size());
  const std::size_t outer = extent(source.dims, 0, axis);
  const std::size_t inner = extent(source.dims, axis + 1, source.dims.size());
  const auto length = static_cast<std::size_t>(source.dims[axis]);
  for (std::size_t o = 0; o < outer; ++o) {
    for (const std::int64_t pick : picks) {
      const auto start = static_cast<std::ptrdiff_t>((o * length + static_cast<std::size_t>(pick)) * inner);
      result.elements.insert(result.elements.end(), source.elements.begin() + start,
                             source.elements.begin() + start + static_cast<std::ptrdiff_t>(inner));
    }
  }
  return result;
}

// Identity, Reshape, Squeeze, Unsqueeze, Flatten: the elements in the same order.
std::optional<KnownValue> same_elements(const NodeFacts& node, const Type& output, std::size_t index) {
  const KnownValue* input = node.input_value(0);
  const auto dims = known_dims(output);
  const auto count = dims ? known_count(*dims) : std::nullopt;
  if (index != 0 || !input || !count || *count != input->elements.size()) return std::nullopt;
  return KnownValue{input->type, *dims, input->elements};
}

std::optional<KnownValue> constant(const NodeFacts& node, const Type&, std::size_t) {
  const auto whole = [](float value) {
    return value == static_cast<float>(static_cast<std::int32_t>(value)) ? Element(static_cast<std::int32_t>(value))
                                                                         : Element();
  };
  if (const Attribute* value = node.attribute("value")) {
    const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&value->value);
    return tensor && *tensor ? known_value_of(**tensor) : std::nullopt;
  }
  if (const auto* list = node.integers("value_ints")) {
    if (list->size() > max_known_elements) return std::nullopt;
    return KnownValue{DataType::int64, {static_cast<std::int64_t>(list->size())}, {list->begin(), list->end()}};
  }
  const Attribute* scalar = node.attribute("value_int");
  if (const auto* integer = scalar ? std::get_if<std::int64_t>(&scalar->value) : nullptr) {
    return KnownValue{DataType::int64, {}, {*integer}};
  }
  const Attribute* real = node.attribute("value_float");
  if (const auto* value = real ? std::get_if<float>(&real->value) : nullptr; value && std::abs(*value) < 1e6F) {
    return KnownValue{DataType::float32, {}, {whole(*value)}};
  }
  return std::nullopt;
}

std::optional<KnownValue> size(const NodeFacts& node, const Type&, std::size_t) {
  const Shape* shape = node.input_shape(0);
  if (!shape) return std::nullopt;
  Element product = SymbolicInt(1);
  for (const Dim& dim : *shape) {
    const auto factor = SymbolicInt::of(dim);
    product = product && factor ? multiply(*product, *factor) : std::nullopt;
  }
  return KnownValue{DataType::int64, {}, {product}};
}

std::optional<KnownValue> gather(const NodeFacts& node, const Type&, std::size_t) {
  const KnownValue* source = node.input_value(0);
  if (!source) return std::nullopt;
  const KnownValue& data = *source;
  const KnownValue* indices = node.input_value(1);
  const auto axis = normal_axis(node.integer("axis", 0), data.dims.size());
  if (!indices || !axis) return std::nullopt;
  Dims dims(data.dims.begin(), data.dims.begin() + static_cast<std::ptrdiff_t>(*axis));
  dims.insert(dims.end(), indices->dims.begin(), indices->dims.end());
  dims.insert(dims.end(), data.dims.begin() + static_cast<std::ptrdiff_t>(*axis) + 1, data.dims.end());
  if (!known_count(dims)) return std::nullopt;
  // An index that is not known gives elements that are not known.
  const std::size_t outer = extent(data.dims, 0, *axis);
  const std::size_t inner = extent(data.dims, *axis + 1, data.dims.size());
  const std::int64_t length = data.dims[*axis];
  KnownValue result{data.type, dims, {}};
  for (std::size_t o = 0; o < outer; ++o) {
    for (const Element& index : indices->elements) {
      std::int64_t at = -1;
      if (index && index->is_known()) at = index->value() < 0 ? index->value() + length : index->value();
      for (std::size_t i = 0; i < inner; ++i) {
        const bool inside = at >= 0 && at < length;
        const std::size_t from =
            inside ? (o * static_cast<std::size_t>(length) + static_cast<std::size_t>(at)) * inner : 0;
        result.elements.push_back(inside ? data.elements[from + i] : Element());
      }
    }
  }
  return result;
}

std::optional<KnownValue> concat(const NodeFacts& node, const Type& output, std::size_t) {
  if (!output.is_tensor() || !output.shape) return std::nullopt;
  const auto axis = normal_axis(node.integer("axis", 0), output.shape->size());
  if (!axis || node.input_count() > max_known_elements) return std::nullopt;
  std::vector<KnownValue> parts;
  Dims dims;
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    const KnownValue* part = node.input_value(i);
    if (part) {
      parts.push_back(*part);
    } else {
      // Nothing known but how many: the others stay known.
      const Type* type = node.input_type(i);
      const auto own = type ? known_dims(*type) : std::nullopt;
      const auto count = own ? known_count(*own) : std::nullopt;
      if (!count) return std::nullopt;
      parts.push_back({type->element, *own, std::vector<Element>(*count)});
    }
    if (parts.back().dims.size() != output.shape->size()) return std::nullopt;
    if (i == 0) {
      dims = parts.back().dims;
      continue;
    }
    for (std::size_t d = 0; d < dims.size(); ++d) {
      if (d == *axis) {
        dims[d] += parts.back().dims[d];
      } else if (dims[d] != parts.back().dims[d]) {
        return std::nullopt;
      }
    }
  }
  if (parts.empty() || !known_count(dims)) return std::nullopt;
  KnownValue result{parts[0].type, dims, {}};
  const std::size_t outer = extent(dims, 0, *axis);
  for (std::size_t o = 0; o < outer; ++o) {
    for (const KnownValue& part : parts) {
      const std::size_t block = extent(part.dims, *axis, part.dims.size());
      const auto start = part.elements.begin() + static_cast<std::ptrdiff_t>(o * block);
      result.elements.insert(result.elements.end(), start, start + static_cast<std::ptrdiff_t>(block));
    }
  }
  return result;
}

std::optional<KnownValue> slice(const NodeFacts& node, const Type&, std::size_t) {
  const KnownValue* source = node.input_value(0);
  if (!source) return std::nullopt;
  KnownValue result = *source;
  const auto starts = node.integers_or_input("starts", 1, {});
  const auto ends = node.integers_or_input("ends", 2, {});
  if (!starts || !ends || starts->size() != ends->size()) return std::nullopt;
  Dims all(starts->size());
  std::iota(all.begin(), all.end(), 0);
  const auto axes = node.integers_or_input("axes", 3, all);
  const auto steps = node.has_input(4) ? node.input_constants(4) : std::optional(Dims(starts->size(), 1));
  if (!axes || !steps || axes->size() != starts->size() || steps->size() != starts->size()) return std::nullopt;
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const auto axis = normal_axis((*axes)[i], result.dims.size());
    const std::int64_t step = (*steps)[i];
    if (!axis || step == 0) return std::nullopt;
    const std::int64_t length = result.dims[*axis];
    const auto bound = [&](std::int64_t at, std::int64_t least, std::int64_t most) {
      return std::clamp(at < 0 && at >= -length ? at + length : at < 0 ? std::int64_t{-1} : at, least, most);
    };
    Dims picks;
    if (step > 0) {
      const std::int64_t end = bound((*ends)[i], 0, length);
      for (std::int64_t at = bound((*starts)[i], 0, length); at < end; at += std::min(step, length))
        picks.push_back(at);
    } else {
      const std::int64_t end = bound((*ends)[i], -1, length - 1);
      for (std::int64_t at = bound((*starts)[i], -1, length - 1); at > end; at += std::max(step, -length)) {
        picks.push_back(at);
      }
    }
    result = take(result, *axis, picks);
  }
  return result;
}

std::optional<KnownValue> split(const NodeFacts& node, const Type& output, std::size_t index) {
  const KnownValue* source = node.input_value(0);
  if (!source) return std::nullopt;
  const KnownValue& data = *source;
  const auto axis = normal_axis(node.integer("axis", 0), data.dims.size());
  const auto own = known_dims(output);
  if (!axis || !own || own->size() != data.dims.size()) return std::nullopt;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < index; ++i) {
    const Value* before = node.node().output(i);
    const auto dims = before ? known_dims(before->type) : std::nullopt;
    if (!dims || dims->size() <= *axis || (*dims)[*axis] > data.dims[*axis] - start) return std::nullopt;
    start += (*dims)[*axis];
  }
  const std::int64_t length = (*own)[*axis];
  if (length > data.dims[*axis] - start) return std::nullopt;
  Dims picks(static_cast<std::size_t>(length));
  std::iota(picks.begin(), picks.end(), start);
  return take(data, *axis, picks);
}

std::optional<KnownValue> transpose(const NodeFacts& node, const Type&, std::size_t) {
  const KnownValue* source = node.input_value(0);
  if (!source) return std::nullopt;
  const std::size_t rank = source->dims.size();
  Dims order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(rank - 1 - i);
  if (const auto* perm = node.integers("perm")) order = *perm;
  Dims sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) return std::nullopt;
  }
  if (order.size() != rank) return std::nullopt;
  KnownValue result{source->type, Dims(rank), {}};
  std::vector<std::size_t> strides(rank);
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<std::size_t>(order[i]);
    result.dims[i] = source->dims[axis];
    strides[i] = extent(source->dims, axis + 1, rank);
  }
  for (std::size_t at = 0; at < source->elements.size(); ++at) {
    std::size_t rest = at;
    std::size_t from = 0;
    for (std::size_t i = rank; i-- > 0;) {
      const auto length = static_cast<std::size_t>(result.dims[i]);
      from += rest % length * strides[i];
      rest /= length;
    }
    result.elements.push_back(source->elements[from]);
  }
  return result;
}

// Expand and Tile of tensors with one element, or without effect.
std::optional<KnownValue> repeated(const NodeFacts& node, const Type& output, std::size_t) {
  const KnownValue* source = node.input_value(0);
  const auto dims = known_dims(output);
  const auto count = dims ? known_count(*dims) : std::nullopt;
  if (!source || !count) return std::nullopt;
  if (source->elements.size() == 1) {
    return KnownValue{source->type, *dims, std::vector<Element>(*count, source->elements[0])};
  }
  if (*count != source->elements.size()) return std::nullopt;
  return KnownValue{source->type, *dims, source->elements};
}

std::optional<KnownValue> constant_of_shape(const NodeFacts& node, const Type& output, std::size_t) {
  const auto dims = known_dims(output);
  const auto count = dims ? known_count(*dims) : std::nullopt;
  if (!count) return std::nullopt;
  KnownValue result{DataType::float32, *dims, std::vector<Element>(*count, SymbolicInt(0))};
  if (const Attribute* value = node.attribute("value")) {
    const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&value->value);
    const auto fill = tensor && *tensor ? known_value_of(**tensor) : std::nullopt;
    if (!fill || fill->elements.size() != 1) return std::nullopt;
    result.type = fill->type;
    std::fill(result.elements.begin(), result.elements.end(), fill->elements[0]);
  }
  return result;
}

std::optional<KnownValue> range(const NodeFacts& node, const Type& output, std::size_t) {
  const auto dims = known_dims(output);
  const auto count = dims && dims->size() == 1 ? known_count(*dims) : std::nullopt;
  if (!count || !node.input_value(0) || node.input_value(0)->elements.size() != 1) return std::nullopt;
  const KnownValue& start = *node.input_value(0);
  const KnownValue* step = node.input_value(2);
  if (!step || step->elements.size() != 1 || !step->elements[0]) return std::nullopt;
  KnownValue result{start.type, *dims, {}};
  Element next = start.elements[0];
  for (std::size_t i = 0; i < *count; ++i) {
    result.elements.push_back(next);
    next = next ? add(*next, *step->elements[0]) : std::nullopt;
  }
  return result;
}

Element sum_of(const Element& a, const Element& b) { return a && b ? add(*a, *b) : std::nullopt; }
Element product_of(const Element& a, const Element& b) { return a && b ? multiply(*a, *b) : std::nullopt; }

// Over all elements of a vector.
template <Element (*combine)(const Element&, const Element&), int neutral>
std::optional<KnownValue> reduce(const NodeFacts& node, const Type& output, std::size_t) {
  const KnownValue* source = node.input_value(0);
  const auto dims = known_dims(output);
  if (!source || source->dims.size() != 1 || !dims || known_count(*dims) != std::size_t{1}) return std::nullopt;
  const KnownValue& data = *source;
  const auto axes = node.integers_or_input("axes", 1, {});
  if (!axes || (axes->empty() && node.integer("noop_with_empty_axes", 0) != 0)) return std::nullopt;
  Element total = SymbolicInt(neutral);
  for (const Element& element : data.elements) total = combine(total, element);
  if (total && total->is_known() && !is_representable(total->value(), data.type)) total.reset();
  return KnownValue{data.type, *dims, {total}};
}

}  // namespace

std::span<const ValueRuleRow> layout_value_rules() {
  static constexpr std::array rows{
      ValueRuleRow{"Concat", concat},
      ValueRuleRow{"Constant", constant},
      ValueRuleRow{"ConstantOfShape", constant_of_shape},
      ValueRuleRow{"Expand", repeated},
      ValueRuleRow{"Flatten", same_elements},
      ValueRuleRow{"Gather", gather},
      ValueRuleRow{"Identity", same_elements},
      ValueRuleRow{"Range", range},
      ValueRuleRow{"ReduceProd", reduce<product_of, 1>},
      ValueRuleRow{"ReduceSum", reduce<sum_of, 0>},
      ValueRuleRow{"Reshape", same_elements},
      ValueRuleRow{"Size", size},
      ValueRuleRow{"Slice", slice},
      ValueRuleRow{"Split", split},
      ValueRuleRow{"Squeeze", same_elements},
      ValueRuleRow{"Tile", repeated},
      ValueRuleRow{"Transpose", transpose},
      ValueRuleRow{"Unsqueeze", same_elements},
  };
  return rows;
}

}  // namespace mk
