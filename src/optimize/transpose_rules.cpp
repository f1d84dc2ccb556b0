#include "optimize/transpose_rules.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include "graph/node_facts.h"
#include "optimize/constants.h"

namespace mk {
namespace {

using Rule = std::optional<ReorderedNode> (*)(const Node& node, std::size_t at, const Permutation& perm,
                                              std::int64_t opset);

bool has_one_element(const Value* value) {
  const auto dims = static_dims(value);
  return dims && std::all_of(dims->begin(), dims->end(), [](std::int64_t dim) { return dim == 1; });
}

// Every input of the rank is in the order, constants are put into it, and single elements stay.
std::optional<ReorderedNode> elementwise(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  ReorderedNode result{.results = perm};
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Value* input = node.input(i);
    if (!input) continue;
    const int rank = rank_of(input);
    if (rank < 0 || rank > static_cast<int>(perm.size())) return std::nullopt;
    if (i != at && has_one_element(input)) continue;
    if (is_constant(input)) {
      if (bits_of(input->type.element) < 8) return std::nullopt;
      result.constant.push_back(i);
    } else if (rank == static_cast<int>(perm.size())) {
      result.moved.push_back(i);
    } else {
      return std::nullopt;
    }
  }
  return result;
}

// The first input is in the order, the others are settings.
std::optional<ReorderedNode> unary(const Node&, std::size_t at, const Permutation& perm, std::int64_t) {
  if (at != 0) return std::nullopt;
  return ReorderedNode{.moved = {0}, .results = perm};
}

std::optional<ReorderedNode> along_axis(const Node& node, std::size_t at, const Permutation& perm,
                                        std::int64_t otherwise, const char* name = "axis") {
  if (at != 0) return std::nullopt;
  const auto axis = normal_axis(node.integer(name, otherwise), perm.size());
  if (!axis) return std::nullopt;
  ReorderedNode result{.moved = {0}, .results = perm};
  result.axis.emplace_back(name, perm[*axis]);
  return result;
}

std::optional<ReorderedNode> softmax(const Node& node, std::size_t at, const Permutation& perm, std::int64_t opset) {
  if (opset < 13) return std::nullopt;  // it flattens before
  return along_axis(node, at, perm, -1);
}

std::optional<ReorderedNode> concat(const Node& node, std::size_t at, const Permutation& perm, std::int64_t opset) {
  auto result = elementwise(node, at, perm, opset);
  const auto axis = normal_axis(node.integer("axis", 0), perm.size());
  if (!result || !axis || result->moved.size() + result->constant.size() != node.inputs().size()) return std::nullopt;
  result->axis.emplace_back("axis", perm[*axis]);
  return result;
}

std::optional<ReorderedNode> split(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  return along_axis(node, at, perm, 0);
}

// Axes of an attribute, or of a constant input; nothing where they are neither given nor known.
std::optional<std::vector<std::int64_t>> axes_of(const Node& node, std::size_t input) {
  if (const auto* list = node.integers("axes")) return *list;
  return node.input(input) ? integers_of(node.input(input)) : std::nullopt;
}

void set_axes(const Node& node, std::size_t input, std::vector<std::int64_t> axes, ReorderedNode& result) {
  if (node.attribute("axes")) {
    result.axes.emplace_back("axes", std::move(axes));
  } else {
    result.integers.emplace_back(input, std::move(axes));
  }
}

std::optional<std::vector<std::int64_t>> mapped(const std::vector<std::int64_t>& axes, const Permutation& perm) {
  std::vector<std::int64_t> result;
  for (const std::int64_t axis : axes) {
    const auto normal = normal_axis(axis, perm.size());
    if (!normal) return std::nullopt;
    result.push_back(perm[*normal]);
  }
  return result;
}

std::optional<ReorderedNode> slice(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  const auto axes = axes_of(node, 3);
  const auto moved = axes ? mapped(*axes, perm) : std::nullopt;
  if (at != 0 || !moved) return std::nullopt;
  ReorderedNode result{.moved = {0}, .results = perm};
  set_axes(node, 3, *moved, result);
  return result;
}

std::optional<ReorderedNode> pad(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  const auto* attribute = node.integers("pads");
  const auto pads = attribute ? std::optional(*attribute) : integers_of(node.input(1));
  if (at != 0 || node.input(3) || !pads || pads->size() != 2 * perm.size()) return std::nullopt;
  std::vector<std::int64_t> moved(pads->size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    const auto to = static_cast<std::size_t>(perm[i]);
    moved[to] = (*pads)[i];
    moved[perm.size() + to] = (*pads)[perm.size() + i];
  }
  ReorderedNode result{.moved = {0}, .results = perm};
  if (attribute) {
    result.axes.emplace_back("pads", std::move(moved));
  } else {
    result.integers.emplace_back(1, std::move(moved));
  }
  return result;
}

// The order of the dims that stay when those of `axes` go.
Permutation without(const Permutation& perm, const std::vector<std::int64_t>& axes) {
  std::vector<bool> gone(perm.size(), false);
  for (const std::int64_t axis : axes) gone[*normal_axis(axis, perm.size())] = true;
  std::vector<std::int64_t> kept;  // dims of the new order that stay
  for (std::size_t i = 0; i < perm.size(); ++i) {
    if (!gone[i]) kept.push_back(perm[i]);
  }
  std::vector<std::int64_t> sorted = kept;
  std::sort(sorted.begin(), sorted.end());
  for (std::int64_t& dim : kept) dim = std::lower_bound(sorted.begin(), sorted.end(), dim) - sorted.begin();
  return kept;
}

std::optional<ReorderedNode> reduce(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  const bool keeps = node.integer("keepdims", 1) != 0;
  if (at != 0) return std::nullopt;
  const auto axes = axes_of(node, 1);
  const auto moved = axes ? mapped(*axes, perm) : std::nullopt;
  if (!moved || moved->empty()) return std::nullopt;
  ReorderedNode result{.moved = {0}, .results = keeps ? perm : without(perm, *axes)};
  set_axes(node, 1, *moved, result);
  return result;
}

std::optional<ReorderedNode> arg_extreme(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  auto result = along_axis(node, at, perm, 0);
  if (result && node.integer("keepdims", 1) == 0) result->results = without(perm, {node.integer("axis", 0)});
  return result;
}

std::optional<ReorderedNode> squeeze(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  const auto axes = axes_of(node, 1);
  const auto moved = axes ? mapped(*axes, perm) : std::nullopt;
  if (at != 0 || !moved) return std::nullopt;
  ReorderedNode result{.moved = {0}, .results = without(perm, *axes)};
  set_axes(node, 1, *moved, result);
  return result;
}

// New dims stand at the same place in both orders.
std::optional<ReorderedNode> unsqueeze(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  const auto axes = axes_of(node, 1);
  if (at != 0 || !axes) return std::nullopt;
  const std::size_t rank = perm.size() + axes->size();
  std::vector<bool> is_new(rank, false);
  for (const std::int64_t axis : *axes) {
    const auto normal = normal_axis(axis, rank);
    if (!normal || is_new[*normal]) return std::nullopt;
    is_new[*normal] = true;
  }
  std::vector<std::int64_t> old;
  for (std::size_t i = 0; i < rank; ++i) {
    if (!is_new[i]) old.push_back(static_cast<std::int64_t>(i));
  }
  ReorderedNode result{.moved = {0}, .results = Permutation(rank)};
  for (std::size_t i = 0, k = 0; i < rank; ++i) {
    result.results[i] = is_new[i] ? static_cast<std::int64_t>(i) : old[static_cast<std::size_t>(perm[k++])];
  }
  return result;
}

std::optional<ReorderedNode> gather(const Node& node, std::size_t at, const Permutation& perm, std::int64_t) {
  const int rank = rank_of(node.input(1));
  auto result = along_axis(node, at, perm, 0);
  if (!result || rank < 0 || rank > 1) return std::nullopt;
  if (rank == 0) result->results = without(perm, {node.integer("axis", 0)});
  return result;
}

std::optional<ReorderedNode> quantize(const Node& node, std::size_t at, const Permutation& perm, std::int64_t opset) {
  if (has_one_element(node.input(1))) return unary(node, at, perm, opset);
  if (rank_of(node.input(1)) != 1 || node.integer("block_size", 0) != 0) return std::nullopt;
  return along_axis(node, at, perm, 1);
}

Rule rule_of(const std::string& op_type) {
  static const std::unordered_map<std::string_view, Rule> rules = [] {
    std::unordered_map<std::string_view, Rule> table{
        {"Softmax", softmax},
        {"LogSoftmax", softmax},
        {"Concat", concat},
        {"Split", split},
        {"Slice", slice},
        {"Pad", pad},
        {"ArgMax", arg_extreme},
        {"ArgMin", arg_extreme},
        {"Squeeze", squeeze},
        {"Unsqueeze", unsqueeze},
        {"Gather", gather},
        {"QuantizeLinear", quantize},
        {"DequantizeLinear", quantize},
        {"Dropout", unary},
        {"Clip", unary},
        {"Cast", unary},
    };
    for (const char* name : {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                             "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum"}) {
      table.emplace(name, reduce);
    }
    for (const char* name :
         {"Abs",      "Acos",       "Asin",     "Atan",      "Ceil", "Celu",      "Cos",
          "Elu",      "Erf",        "Exp",      "Floor",     "Gelu", "HardSwish", "HardSigmoid",
          "Identity", "IsNaN",      "IsInf",    "LeakyRelu", "Log",  "Mish",      "Neg",
          "Not",      "Reciprocal", "Relu",     "Round",     "Selu", "Sigmoid",   "Sign",
          "Sin",      "Softplus",   "Softsign", "Sqrt",      "Tan",  "Tanh",      "ThresholdedRelu"}) {
      table.emplace(name, unary);
    }
    for (const char* name : {"Add",   "Sub",  "Mul", "Div", "Pow",   "Max",  "Min",     "Sum",         "Mean",
                             "And",   "Or",   "Xor", "Mod", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual",
                             "Where", "PRelu"}) {
      table.emplace(name, elementwise);
    }
    return table;
  }();
  const auto found = rules.find(op_type);
  return found == rules.end() ? nullptr : found->second;
}

}  // namespace

Permutation inverse(const Permutation& perm) {
  Permutation result(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    result[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  return result;
}

bool is_identity(const Permutation& perm) { return std::is_sorted(perm.begin(), perm.end()); }

Permutation composed(const Permutation& first, const Permutation& second) {
  Permutation result;
  for (const std::int64_t axis : second) result.push_back(first[static_cast<std::size_t>(axis)]);
  return result;
}

std::optional<Permutation> permutation_of(const Node& transpose) {
  const int rank = rank_of(transpose.input(0));
  const auto* given = transpose.integers("perm");
  if (rank < 0 && !given) return std::nullopt;
  if (!given) {
    Permutation perm(static_cast<std::size_t>(rank));
    for (int i = 0; i < rank; ++i) perm[static_cast<std::size_t>(i)] = rank - 1 - i;
    return perm;
  }
  Permutation sorted = *given;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<std::int64_t>(i)) return std::nullopt;
  }
  return *given;
}

std::optional<ReorderedNode> reordered(const Node& node, std::size_t at, const Permutation& perm, std::int64_t opset) {
  if (!node.domain.empty() && node.domain != "ai.onnx") return std::nullopt;
  const Rule rule = rule_of(node.op_type);
  return rule ? rule(node, at, perm, opset) : std::nullopt;
}

}  // namespace mk
