#include "quantize/qdq_constants.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>

#include "graph/float_formats.h"
#include "graph/permuted.h"

namespace mk {
namespace {

bool is_common_float(DataType type) { return type == DataType::float32 || float_conversion(type, DataType::float32); }

std::optional<Tensor> constant_node(const Node& node, const Tensor*) {
  if (const Attribute* value = node.attribute("value")) {
    const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&value->value);
    if (tensor && *tensor) return **tensor;
  }
  if (const Attribute* value = node.attribute("value_float")) {
    if (const auto* number = std::get_if<float>(&value->value)) return scalar_tensor({}, *number);
  }
  if (const Attribute* value = node.attribute("value_floats")) {
    if (const auto* numbers = std::get_if<std::vector<float>>(&value->value))
      return make_tensor({}, DataType::float32, {static_cast<std::int64_t>(numbers->size())}, owned_values(*numbers));
  }
  return std::nullopt;
}

std::optional<Tensor> identity_node(const Node&, const Tensor* input) { return *input; }

std::optional<Tensor> cast_node(const Node& node, const Tensor* input) {
  const auto to = static_cast<DataType>(node.integer("to", 0));
  if (!is_common_float(to)) return std::nullopt;
  return make_tensor({}, to, input->dims, cast(input->data, input->type, to));
}

std::optional<Tensor> transpose_node(const Node& node, const Tensor* input) {
  std::vector<std::int64_t> permutation(input->dims.size());
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  if (const auto* given = node.integers("perm")) permutation = *given;
  std::vector<std::int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<std::int64_t>(i)) return std::nullopt;
  if (sorted.size() != input->dims.size()) return std::nullopt;
  return permuted(*input, permutation);
}

// Reshape and its kind: the inferred type says the dims.
std::optional<Tensor> reshape_node(const Node& node, const Tensor* input) {
  const Type& type = node.output(0)->type;
  if (!type.is_tensor() || !type.shape) return std::nullopt;
  std::vector<std::int64_t> dims;
  for (const Dim& dim : *type.shape) {
    if (!dim.is_known()) return std::nullopt;
    dims.push_back(dim.value);
  }
  Tensor tensor;
  tensor.type = input->type;
  tensor.dims = std::move(dims);
  if (tensor.element_count() != input->element_count()) return std::nullopt;
  tensor.data = input->data;
  return tensor;
}

struct FoldRow {
  std::string_view op_type;
  bool has_input;
  std::optional<Tensor> (*fold)(const Node& node, const Tensor* input);
};
constexpr std::array folds{
    FoldRow{"Constant", false, constant_node}, FoldRow{"Identity", true, identity_node},
    FoldRow{"Cast", true, cast_node},          FoldRow{"Transpose", true, transpose_node},
    FoldRow{"Reshape", true, reshape_node},    FoldRow{"Squeeze", true, reshape_node},
    FoldRow{"Unsqueeze", true, reshape_node},  FoldRow{"Flatten", true, reshape_node},
};

std::optional<Tensor> folded(const Node& node) {
  const auto* row =
      std::find_if(folds.begin(), folds.end(), [&](const FoldRow& r) { return r.op_type == node.op_type; });
  if (row == folds.end() || !node.domain.empty() || node.outputs().size() != 1 || !node.output(0)) return std::nullopt;
  if (node.output(0)->is_graph_output()) return std::nullopt;
  const Tensor* input = nullptr;
  if (row->has_input) {
    input = weight_tensor(node.input(0));
    if (!input || !input->data || !is_common_float(input->type) || input->element_count() == 0) return std::nullopt;
  }
  auto tensor = row->fold(node, input);
  if (!tensor || !tensor->data || !is_common_float(tensor->type) || tensor->element_count() == 0) return std::nullopt;
  return tensor;
}

void drop(Value* value) {
  if (!value || !value->is_unused() || value->producer()) return;
  value->graph()->erase_unused(value);
}

// An Identity between two operators hides them from each other.
void drop_identity(Node& node) {
  if (node.op_type != "Identity" || !node.domain.empty() || !node.input(0) || !node.output(0)) return;
  if (node.output(0)->is_graph_output()) return;
  Graph& graph = *node.graph();
  graph.replace_uses(node.output(0), node.input(0));
  graph.erase(&node);
}

void fold_graph(Graph& graph) {
  const std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
  for (Node* node : nodes) {
    for (Graph* inner : node->subgraphs()) fold_graph(*inner);
    auto tensor = folded(*node);
    if (!tensor) {
      drop_identity(*node);
      continue;
    }
    Value* output = node->output(0);
    const std::string name = output->name();
    Tensor made = make_tensor(graph.unique_name(name + "_folded"), tensor->type, tensor->dims, tensor->data);
    Value* initializer = graph.add_initializer(std::move(made));
    graph.replace_uses(output, initializer);
    const std::vector<Value*> inputs = node->inputs();
    graph.erase(node);
    graph.rename(initializer, name);
    for (Value* input : inputs) drop(input);
  }
}

}  // namespace

Status check_not_compiled(Model& model) {
  const Node* compiled = nullptr;
  for_each_node(*model.graph, [&](const Node& node) {
    if (node.op_type == "EPContext") compiled = &node;
  });
  if (compiled)
    return fail(ErrorCode::unsupported, "the model is compiled already", "node " + compiled->label(),
                "quantize the model that it was compiled from");
  return {};
}

const Tensor* weight_tensor(const Value* value) { return value ? value->initializer() : nullptr; }

Status fold_weight_constants(Model& model) {
  fold_graph(*model.graph);
  return {};
}

}  // namespace mk
