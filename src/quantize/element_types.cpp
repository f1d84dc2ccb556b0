#include "quantize/element_types.h"

#include <array>

#include "graph/shape_inference.h"
#include "quantize/control_flow.h"
#include "quantize/float16_rules.h"

namespace mk {
namespace {

DataType declared(const Value& value) { return value.type.is_tensor() ? value.type.element : DataType::undefined; }

DataType constant_type(const Node& node) {
  using Kind = Attribute::Kind;
  for (const Attribute& attribute : node.attributes()) {
    if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&attribute.value))
      return *tensor ? (*tensor)->type : DataType::undefined;
    if (attribute.kind == Kind::real || attribute.kind == Kind::reals) return DataType::float32;
    if (attribute.kind == Kind::integer || attribute.kind == Kind::integers) return DataType::int64;
    if (attribute.kind == Kind::string || attribute.kind == Kind::strings) return DataType::string;
  }
  return DataType::undefined;
}

}  // namespace

void ElementTypes::infer() {
  types_.clear();
  types_.reserve(2 * model_.graph->node_count());
  incomplete_ = false;
  infer_graph(*model_.graph);
  if (!incomplete_) return;
  // Where it fails, what it found until then is still there; the rest stays unknown.
  static_cast<void>(infer_shapes(model_));
  types_.clear();
  infer_graph(*model_.graph);
}

DataType ElementTypes::of(const Value& value) const {
  const auto found = types_.find(&value);
  return found == types_.end() ? declared(value) : found->second;
}

const OperatorTypes* ElementTypes::schema(const Node& node) {
  return is_onnx_domain(node.domain) ? schemas_.find({}, node.op_type, model_.opset()) : nullptr;
}

void ElementTypes::set(const Value* value, DataType type) {
  if (value && type != DataType::undefined) types_.insert_or_assign(value, type);
}

void ElementTypes::infer_graph(const Graph& graph) {
  for (const Value* value : graph.inputs()) set(value, of(*value));
  for (const Value* value : graph.initializers()) set(value, value->initializer()->type);
  for (const Node* node : graph.nodes()) infer_node(*node);
}

void ElementTypes::infer_node(const Node& node) {
  if (!node.attributes().empty()) infer_bodies(node);
  if (const OperatorTypes* found = schema(node)) infer_by_schema(node, *found);
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.output(i);
    if (!output) continue;
    set(output, stated(node, i));
    set(output, of(*output));
    incomplete_ |= of(*output) == DataType::undefined && output->type.kind == Type::Kind::none;
  }
}

// Binds the type parameters by the inputs; then all that share one have its type.
void ElementTypes::infer_by_schema(const Node& node, const OperatorTypes& schema) {
  std::array<DataType, 16> bound{};
  const auto slot = [&](const OperatorTypes::Formal* formal) -> DataType* {
    const bool named = formal && formal->parameter >= 0 && formal->parameter < static_cast<int>(bound.size());
    return named ? &bound[static_cast<std::size_t>(formal->parameter)] : nullptr;
  };
  bool unknown_inputs = false;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    if (!node.input(i)) continue;
    const DataType type = of(node.input(i));
    DataType* parameter = slot(schema.input(i));
    if (parameter && *parameter == DataType::undefined) *parameter = type;
    unknown_inputs |= type == DataType::undefined;
  }
  const auto type_of = [&](const OperatorTypes::Formal* formal) {
    if (!formal) return DataType::undefined;
    const DataType* parameter = slot(formal);
    return parameter && *parameter != DataType::undefined ? *parameter : formal->types.only();
  };
  for (std::size_t i = 0; i < node.outputs().size(); ++i) set(node.output(i), type_of(schema.output(i)));
  if (!unknown_inputs) return;
  for (std::size_t i = 0; i < node.inputs().size(); ++i) {
    const Value* value = node.input(i);
    if (value && of(*value) == DataType::undefined && value->type.kind == Type::Kind::none)
      set(value, type_of(schema.input(i)));
  }
}

// What attributes say of the type of an output.
DataType ElementTypes::stated(const Node& node, std::size_t output) {
  const Float16Contrib* contrib = float16_contrib(node.domain, node.op_type);
  if (contrib && !schema(node)) {
    const auto has = [&](std::uint32_t bits) { return output < 32 && ((bits >> output) & 1) != 0; };
    if (has(contrib->other_outputs)) return DataType::undefined;
    return has(contrib->float32_outputs) ? DataType::float32 : of(node.input(contrib->typed_by));
  }
  if (!is_onnx_domain(node.domain)) return DataType::undefined;
  if (node.op_type == "Constant") return constant_type(node);
  if (node.op_type == "ConstantOfShape") {
    return node.attributes().empty() ? DataType::float32 : constant_type(node);
  }
  if (node.op_type == "LayerNormalization" && output > 0)
    return static_cast<DataType>(node.integer("stash_type", static_cast<int>(DataType::float32)));
  if (node.op_type == "DequantizeLinear" && node.attribute("output_dtype"))
    return static_cast<DataType>(node.integer("output_dtype", 0));
  if (const TypeAttribute* row = type_attribute(node)) {
    const Attribute* attribute = node.attribute(row->attribute);
    if (attribute) return static_cast<DataType>(node.integer(row->attribute, 0));
    return row->otherwise == DataType::undefined ? of(node.input(0)) : row->otherwise;
  }
  return DataType::undefined;
}

void ElementTypes::infer_bodies(const Node& node) {
  for (const Graph* body : node.subgraphs()) {
    for (const BodyLink& link : body_inputs(node, *body)) set(link.inner, of(link.outer));
    infer_graph(*body);
    for (const BodyLink& link : body_outputs(node, *body)) set(link.outer, of(link.inner));
  }
}

}  // namespace mk
