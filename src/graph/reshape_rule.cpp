// Reshape as its specification and ONNX Runtime have it: 0 copies the dimension at its position unless allowzero is
// set; -1 is what remains of the input's elements, once. The onnx library leaves symbolic cases open and does not
// compare element counts.

#include <algorithm>

#include "graph/shape_rules.h"

namespace mk {
namespace {

InferredTypes impossible(InferredTypes result, std::string why) {
  if (!result.outputs.empty()) result.outputs[0].shape.reset();
  result.problem = std::move(why);
  result.impossible = true;
  return result;
}

std::string describe(const KnownValue& target) {
  std::string text;
  for (const auto& element : target.elements) {
    text += (text.empty() ? "" : ", ") + (element ? element->to_string() : std::string("?"));
  }
  return "[" + text + "]";
}

struct Sides {
  std::optional<SymbolicInt> input = SymbolicInt(1);   // elements on either side, without the dimensions that
  std::optional<SymbolicInt> output = SymbolicInt(1);  // both have; nothing where one of them is not known
};

// `copied` are the positions whose output dimension is the input's, known or not.
Sides cancel(const Shape& in, const Shape& out, const std::vector<bool>& copied, std::optional<std::size_t> hole) {
  std::vector<const Dim*> left;
  std::vector<const Dim*> right;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i >= copied.size() || !copied[i]) left.push_back(&in[i]);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (copied[i] || i == hole) continue;
    const auto same = std::find_if(left.begin(), left.end(), [&](const Dim* dim) {
      return dim->is_symbolic() && out[i].is_symbolic() && dim->symbol == out[i].symbol;
    });
    if (same == left.end()) {
      right.push_back(&out[i]);
    } else {
      left.erase(same);
    }
  }
  const auto multiply_all = [](const std::vector<const Dim*>& dims) {
    std::optional<SymbolicInt> total = SymbolicInt(1);
    for (const Dim* dim : dims) {
      const auto factor = SymbolicInt::of(*dim);
      total = total && factor ? multiply(*total, *factor) : std::nullopt;
    }
    return total;
  };
  return {multiply_all(left), multiply_all(right)};
}

}  // namespace

InferredTypes infer_reshape(const NodeFacts& node) {
  InferredTypes result{std::vector<Type>(node.output_count()), {}, false};
  if (result.outputs.empty()) return result;
  const Type* data = node.input_type(0);
  result.outputs[0] = Type::tensor(data && data->is_tensor() ? data->element : DataType::undefined);

  const KnownValue* known = node.input_value(1);
  if (!known || known->dims.size() != 1) {
    // Only the rank, from the length of the shape input.
    const Shape* length = node.input_shape(1);
    if (length && length->size() == 1 && (*length)[0].is_known() && (*length)[0].value <= 64) {
      result.outputs[0].shape = Shape(static_cast<std::size_t>((*length)[0].value));
    }
    return result;
  }
  const KnownValue& target = *known;
  const bool allow_zero = node.opset() >= 14 && node.integer("allowzero", 0) != 0;
  const Shape* in = node.input_shape(0);

  Shape out(target.elements.size());
  std::vector<bool> copied(out.size(), false);
  std::optional<std::size_t> hole;
  bool has_zero = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto& element = target.elements[i];
    if (!element) continue;
    if (!element->is_known() || element->value() > 0) {
      out[i] = element->to_dim();
    } else if (element->value() == 0 && allow_zero) {
      out[i] = Dim::known(0);
      has_zero = true;
    } else if (element->value() == 0) {
      if (in && i >= in->size()) {
        return impossible(std::move(result), "the 0 at position " + std::to_string(i) + " of its shape " +
                                                 describe(target) + " has no dimension of the input " + to_string(*in) +
                                                 " to copy");
      }
      copied[i] = true;
      if (in) out[i] = (*in)[i];
    } else if (element->value() == -1) {
      if (hole) return impossible(std::move(result), "its shape " + describe(target) + " has more than one -1");
      hole = i;
    } else {
      return impossible(std::move(result),
                        "its shape " + describe(target) + " has a negative dimension that is not -1");
    }
  }
  if (allow_zero && has_zero && hole) {
    return impossible(std::move(result), "its shape " + describe(target) + " has both 0 and -1, and allowzero is set");
  }
  result.outputs[0].shape = out;
  if (!in) return result;

  Shape& shape = *result.outputs[0].shape;
  if (!hole) {
    // One dimension whose value is not known can be told from the others, like a -1.
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].is_known() || out[i].is_symbolic() || copied[i]) continue;
      if (hole) return result;
      hole = i;
    }
  }
  // Where all is known, 0 elements count: they fit any shape with a 0, but leave nothing to tell a -1 from.
  const bool known_input = std::all_of(in->begin(), in->end(), [](const Dim& dim) { return dim.is_known(); });
  const Sides sides = cancel(*in, out, known_input ? std::vector<bool>(out.size(), false) : copied, hole);
  if (!sides.input || !sides.output) return result;
  if (sides.input->is_known() && sides.output->is_known()) {
    const std::int64_t given = sides.input->value();
    const std::int64_t wanted = sides.output->value();
    if (hole ? wanted == 0 || given % wanted != 0 : given != wanted) {
      if (!known_input) return result;  // a dimension left out above may be 0, which makes them equal
      return impossible(std::move(result),
                        "an input of shape " + to_string(*in) + " cannot be reshaped to " + describe(target));
    }
  }
  if (!hole) return result;
  auto quotient = divide_exactly(*sides.input, *sides.output);
  if (!quotient && sides.output->is_known() && !sides.input->is_known()) {
    quotient = divide_down(*sides.input, sides.output->value());
  }
  complete(shape[*hole], quotient);
  return result;
}

}  // namespace mk
