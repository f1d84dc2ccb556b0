// Nodes that give what they get go: Identity, Cast to the same type and back, Dropout outside training, Reshape, Expand
// and the like to the same shape, Transpose in the same order, a full Slice, a Pad of nothing, Add 0, Mul 1, Relu of
// Relu, Concat and Sum of one, Where of one side only. Which layouts cancel is for transpose-optimizer.

#include <algorithm>
#include <array>

#include "optimize/pass.h"

namespace mk {
namespace {

bool is_number(const Value* value, double wanted) {
  const auto scalar = scalar_of(value);
  return scalar && *scalar == wanted;
}

bool is_plain(const Node* node, std::string_view op_type) {
  return node && node->op_type == op_type && (node->domain.empty() || node->domain == "ai.onnx");
}

// Of a binary operator: its operand that stays where the other is the neutral element and broadcasts nothing.
Value* without_neutral(const Node& node, double neutral, bool either_side) {
  const Value* output = node.output(0);
  for (std::size_t side = 0; side < 2; ++side) {
    if (side == 0 && !either_side) continue;
    Value* rest = node.input(1 - side);
    if (rest && same_shape(rest, output) && is_number(node.input(side), neutral)) return rest;
  }
  return nullptr;
}

Value* input(const Node& node) { return node.input(0); }
Value* single(const Node& node) { return node.inputs().size() == 1 ? node.input(0) : nullptr; }
Value* same_shaped(const Node& node) { return same_shape(node.input(0), node.output(0)) ? node.input(0) : nullptr; }

// Every value of `from` is one of `to`.
bool is_lossless(DataType from, DataType to) {
  const auto row = [](DataType type, std::initializer_list<DataType> targets, DataType given, DataType wanted) {
    return type == given && std::find(targets.begin(), targets.end(), wanted) != targets.end();
  };
  using T = DataType;
  return from == to || row(T::float16, {T::float32, T::float64}, from, to) ||
         row(T::bfloat16, {T::float32, T::float64}, from, to) || row(T::float32, {T::float64}, from, to) ||
         row(T::boolean, {T::uint8, T::int8, T::int32, T::int64, T::float16, T::float32, T::float64}, from, to) ||
         row(T::int8, {T::int16, T::int32, T::int64, T::float32, T::float64}, from, to) ||
         row(T::uint8, {T::int16, T::uint16, T::int32, T::int64, T::float32, T::float64}, from, to) ||
         row(T::int16, {T::int32, T::int64, T::float32, T::float64}, from, to) ||
         row(T::uint16, {T::int32, T::int64, T::float32, T::float64}, from, to) ||
         row(T::int32, {T::int64, T::float64}, from, to) || row(T::uint32, {T::int64, T::float64}, from, to);
}

// To the type that it has, or back to the type that it had, where the one in between keeps all of it.
Value* same_type(const Node& node) {
  Value* x = node.input(0);
  if (!x || !x->type.is_tensor()) return nullptr;
  const auto to = static_cast<DataType>(node.integer("to", 0));
  if (x->type.element == to) return x;
  const Node* before = x->producer();
  if (!is_plain(before, "Cast") || !before->input(0) || !before->input(0)->type.is_tensor()) return nullptr;
  const DataType first = before->input(0)->type.element;
  return first == to && is_lossless(first, x->type.element) ? before->input(0) : nullptr;
}

Value* inactive(const Node& node) {
  const bool only_data = node.outputs().size() < 2 || !node.output(1) || node.output(1)->is_unused();
  const bool training = node.input(2) && !is_number(node.input(2), 0);
  return only_data && !training ? node.input(0) : nullptr;
}

Value* same_order(const Node& node) {
  const std::vector<std::int64_t>* order = node.integers("perm");
  const int rank = rank_of(node.input(0));
  if (rank == 0 || rank == 1) return node.input(0);
  if (!order || !std::is_sorted(order->begin(), order->end())) return nullptr;
  return node.input(0);
}

// A Slice whose result has the shape of its input takes all of it, unless it goes backwards.
Value* full_slice(const Node& node) {
  if (!same_shape(node.input(0), node.output(0))) return nullptr;
  if (!node.input(4)) return node.input(0);
  const auto steps = integers_of(node.input(4));
  const bool forwards = steps && std::all_of(steps->begin(), steps->end(), [](auto step) { return step == 1; });
  return forwards ? node.input(0) : nullptr;
}

Value* empty_pad(const Node& node) {
  const auto* attribute = node.integers("pads");
  const auto pads = attribute ? std::optional(*attribute) : integers_of(node.input(1));
  const bool nothing = pads && std::all_of(pads->begin(), pads->end(), [](auto pad) { return pad == 0; });
  return nothing ? node.input(0) : nullptr;
}

Value* clipped_twice(const Node& node) {
  const Value* x = node.input(0);
  return x && is_plain(x->producer(), "Relu") ? node.input(0) : nullptr;
}

Value* one_side(const Node& node) {
  const auto condition = constant_of(node.input(0));
  const auto values = condition ? number_values(*condition) : fail(ErrorCode::failed, "computed");
  if (!values || values->empty()) return nullptr;
  const double first = values->front();
  if (!std::all_of(values->begin(), values->end(), [&](double v) { return v == first; })) return nullptr;
  Value* taken = node.input(first != 0 ? 1 : 2);
  return same_shape(taken, node.output(0)) ? taken : nullptr;
}

Value* doubly_negated(const Node& node) {
  const Value* x = node.input(0);
  return x && is_plain(x->producer(), node.op_type) ? x->producer()->input(0) : nullptr;
}

struct Row {
  const char* op_type;
  Value* (*replacement)(const Node& node);  // null where the node does something
};
constexpr std::array rows{
    Row{"Identity", input},
    Row{"Cast", same_type},
    Row{"Dropout", inactive},
    Row{"Reshape", same_shaped},
    Row{"Flatten", same_shaped},
    Row{"Squeeze", same_shaped},
    Row{"Unsqueeze", same_shaped},
    Row{"Tile", same_shaped},
    Row{"Transpose", same_order},
    Row{"Concat", single},
    Row{"Sum", single},
    Row{"Max", single},
    Row{"Min", single},
    Row{"Mean", single},
    Row{"Pad", empty_pad},
    Row{"Relu", clipped_twice},
    Row{"Not", doubly_negated},
    Row{"Neg", doubly_negated},
    Row{"Where", one_side},
    Row{"Add", [](const Node& node) { return without_neutral(node, 0, true); }},
    Row{"Sub", [](const Node& node) { return without_neutral(node, 0, false); }},
    Row{"Mul", [](const Node& node) { return without_neutral(node, 1, true); }},
    Row{"Div", [](const Node& node) { return without_neutral(node, 1, false); }},
    Row{"And", [](const Node& node) { return without_neutral(node, 1, true); }},
    Row{"Or", [](const Node& node) { return without_neutral(node, 0, true); }},
};
constexpr std::array expand_rows{Row{"Expand", same_shaped}};
constexpr std::array slice_rows{Row{"Slice", full_slice}};

Status eliminate(PassRun& run, std::span<const Row> table) {
  for (const Row& row : table) {
    const std::vector<Node*>& nodes = run.index().of(row.op_type);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i] || !nodes[i]->output(0) || nodes[i]->output(0)->is_unused()) continue;
      Value* replacement = row.replacement(*nodes[i]);
      if (!replacement) continue;
      Patch patch(run.opset());
      patch.replace(nodes[i]->output(0), replacement);
      run.apply(std::move(patch), *nodes[i]);
    }
  }
  return {};
}

}  // namespace

extern const Pass eliminate_no_ops, expand_elimination, slice_elimination;
const Pass eliminate_no_ops{.name = "eliminate-no-ops",
                            .summary = "Nodes that give what they get go",
                            .run = [](PassRun& run) { return eliminate(run, rows); }};
const Pass expand_elimination{.name = "expand-elimination",
                              .category = "elimination",
                              .summary = "An Expand to the shape that there is goes",
                              .run = [](PassRun& run) { return eliminate(run, expand_rows); }};
const Pass slice_elimination{.name = "slice-elimination",
                             .category = "elimination",
                             .summary = "A Slice that takes all goes",
                             .run = [](PassRun& run) { return eliminate(run, slice_rows); }};

}  // namespace mk
