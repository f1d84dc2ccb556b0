#include "quantize/float16_plan.h"

#include <algorithm>

#include "quantize/control_flow.h"
#include "quantize/float16_rules.h"
#include "quantize/node_filter.h"

namespace mk {
namespace {

using Treatment = Float16Plan::Treatment;

bool is_onnx(const Node& node, std::string_view op_type) {
  return node.op_type == op_type && is_onnx_domain(node.domain);
}

bool has_bit(std::uint32_t bits, std::size_t i) { return i < 32 && ((bits >> i) & 1) != 0; }

}  // namespace

const Tensor* constant_tensor(const Value& value) {
  if (value.initializer()) return value.is_graph_input() ? nullptr : value.initializer();
  if (!value.producer() || !is_onnx(*value.producer(), "Constant")) return nullptr;
  const Attribute* attribute = value.producer()->attribute("value");
  const auto* tensor = attribute ? std::get_if<std::shared_ptr<const Tensor>>(&attribute->value) : nullptr;
  return tensor ? tensor->get() : nullptr;
}

Float16Plan::Float16Plan(Model& model, ElementTypes& types, const Float16Options& options)
    : model_(model), types_(types), options_(options) {
  if (options.blocked_ops) {
    blocked_ops_.insert(options.blocked_ops->begin(), options.blocked_ops->end());
  } else {
    blocked_ops_.insert(default_float16_blocked_ops().begin(), default_float16_blocked_ops().end());
  }
  for (const std::string& pattern : options.blocked_nodes) {
    if (pattern.find_first_of("*?") == std::string::npos) {
      blocked_names_.insert(pattern);
    } else {
      blocked_globs_.push_back(pattern);
    }
  }
}

void Float16Plan::decide() {
  nodes_.reserve(model_.graph->node_count());
  wants_.reserve(model_.graph->node_count());
  produced_.reserve(model_.graph->node_count());
  decide_graph(*model_.graph, {});
  keeps_infinity_ = std::any_of(order_.begin(), order_.end(), [&](const Node* node) {
    return is_onnx(*node, "IsInf") || is_onnx(*node, "IsNaN") ||
           (is_onnx(*node, "Equal") && types_.is_float32(node->input(0)));
  });
  keep_angles();
  keep_regions_between_integers();
  settle_quantizers(*model_.graph);
  collect_wants(*model_.graph);
  settle_values(*model_.graph);
}

Treatment Float16Plan::treatment(const Node& node) const {
  const auto found = nodes_.find(&node);
  return found == nodes_.end() ? Treatment::neutral : found->second.treatment;
}

void Float16Plan::keep(const Node& node, std::string reason) {
  NodePlan& plan = nodes_[&node];
  plan.treatment = Treatment::keep;
  plan.reason = std::move(reason);
}

std::vector<Float16KeptNode> Float16Plan::kept() const {
  std::vector<Float16KeptNode> kept;
  for (const Node* node : order_) {
    const NodePlan& plan = nodes_.at(node);
    if (plan.treatment == Treatment::keep) kept.push_back({node->label(), node->op_type, plan.reason});
  }
  return kept;
}

std::size_t Float16Plan::converted() const {
  return static_cast<std::size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const auto& entry) { return entry.second.treatment == Treatment::convert; }));
}

// Nodes one by one.

void Float16Plan::decide_graph(const Graph& graph, const std::string& kept_by) {
  for (const Node* node : graph.nodes()) {
    NodePlan plan = decide_node(*node, kept_by);
    const bool keeps = plan.treatment == Treatment::keep;
    nodes_[node] = std::move(plan);
    order_.push_back(node);
    if (kept_by.empty()) follow_integer_sums(*node);
    if (node->attributes().empty()) continue;
    const std::vector<Graph*> bodies = node->subgraphs();
    if (bodies.empty()) continue;
    std::string inside = kept_by;
    if (inside.empty() && (keeps || !is_control_flow(*node)))
      inside = "inside " + node->label() + ", which stays float32";
    for (const Graph* body : bodies) decide_graph(*body, inside);
  }
}

bool Float16Plan::touches_float32(const Node& node) const {
  const auto is_float32 = [&](const Value* value) { return types_.is_float32(value); };
  return std::any_of(node.inputs().begin(), node.inputs().end(), is_float32) ||
         std::any_of(node.outputs().begin(), node.outputs().end(), is_float32);
}

bool Float16Plan::is_blocked_by_name(const Node& node) const {
  const auto is_listed = [&](const std::string& name) {
    return blocked_names_.contains(name) ||
           std::ranges::any_of(blocked_globs_, [&](std::string_view glob) { return matches_glob(glob, name); });
  };
  if (!node.name.empty()) return is_listed(node.name);
  return std::ranges::any_of(node.outputs(), [&](const Value* output) { return output && is_listed(output->name()); });
}

Float16Plan::NodePlan Float16Plan::decide_node(const Node& node, const std::string& kept_by) {
  const bool named = (!blocked_names_.empty() || !blocked_globs_.empty()) && is_blocked_by_name(node);
  const bool blocked = blocked_ops_.contains(node.op_type);
  if (!touches_float32(node)) {
    // Its bodies are kept with it.
    if ((named || blocked) && is_control_flow(node))
      return {Treatment::keep, named ? "blocked node" : "blocked operator"};
    return {};
  }
  if (!kept_by.empty()) return {Treatment::keep, kept_by};
  if (named) return {Treatment::keep, "blocked node"};
  if (blocked) return {Treatment::keep, "blocked operator"};
  if (is_onnx_domain(node.domain)) {
    NodePlan plan = decide_standard(node);
    if (plan.schema || plan.treatment == Treatment::keep) return plan;
  }
  if (const Float16Contrib* row = float16_contrib(node.domain, node.op_type); row && !row->stays)
    return {Treatment::convert, {}, nullptr, row->float32_inputs, row->float32_outputs};
  if (!is_onnx_domain(node.domain)) return {Treatment::keep, "operator of " + node.domain + " not known in float16"};
  return {Treatment::keep, "no schema at opset " + std::to_string(model_.opset())};
}

Float16Plan::NodePlan Float16Plan::decide_standard(const Node& node) {
  if (const std::string_view why = float16_refusal(node); !why.empty()) return {Treatment::keep, std::string(why)};
  const OperatorTypes* schema = types_.schema(node);
  if (!schema) return {};
  if (is_control_flow(node)) return {Treatment::convert, {}, schema};
  const auto is_float32 = [&](const Value* value) { return types_.is_float32(value); };
  if (type_attribute(node) && !is_onnx(node, "Cast") &&
      std::none_of(node.inputs().begin(), node.inputs().end(), is_float32))
    return {Treatment::keep, "makes its values as float32", schema};
  bool admits = false;
  bool holds_containers = false;
  const auto look = [&](const Value* value, const OperatorTypes::Formal* formal) {
    if (!value || !formal) return;
    holds_containers |= formal->types.containers && formal->types.tensors == 0;
    admits |= types_.is_float32(value) && formal->types.has(DataType::float16);
  };
  for (std::size_t i = 0; i < node.inputs().size(); ++i) look(node.input(i), schema->input(i));
  for (std::size_t i = 0; i < node.outputs().size(); ++i) look(node.output(i), schema->output(i));
  if (holds_containers) return {Treatment::keep, "sequences and optionals stay float32", schema};
  if (!admits) return {Treatment::keep, "no float16 at opset " + std::to_string(model_.opset()), schema};
  return {Treatment::convert, {}, schema};
}

// What values will be.

DataType Float16Plan::wanted(const Node& node, std::size_t input) const {
  const Value* value = node.input(input);
  if (!types_.is_float32(value) || float16_takes_either(node, input)) return DataType::undefined;
  const auto found = nodes_.find(&node);
  if (found == nodes_.end() || found->second.treatment != Treatment::convert) return DataType::float32;
  const NodePlan& plan = found->second;
  if (!plan.schema) return has_bit(plan.float32_inputs, input) ? DataType::float32 : DataType::float16;
  if (is_control_flow(node)) return DataType::float16;
  const OperatorTypes::Formal* formal = plan.schema->input(input);
  return formal && formal->types.has(DataType::float16) ? DataType::float16 : DataType::float32;
}

DataType Float16Plan::wanted_output(const Graph& graph, std::size_t output) const {
  if (!types_.is_float32(graph.outputs()[output])) return DataType::undefined;
  if (!graph.parent()) return options_.keep_io_types ? DataType::float32 : DataType::float16;
  return treatment(*graph.parent()) == Treatment::convert ? DataType::float16 : DataType::float32;
}

DataType Float16Plan::produced(const Value& value) const {
  const auto found = produced_.find(&value);
  return found == produced_.end() ? DataType::undefined : found->second;
}

void Float16Plan::collect_wants(const Graph& graph) {
  const auto want = [&](const Value& value, DataType type) {
    if (type == DataType::float16) wants_[&value].float16 = true;
    if (type == DataType::float32) wants_[&value].float32 = true;
  };
  for (const Node* node : graph.nodes()) {
    for (std::size_t i = 0; i < node->inputs().size(); ++i) {
      if (node->input(i)) want(*node->input(i), wanted(*node, i));
    }
    // float16 -> float32 -> float16 is nothing.
    if (is_onnx(*node, "Cast") && node->input(0) && node->integer("to", 0) == static_cast<int>(DataType::float16)) {
      const Node* first = node->input(0)->producer();
      if (first && is_onnx(*first, "Cast") && types_.of(first->input(0)) == DataType::float16)
        want(*node->input(0), DataType::float16);
    }
    if (node->attributes().empty()) continue;
    for (const Graph* body : node->subgraphs()) collect_wants(*body);
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) want(*graph.outputs()[i], wanted_output(graph, i));
}

void Float16Plan::settle_values(const Graph& graph) {
  const auto settle = [&](const Value* value) {
    if (types_.is_float32(value)) produced_[value] = settled(*value);
  };
  for (const Value* value : graph.inputs()) settle(value);
  for (const Value* value : graph.initializers()) settle(value);
  for (const Node* node : graph.nodes()) {
    for (const Value* value : node->outputs()) settle(value);
    if (node->attributes().empty()) continue;
    for (const Graph* body : node->subgraphs()) settle_values(*body);
  }
}

DataType Float16Plan::settled(const Value& value) const {
  if (value.initializer()) return constant(value, value.initializer());
  if (value.producer()) return node_output(*value.producer(), value);
  const Node* parent = value.graph()->parent();
  if (!parent) return options_.keep_io_types ? DataType::float32 : DataType::float16;
  return treatment(*parent) == Treatment::convert ? DataType::float16 : DataType::float32;
}

DataType Float16Plan::constant(const Value& value, const Tensor* tensor) const {
  if (tensor && !tensor->data) return DataType::float32;
  if (stored_scales_.contains(&value)) return DataType::float16;
  const auto found = wants_.find(&value);
  const Wants wants = found == wants_.end() ? Wants{} : found->second;
  return wants.float16 && !wants.float32 ? DataType::float16 : DataType::float32;
}

DataType Float16Plan::node_output(const Node& node, const Value& value) const {
  const NodePlan& plan = nodes_.at(&node);
  if (plan.treatment != Treatment::convert) return DataType::float32;
  if (is_onnx(node, "Constant")) {
    return node.attribute("sparse_value") ? DataType::float32 : constant(value, constant_tensor(value));
  }
  if (is_onnx(node, "Cast")) {
    const auto found = wants_.find(&value);
    return found != wants_.end() && found->second.float16 ? DataType::float16 : DataType::float32;
  }
  if (is_control_flow(node)) return DataType::float16;
  if (!plan.schema) return has_bit(plan.float32_outputs, value.output_index()) ? DataType::float32 : DataType::float16;
  const OperatorTypes::Formal* formal = plan.schema->output(value.output_index());
  return formal && formal->types.has(DataType::float16) ? DataType::float16 : DataType::float32;
}

}  // namespace mk
