#include "quantize/float16_rewrite.h"

#include <algorithm>

#include "quantize/control_flow.h"
#include "quantize/float16_bytes.h"
#include "quantize/float16_rules.h"

namespace mk {
namespace {

using Treatment = Float16Plan::Treatment;

constexpr std::int64_t number_of(DataType type) { return static_cast<std::int64_t>(type); }

bool is_onnx(const Node& node, std::string_view op_type) {
  return node.op_type == op_type && is_onnx_domain(node.domain);
}

std::string stem(const Value& value, DataType type) { return value.name() + '_' + std::string(name_of(type)); }

Type with_element(Type type, DataType element) {
  if (!type.is_tensor()) return Type::tensor(element);
  type.element = element;
  return type;
}

// The node of `graph` that is `node` or holds it.
Node* ancestor_in(const Graph& graph, Node& node) {
  Node* at = &node;
  while (at->graph() != &graph) at = at->graph()->parent();
  return at;
}

bool is_cast(const Value& value) {
  return value.producer() && is_onnx(*value.producer(), "Cast") && value.producer()->input(0);
}

}  // namespace

void Float16Rewrite::run() {
  for_each_node(*model_.graph, [&](const Node& node) { node_names_.insert(node.name); });
  rewrite_graph(*model_.graph);
  drop_needless_casts();
  report_.converted_nodes = plan_.converted();
  report_.kept = plan_.kept();
}

DataType Float16Rewrite::final_type(const Value& value) const {
  const DataType produced = plan_.produced(value);
  return produced == DataType::undefined ? types_.of(value) : produced;
}

std::string Float16Rewrite::node_name(const std::string& stem) {
  std::string name = stem;
  for (int i = 1; !node_names_.insert(name).second; ++i) name = stem + '_' + std::to_string(i);
  return name;
}

void Float16Rewrite::rewrite_graph(Graph& graph) {
  for (Value* value : graph.inputs()) retype(*value);
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers) {
    if (plan_.produced(*value) == DataType::float16)
      graph.set_initializer(value, narrowed(*value->initializer(), value->name()));
  }
  for (Node* node : graph.nodes()) rewrite_node(*node);
  rewrite_outputs(graph);
}

void Float16Rewrite::rewrite_node(Node& node) {
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const DataType wanted = plan_.wanted(node, i);
    if (wanted != DataType::undefined && wanted != plan_.produced(*node.input(i)))
      node.set_input(i, form_for(node.input(i), wanted, node));
  }
  for (Value* value : node.outputs()) {
    if (value) retype(*value);
  }
  if (plan_.treatment(node) == Treatment::convert) rewrite_attributes(node);
  if (is_onnx(node, "Cast")) rewrite_cast(node);
  if (node.attributes().empty()) return;
  for (Graph* body : node.subgraphs()) rewrite_graph(*body);
}

void Float16Rewrite::retype(Value& value) {
  const DataType produced = plan_.produced(value);
  if (produced == DataType::float16) value.type = with_element(std::move(value.type), produced);
}

// What to cast instead of a value: a cast is not widened again, what it was made from is exact.
Value* Float16Rewrite::exact_source(Value* value) const {
  const bool again = is_cast(*value) && final_type(*value->producer()->input(0)) != DataType::float16;
  return again ? value->producer()->input(0) : value;
}

// The value as the other type, for a node. A narrow form is made where the value is; a wide one where it is used, so
// that a branch that is not taken costs nothing.
Value* Float16Rewrite::form_for(Value* value, DataType type, Node& user) {
  Forms& forms = forms_[value];
  const bool narrow = type == DataType::float16;
  auto& made = narrow ? forms.float16 : forms.float32;
  Graph& graph = narrow ? *value->graph() : *user.graph();
  for (const auto& [where, form] : made) {
    if (where == &graph) return form;
  }
  Value* form = nullptr;
  const Tensor* tensor = narrow ? constant_tensor(*value) : nullptr;
  if (tensor && tensor->data && tensor->type == DataType::float32) {
    form = graph.add_initializer(narrowed(*tensor, graph.unique_name(stem(*value, type))));
  } else {
    form = add_cast(exact_source(value), type, *value, graph, ancestor_in(graph, user));
  }
  made.emplace_back(&graph, form);
  return form;
}

Value* Float16Rewrite::add_cast(Value* source, DataType type, const Value& named_after, Graph& graph, Node* before) {
  Value* result = graph.add_value(graph.unique_name(stem(named_after, type)), with_element(named_after.type, type));
  Node* cast = graph.add_node("Cast", {source}, {result}, before);
  cast->name = node_name(result->name() + "_cast");
  cast->append_attribute(Attribute("to", number_of(type)));
  ++report_.casts_added;
  return result;
}

Tensor Float16Rewrite::narrowed(const Tensor& tensor, const std::string& name) {
  auto bytes =
      std::make_shared<const Float16Bytes>(tensor.data ? tensor.data : owned_bytes({}), plan_.keeps_infinity());
  Tensor half = make_tensor(name, DataType::float16, tensor.dims, bytes);
  half.doc_string = tensor.doc_string;
  half.metadata = tensor.metadata;
  report_.conversions.emplace_back(name, std::move(bytes));
  ++report_.converted_tensors;
  return half;
}

void Float16Rewrite::rewrite_attributes(Node& node) {
  if (is_onnx(node, "Constant")) return rewrite_constant(node);
  if (is_onnx(node, "ConstantOfShape") && node.output(0) && types_.is_float32(node.output(0))) {
    const Attribute* held = node.attribute("value");
    const auto* tensor = held ? std::get_if<std::shared_ptr<const Tensor>>(&held->value) : nullptr;
    const Tensor zero = make_tensor({}, DataType::float32, {1}, owned_values(std::vector<float>{0}));
    node.set_attribute(Attribute("value", narrowed(tensor && *tensor ? **tensor : zero, node.output(0)->name())));
    return;
  }
  if (const TypeAttribute* row = type_attribute(node);
      row && !is_onnx(node, "Cast") && types_.is_float32(node.output(0))) {
    if (node.attribute(row->attribute) || row->otherwise == DataType::float32)
      node.set_attribute(Attribute(std::string(row->attribute), number_of(DataType::float16)));
  }
  if (is_onnx(node, "DequantizeLinear") && node.integer("output_dtype", 0) == number_of(DataType::float32))
    node.set_attribute(Attribute("output_dtype", number_of(DataType::float16)));
  // An attention mask's value, which would be infinite.
  if (node.real("mask_filter_value", 0) < -65504.0f) node.set_attribute(Attribute("mask_filter_value", -65504.0f));
}

void Float16Rewrite::rewrite_constant(Node& node) {
  Value* output = node.output(0);
  if (!output || plan_.produced(*output) != DataType::float16) return;
  Tensor tensor;
  for (const Attribute& attribute : node.attributes()) {
    if (const auto* held = std::get_if<std::shared_ptr<const Tensor>>(&attribute.value)) {
      if (*held) tensor = **held;
    } else if (const auto* value = std::get_if<float>(&attribute.value)) {
      tensor = scalar_tensor({}, *value);
    } else if (const auto* values = std::get_if<std::vector<float>>(&attribute.value)) {
      tensor = make_tensor({}, DataType::float32, {static_cast<std::int64_t>(values->size())}, owned_values(*values));
    }
  }
  if (tensor.type != DataType::float32) return;
  Tensor half = narrowed(tensor, output->name());
  half.name = tensor.name;
  node.attributes().clear();
  node.append_attribute(Attribute("value", std::move(half)));
}

void Float16Rewrite::rewrite_cast(Node& node) {
  Value* output = node.output(0);
  if (!output || !node.input(0)) return;
  const DataType result = final_type(*output);
  if (plan_.produced(*output) == DataType::float16) node.set_attribute(Attribute("to", number_of(result)));
  const bool touched =
      plan_.produced(*output) == DataType::float16 || plan_.produced(*node.input(0)) == DataType::float16;
  if (touched && final_type(*node.input(0)) == result && !output->is_graph_output()) needless_.push_back(&node);
}

void Float16Rewrite::drop_needless_casts() {
  for (Node* node : needless_) {
    Value* output = node->output(0);
    node->graph()->replace_uses(output, node->input(0));
    if (output->is_graph_output()) continue;
    node->graph()->erase(node);
  }
}

void Float16Rewrite::rewrite_outputs(Graph& graph) {
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    Value* value = graph.outputs()[i];
    const DataType wanted = plan_.wanted_output(graph, i);
    const DataType produced = plan_.produced(*value);
    if (wanted == DataType::undefined || produced == DataType::undefined || wanted == produced) continue;
    if (graph.parent()) {
      graph.set_output(i, add_cast(exact_source(value), wanted, *value, graph, nullptr));
      continue;
    }
    // The name is the model's interface: it goes to the cast.
    if (value->is_graph_input()) continue;
    const std::string name = value->name();
    graph.rename(value, graph.unique_name(stem(*value, produced)));
    Value* outer = graph.add_value(name, with_element(value->type, wanted));
    Node* cast = graph.add_node("Cast", {exact_source(value)}, {outer});
    cast->name = node_name("graph_output_cast_" + std::to_string(i));
    cast->append_attribute(Attribute("to", number_of(wanted)));
    ++report_.casts_added;
    for (std::size_t k = i; k < graph.outputs().size(); ++k) {
      if (graph.outputs()[k] == value) graph.set_output(k, outer);
    }
  }
}

}  // namespace mk
