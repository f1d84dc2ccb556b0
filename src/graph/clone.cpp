// Deep copies of graphs and models. Weights are not copied: tensors share their bytes.

#include <unordered_map>

#include "graph/ir.h"

namespace mk {
namespace {

using ValueMap = std::unordered_map<const Value*, Value*>;

Value* mapped(const ValueMap& map, Value* value) {
  const auto found = map.find(value);
  return found == map.end() ? value : found->second;  // what is not ours is captured from outside
}

void copy_value(const Value& from, Graph& into, ValueMap& map) {
  Value* value = into.add_value(from.name());
  if (from.initializer()) into.set_initializer(value, *from.initializer());
  value->type = from.type;
  value->doc_string = from.doc_string;
  value->metadata = from.metadata;
  value->unknown_fields = from.unknown_fields;
  map.emplace(&from, value);
}

void copy_graph(const Graph& from, Graph& into, ValueMap& map);

// As Attribute::clone(), but what a sub-graph captures from the graph being copied is taken from the copy.
Attribute copy_attribute(const Attribute& from, ValueMap& map) {
  const auto copy = [&](const Graph& graph) {
    auto result = std::make_unique<Graph>();
    copy_graph(graph, *result, map);
    return result;
  };
  Attribute result;
  if (const auto* one = std::get_if<std::unique_ptr<Graph>>(&from.value); one && *one) {
    result = Attribute(from.name, copy(**one));
  } else if (const auto* many = std::get_if<std::vector<std::unique_ptr<Graph>>>(&from.value)) {
    std::vector<std::unique_ptr<Graph>> graphs;
    for (const auto& graph : *many) graphs.push_back(copy(*graph));
    result.name = from.name;
    result.value = std::move(graphs);
  } else {
    return from.clone();
  }
  result.kind = from.kind;
  result.reference = from.reference;
  result.doc_string = from.doc_string;
  result.raw = from.raw;
  return result;
}

void copy_graph(const Graph& from, Graph& into, ValueMap& map) {
  into.name = from.name;
  into.doc_string = from.doc_string;
  into.metadata = from.metadata;
  into.unknown_fields = from.unknown_fields;
  for (const Value* value : from.initializers()) copy_value(*value, into, map);
  for (const Value* value : from.inputs()) {
    if (!value->initializer()) copy_value(*value, into, map);
    into.mark_input(map.at(value));
  }
  // All outputs before any node: a graph may be out of order while it is being changed.
  for (const Node* node : from.nodes()) {
    for (const Value* output : node->outputs()) {
      if (output) copy_value(*output, into, map);
    }
  }
  for (const Node* node : from.nodes()) {
    std::vector<Value*> inputs;
    std::vector<Value*> outputs;
    for (Value* input : node->inputs()) inputs.push_back(input ? mapped(map, input) : nullptr);
    for (Value* output : node->outputs()) outputs.push_back(output ? map.at(output) : nullptr);
    Node* copy = into.add_node(node->op_type, std::move(inputs), std::move(outputs));
    copy->name = node->name;
    copy->domain = node->domain;
    copy->overload = node->overload;
    copy->doc_string = node->doc_string;
    copy->metadata = node->metadata;
    copy->unknown_fields = node->unknown_fields;
    for (const Attribute& attribute : node->attributes()) copy->set_attribute(copy_attribute(attribute, map));
  }
  for (Value* output : from.outputs()) into.mark_output(mapped(map, output));
}

}  // namespace

std::unique_ptr<Graph> clone(const Graph& graph) {
  auto copy = std::make_unique<Graph>();
  ValueMap map;
  copy_graph(graph, *copy, map);
  return copy;
}

std::unique_ptr<Model> clone(const Model& model) {
  auto copy = std::make_unique<Model>();
  copy->ir_version = model.ir_version;
  copy->opset_imports = model.opset_imports;
  copy->producer_name = model.producer_name;
  copy->producer_version = model.producer_version;
  copy->domain = model.domain;
  copy->model_version = model.model_version;
  copy->doc_string = model.doc_string;
  copy->metadata = model.metadata;
  copy->unknown_fields = model.unknown_fields;
  copy->external_locations = model.external_locations;
  copy->graph = clone(*model.graph);
  for (const Function& function : model.functions) {
    Function& target = copy->functions.emplace_back();
    target.name = function.name;
    target.domain = function.domain;
    target.overload = function.overload;
    target.doc_string = function.doc_string;
    target.attribute_names = function.attribute_names;
    for (const Attribute& attribute : function.attribute_defaults) {
      target.attribute_defaults.push_back(attribute.clone());
    }
    target.opset_imports = function.opset_imports;
    target.body = clone(*function.body);
    target.metadata = function.metadata;
    target.unknown_fields = function.unknown_fields;
  }
  return copy;
}

}  // namespace mk
