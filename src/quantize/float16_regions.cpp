// Parts of a graph that stay float32 for the sake of their values, part of Float16Plan: sums of integer products, what
// lies between integers, and quantize and dequantize nodes with it.

#include <algorithm>
#include <array>
#include <deque>

#include "graph/float_formats.h"
#include "quantize/float16_plan.h"
#include "quantize/float16_rules.h"

namespace mk {
namespace {

using Treatment = Float16Plan::Treatment;

constexpr double smallest_normal = 0x1p-14;
constexpr double largest = 65504;

bool is(const Node* node, std::string_view op_type) {
  return node && node->op_type == op_type && is_onnx_domain(node->domain);
}

bool is_quantizer(const Node& node) { return node.op_type == "QuantizeLinear"; }
bool is_dequantizer(const Node& node) { return node.op_type == "DequantizeLinear"; }

// Every value in float16's normal range, or zero: rounded, it keeps 11 bits.
bool values_survive(const Tensor& tensor) {
  constexpr std::uint64_t most = 65536;  // more are weights by another name
  if (tensor.element_count() > most) return true;
  const auto values = number_values(tensor);
  return values && std::all_of(values->begin(), values->end(), [](double value) {
           const double magnitude = value < 0 ? -value : value;
           return magnitude == 0 || (magnitude >= smallest_normal && magnitude <= largest);
         });
}

constexpr const char* sums_reason = "sums of integer products pass the range of float16";
constexpr const char* between_reason = "lies between integers";
constexpr const char* angle_reason = "an angle has more digits than float16";
constexpr const char* bias_reason = "the scale of an int32 bias is too small for float16";
constexpr const char* scale_reason = "its scale is outside the normal range of float16";

}  // namespace

// ConvInteger and MatMulInteger give int32; cast to float, they are scaled by a Mul, which brings them back into range.
// The product of scales that they are multiplied by is as small as those sums are large.
void Float16Plan::follow_integer_sums(const Node& node) {
  const auto is_sum = [&](const Value* value) { return value && integer_sums_.contains(value); };
  if (is(&node, "MatMulInteger") || is(&node, "ConvInteger")) {
    if (node.output(0)) integer_sums_.insert(node.output(0));
    return;
  }
  if (std::none_of(node.inputs().begin(), node.inputs().end(), is_sum)) return;
  const Value* output = node.output(0);
  if (types_.of(output) == DataType::int32) integer_sums_.insert(output);
  if (treatment(node) != Treatment::convert) return;
  if (is(&node, "Cast") && types_.is_float32(output)) {
    integer_sums_.insert(output);
    keep(node, sums_reason);
    return;
  }
  if (!types_.is_float32(node.input(0)) || (!is(&node, "Mul") && !is(&node, "Div"))) return;
  keep(node, sums_reason);
  for (const Value* value : node.inputs()) {
    const Node* product = !value || is_sum(value) ? nullptr : value->producer();
    if (!is(product, "Mul") || value->uses().size() != 1 || value->is_graph_output()) continue;
    if (treatment(*product) != Treatment::convert) continue;
    keep(*product, sums_reason);
    for (const Value* scale : product->inputs()) {
      const Tensor* tensor = scale ? constant_tensor(*scale) : nullptr;
      if (tensor && tensor->data && scale->uses().size() == 1 && !scale->is_graph_output() && values_survive(*tensor))
        stored_scales_.insert(scale);
    }
  }
}

// The nodes that lead to an angle: from positions (integers, a Range, an input of the model) by arithmetic with small
// constants. False where the angle is made of anything else.
bool Float16Plan::gathers_angle(const Node& node, std::vector<const Node*>& nodes) const {
  constexpr std::array<std::string_view, 15> arithmetic{"Add",     "Concat",   "Div",    "Einsum",    "Expand",
                                                        "Gemm",    "Identity", "MatMul", "Mul",       "Reshape",
                                                        "Squeeze", "Sub",      "Slice",  "Transpose", "Unsqueeze"};
  constexpr std::size_t most_nodes = 64;
  constexpr std::uint64_t most_elements = 65536;
  if (std::find(nodes.begin(), nodes.end(), &node) != nodes.end()) return true;
  nodes.push_back(&node);
  if (nodes.size() > most_nodes) return false;
  for (const Value* value : node.inputs()) {
    if (!types_.is_float32(value)) continue;
    if (const Tensor* tensor = constant_tensor(*value)) {
      if (tensor->element_count() > most_elements) return false;
      continue;
    }
    const Node* producer = value->producer();
    if (!producer) {
      if (!value->is_graph_input() || value->graph()->parent() || !options_.keep_io_types) return false;
      continue;
    }
    if (is(producer, "Range") || is(producer, "Constant")) continue;
    if (is(producer, "Cast")) {
      if (!is_whole_type(types_.of(producer->input(0)))) return false;
      continue;
    }
    const bool passes = is_onnx_domain(producer->domain) &&
                        std::find(arithmetic.begin(), arithmetic.end(), producer->op_type) != arithmetic.end();
    if (!passes || !gathers_angle(*producer, nodes)) return false;
  }
  return true;
}

// A position of 1000 times a frequency is 1000 +- 0.25 in float16: its sine would be noise. The sine itself fits.
void Float16Plan::keep_angles() {
  for (const Node* node : order_) {
    if ((!is(node, "Sin") && !is(node, "Cos")) || treatment(*node) != Treatment::convert) continue;
    std::vector<const Node*> nodes;
    if (!gathers_angle(*node, nodes)) continue;
    for (const Node* part : nodes) {
      if (treatment(*part) == Treatment::convert) keep(*part, angle_reason);
    }
  }
}

// The largest set of nodes that take float32 only from integers (dequantized or cast), single constants and each other,
// and give it only to integers (quantized or cast), to nodes that stay float32, and to each other. Nothing is gained by
// float16 there: it would cost casts, and the exactness of arithmetic on shapes.
void Float16Plan::keep_regions_between_integers() {
  std::unordered_set<const Node*> region;
  for (const Node* node : order_) {
    if (treatment(*node) != Treatment::convert || is_quantizer(*node) || is_dequantizer(*node) || is(node, "Cast") ||
        is(node, "Constant") || !node->subgraphs().empty())
      continue;
    region.insert(node);
  }
  std::deque<const Node*> pending;
  for (const Node* node : order_) {
    if (region.contains(node)) pending.push_back(node);
  }
  while (!pending.empty()) {
    const Node* node = pending.front();
    pending.pop_front();
    if (!region.contains(node) || is_in_region(*node, region)) continue;
    region.erase(node);
    for (const Value* value : node->inputs()) {
      if (value && value->producer() && region.contains(value->producer())) pending.push_back(value->producer());
    }
    for (const Value* value : node->outputs()) {
      if (!value) continue;
      for (const Use& use : value->uses()) {
        if (region.contains(use.node)) pending.push_back(use.node);
      }
    }
  }
  for (const Node* node : region) keep(*node, between_reason);
}

bool Float16Plan::is_in_region(const Node& node, const std::unordered_set<const Node*>& region) const {
  for (const Value* value : node.inputs()) {
    if (!types_.is_float32(value)) continue;
    const Node* producer = value->producer();
    if (producer && (region.contains(producer) || is_dequantizer(*producer) ||
                     (is(producer, "Cast") && is_whole_type(types_.of(producer->input(0)))))) {
      continue;
    }
    const Tensor* tensor = constant_tensor(*value);
    if (!tensor || tensor->element_count() != 1) return false;
  }
  for (const Value* value : node.outputs()) {
    if (!types_.is_float32(value)) continue;
    if (value->is_graph_output()) return false;
    for (const Use& use : value->uses()) {
      if (region.contains(use.node) || is_quantizer(*use.node)) continue;
      if (is(use.node, "Cast") ? is_whole_type(types_.of(use.node->output(0)))
                               : wanted(*use.node, use.input) != DataType::float16)
        continue;
      return false;
    }
  }
  return true;
}

// Those that may be of either type at this opset: of the type of what they stand beside.
void Float16Plan::settle_quantizers(const Graph& graph) {
  for (const Node* node : graph.nodes()) {
    if (!node->attributes().empty()) {
      for (const Graph* body : node->subgraphs()) settle_quantizers(*body);
    }
    if (treatment(*node) != Treatment::convert) continue;
    if (is_quantizer(*node) && node->input(0)) {
      const Node* producer = node->input(0)->producer();
      const bool from_float16 = producer && treatment(*producer) == Treatment::convert && !is(producer, "Cast") &&
                                !is(producer, "Constant") &&
                                node_output(*producer, *node->input(0)) == DataType::float16;
      if (!from_float16) {
        keep(*node, between_reason);
      } else if (!scale_survives(node->input(1))) {
        keep(*node, scale_reason);
      }
    }
    if (is_dequantizer(*node) && node->output(0)) {
      bool to_float16 = false;
      bool to_float32 = node->output(0)->is_graph_output() && !graph.parent() && options_.keep_io_types;
      for (const Use& use : node->output(0)->uses()) {
        if (is_quantizer(*use.node)) continue;
        to_float16 |= wanted(*use.node, use.input) == DataType::float16;
        to_float32 |= wanted(*use.node, use.input) == DataType::float32;
      }
      if (types_.of(node->input(0)) == DataType::int32) {
        keep(*node, bias_reason);
      } else if (!to_float16 || to_float32) {
        keep(*node, between_reason);
      } else if (!scale_survives(node->input(1))) {
        keep(*node, scale_reason);
      }
    }
  }
}

bool Float16Plan::scale_survives(const Value* scale) const {
  const Tensor* tensor = scale ? constant_tensor(*scale) : nullptr;
  return !tensor || tensor->data == nullptr || values_survive(*tensor);
}

}  // namespace mk
