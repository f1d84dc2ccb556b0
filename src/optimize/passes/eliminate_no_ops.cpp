// Nodes that give what they get: Identity, Cast to the same type, Dropout outside training, Reshape and Expand to the
// same shape, Transpose in the same order, Add 0, Mul 1, Concat of one.

#include <algorithm>
#include <array>

#include "optimize/pass.h"

namespace mk {
namespace {

bool is_float_zero(const Value* value, double wanted) {
  const auto scalar = scalar_of(value);
  return scalar && *scalar == wanted;
}

// Of a binary operator: its operand that stays where the other is the neutral element and broadcasts nothing.
Value* without_neutral(const Node& node, double neutral, bool either_side) {
  const Value* output = node.output(0);
  for (std::size_t side = 0; side < 2; ++side) {
    if (side == 0 && !either_side) continue;
    Value* rest = node.input(1 - side);
    if (rest && same_shape(rest, output) && is_float_zero(node.input(side), neutral)) return rest;
  }
  return nullptr;
}

Value* same_type(const Node& node) {
  Value* x = node.input(0);
  const bool same = x && x->type.is_tensor() && static_cast<std::int64_t>(x->type.element) == node.integer("to", 0);
  return same ? x : nullptr;
}
Value* input(const Node& node) { return node.input(0); }
Value* inactive(const Node& node) {
  const bool only_data = node.outputs().size() < 2 || !node.output(1) || node.output(1)->is_unused();
  const bool training = node.input(2) && !is_float_zero(node.input(2), 0);
  return only_data && !training ? node.input(0) : nullptr;
}
Value* same_shaped(const Node& node) { return same_shape(node.input(0), node.output(0)) ? node.input(0) : nullptr; }
Value* same_order(const Node& node) {
  const std::vector<std::int64_t>* order = node.integers("perm");
  if (!order || !std::is_sorted(order->begin(), order->end())) return nullptr;
  return node.input(0);
}
Value* single(const Node& node) { return node.inputs().size() == 1 ? node.input(0) : nullptr; }

struct Row {
  const char* op_type;
  Value* (*replacement)(const Node& node);  // null where the node does something
};
constexpr std::array rows{
    Row{"Identity", input},
    Row{"Cast", same_type},
    Row{"Dropout", inactive},
    Row{"Reshape", same_shaped},
    Row{"Expand", same_shaped},
    Row{"Transpose", same_order},
    Row{"Concat", single},
    Row{"Add", [](const Node& node) { return without_neutral(node, 0, true); }},
    Row{"Sub", [](const Node& node) { return without_neutral(node, 0, false); }},
    Row{"Mul", [](const Node& node) { return without_neutral(node, 1, true); }},
    Row{"Div", [](const Node& node) { return without_neutral(node, 1, false); }},
};

Status run(PassRun& run) {
  for (const Row& row : rows) {
    const std::vector<Node*>& nodes = run.index().of(row.op_type);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i] || !nodes[i]->output(0)) continue;
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

extern const Pass eliminate_no_ops;
const Pass eliminate_no_ops{.name = "eliminate-no-ops", .summary = "Nodes that give what they get go", .run = run};

}  // namespace mk
