#include "graph/precision.h"

#include <algorithm>
#include <array>
#include <map>

namespace mk {
namespace {

struct Tally {
  std::map<int, std::size_t> weight_bits, activation_bits;  // Q/DQ nodes by the bits of their quantized side
  int block_bits = 0;                                       // the least of the weight-only operators
  std::map<DataType, std::uint64_t> float_values;
};

const Tensor* constant(const Value* value) {
  if (!value) return nullptr;
  if (value->initializer()) return value->initializer();
  const Node* producer = value->producer();
  if (!producer || producer->op_type != "Constant") return nullptr;
  const Attribute* attribute = producer->attribute("value");
  const auto* tensor = attribute ? std::get_if<std::shared_ptr<const Tensor>>(&attribute->value) : nullptr;
  return tensor ? tensor->get() : nullptr;
}

// The quantized type: the zero point's; without one the data's for DequantizeLinear, and uint8 for QuantizeLinear
// unless `output_dtype` says otherwise.
DataType quantized_type(const Node& node) {
  if (const Value* zero_point = node.input(2)) {
    if (const Tensor* tensor = constant(zero_point)) return tensor->type;
    if (zero_point->type.is_tensor()) return zero_point->type.element;
  }
  if (node.op_type == "QuantizeLinear")
    return static_cast<DataType>(node.integer("output_dtype", static_cast<std::int64_t>(DataType::uint8)));
  if (const Tensor* tensor = constant(node.input(0))) return tensor->type;
  return node.input(0) && node.input(0)->type.is_tensor() ? node.input(0)->type.element : DataType::undefined;
}

void count(const Node& node, Tally& tally) {
  if (node.op_type == "QuantizeLinear" || node.op_type == "DequantizeLinear") {
    const int bits = bits_of(quantized_type(node));
    if (bits == 0 || bits >= 32) return;  // 32 bits are a bias
    ++(constant(node.input(0)) ? tally.weight_bits : tally.activation_bits)[bits];
  } else if (node.op_type == "MatMulNBits" || node.op_type == "GatherBlockQuantized") {
    const int bits = static_cast<int>(node.integer("bits", 4));
    tally.block_bits = tally.block_bits == 0 ? bits : std::min(tally.block_bits, bits);
  } else if (node.op_type == "Constant" && node.output(0)) {
    if (const Tensor* tensor = constant(node.output(0)); tensor && is_float(tensor->type))
      tally.float_values[tensor->type] += tensor->element_count();
  }
}

int majority(const std::map<int, std::size_t>& counts) {
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? 0 : most->first;
}

std::optional<std::string> float_name(const std::map<DataType, std::uint64_t>& values) {
  constexpr std::array<std::pair<DataType, const char*>, 3> names{
      {{DataType::float32, "fp32"}, {DataType::float16, "fp16"}, {DataType::bfloat16, "bf16"}}};
  std::optional<std::string> best;
  std::uint64_t most = 0;
  for (const auto& [type, name] : names) {
    if (type == DataType::bfloat16 && values.contains(DataType::float16)) continue;
    const auto found = values.find(type);
    if (found == values.end() || found->second <= most) continue;
    most = found->second;
    best = name;
  }
  return best;
}

std::string label(int weights, int activations) {
  return "w" + std::to_string(weights ? weights : activations) + "a" +
         std::to_string(activations ? activations : weights);
}

void count_graph(Graph& graph, Tally& tally) {
  for (const Value* value : graph.initializers())
    if (is_float(value->initializer()->type))
      tally.float_values[value->initializer()->type] += value->initializer()->element_count();
  for (Node* node : graph.nodes()) {
    count(*node, tally);
    for (Graph* inner : node->subgraphs()) count_graph(*inner, tally);
  }
}

}  // namespace

std::optional<std::string> detected_precision(const Model& model) {
  Tally tally;
  count_graph(*model.graph, tally);
  for (const Function& function : model.functions) count_graph(*function.body, tally);
  const int weights = majority(tally.weight_bits);
  const int activations = majority(tally.activation_bits);
  if (weights || activations) return label(weights, activations);
  auto name = float_name(tally.float_values);
  if (tally.block_bits > 0) return label(tally.block_bits, name == "fp32" ? 32 : 16);
  return name;
}

}  // namespace mk
