// Graphs inside graphs: sub-graphs of control flow, and bodies of model-local functions, which are inferred once for
// every call with its types and attributes.

#include <algorithm>

#include "graph/model_inference.h"
#include "graph/value_rules.h"

namespace mk {
namespace {

constexpr int max_depth = 100;

void collect_types(Graph& graph, std::vector<std::pair<Value*, Type>>& types) {
  const auto collect = [&](const std::vector<Value*>& values) {
    for (Value* value : values) {
      if (value) types.emplace_back(value, value->type);
    }
  };
  collect(graph.inputs());
  collect(graph.initializers());
  for (Node* node : graph.nodes()) {
    collect(node->outputs());
    for (Graph* inner : node->subgraphs()) collect_types(*inner, types);
  }
}

InferredTypes failed(const NodeFacts& node, std::string problem) {
  return {std::vector<Type>(node.output_count()), std::move(problem), false};
}

}  // namespace

Result<std::vector<Type>> ModelInference::infer_subgraph(Graph& graph, std::span<const Type* const> inputs) {
  visited_.insert(&graph);
  const auto is_extra = [&](std::size_t i) { return i >= inputs.size() && !graph.inputs()[i]->initializer(); };
  bool too_few = inputs.size() > graph.inputs().size();
  for (std::size_t i = 0; i < graph.inputs().size(); ++i) too_few |= is_extra(i);
  if (too_few) {
    return fail(ErrorCode::malformed, "its sub-graph has " + std::to_string(graph.inputs().size()) + " inputs but " +
                                          std::to_string(inputs.size()) + " are given");
  }
  if (depth_ >= max_depth) return fail(ErrorCode::unsupported, "its sub-graph is nested too deeply");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Value* input = graph.inputs()[i];
    MergedType merged = merge_types(without_generated_symbols(input->type), *inputs[i], false);
    if (!merged.contradiction.empty() && graph.parent()) {
      note(*graph.parent(), "the input " + input->name() + " of its sub-graph " + merged.contradiction);
    }
    input->type = std::move(merged.type);
    symbols_.name_dims(input->type);
    forget(*input);
    doubtful_.insert(input);
  }
  const bool outer_may_not_run = std::exchange(scope_.may_not_run, true);
  ++depth_;
  const Status status = infer_graph(graph);
  --depth_;
  scope_.may_not_run = outer_may_not_run;
  if (!status) return tl::make_unexpected(status.error());
  std::vector<Type> types;
  for (const Value* output : graph.outputs()) types.push_back(output->type);
  return types;
}

// Those that the operator's shape function did not get to: their inputs are then as declared.
void ModelInference::infer_remaining_subgraphs(const Node& node) {
  for (Graph* graph : node.subgraphs()) {
    if (visited_.contains(graph)) continue;
    const Type unknown;
    const std::vector<const Type*> inputs(graph->inputs().size(), &unknown);
    static_cast<void>(infer_subgraph(*graph, inputs));
  }
}

// The branch that an If takes, where its condition is known.
const Graph* ModelInference::known_branch(const NodeFacts& node) {
  if (node.node().op_type != "If") return nullptr;
  const auto condition = node.input_constants(0);
  if (!condition || condition->size() != 1) return nullptr;
  const Attribute* branch = node.attribute((*condition)[0] != 0 ? "then_branch" : "else_branch");
  const auto* graph = branch ? std::get_if<std::unique_ptr<Graph>>(&branch->value) : nullptr;
  return graph ? graph->get() : nullptr;
}

namespace {

// What two types of a loop's state have in common; whether that is less than the first says.
bool generalize(Type& type, const Type& bound, const Type& next) {
  if (!type.shape) return false;
  if (!bound.shape || !next.shape || bound.shape->size() != next.shape->size()) {
    type.shape.reset();
    return true;
  }
  bool changed = false;
  for (std::size_t i = 0; i < type.shape->size(); ++i) {
    Dim& dim = (*type.shape)[i];
    if ((*bound.shape)[i] == (*next.shape)[i] || !(dim.is_known() || dim.is_symbolic())) continue;
    dim = Dim{};
    changed = true;
  }
  return changed;
}

}  // namespace

// The library takes any shape for what a Loop carries from one iteration to the next. Here the shapes at the start are
// tried, without what an iteration changes, until none does: then they hold for all iterations.
void ModelInference::complete_loop(const NodeFacts& node, std::vector<Type>& outputs) {
  const Attribute* attribute = node.attribute("body");
  const auto* held = attribute ? std::get_if<std::unique_ptr<Graph>>(&attribute->value) : nullptr;
  if (!held || !*held || node.input_count() < 3) return;
  Graph& body = **held;
  const std::size_t states = node.input_count() - 2;
  if (body.inputs().size() != node.input_count() || body.outputs().size() != outputs.size() + 1) return;

  std::vector<Type> carried;
  for (std::size_t i = 0; i < states; ++i) {
    const Type* type = node.input_type(2 + i);
    carried.push_back(type ? *type : Type());
  }
  const Type counter = Type::tensor(DataType::int64, Shape{});
  const Type unknown;
  std::vector<std::pair<Value*, Type>> general;
  collect_types(body, general);
  const std::size_t notes = report_.notes.size();
  const std::size_t contradictions = contradictions_;

  constexpr int rounds = 4;
  for (int round = 0; round < rounds; ++round) {
    std::vector<const Type*> inputs{&counter, node.input_type(1) ? node.input_type(1) : &unknown};
    for (const Type& type : carried) inputs.push_back(&type);
    const auto types = infer_subgraph(body, inputs);
    report_.notes.resize(notes);
    contradictions_ = contradictions;
    bool changed = !types;
    for (std::size_t i = 0; types && i < states; ++i) {
      changed |= generalize(carried[i], body.inputs()[2 + i]->type, (*types)[1 + i]);
    }
    if (!changed) {
      for (std::size_t i = 0; i < states; ++i) {
        if (outputs[i].is_tensor() && carried[i].is_tensor()) outputs[i].shape = carried[i].shape;
      }
      for (std::size_t i = states; i < outputs.size(); ++i) {
        const Type& row = (*types)[1 + i];
        if (!outputs[i].is_tensor() || !row.is_tensor() || !row.shape) continue;
        outputs[i].shape = *row.shape;
        outputs[i].shape->insert(outputs[i].shape->begin(), Dim{});
      }
      return;
    }
    for (auto& [value, type] : general) value->type = type;
    if (!types) return;
  }
}

Result<InferredTypes> ModelInference::infer_call(const NodeFacts& call, const Function& function) {
  if (std::find(calls_.begin(), calls_.end(), &function) != calls_.end()) {
    return failed(call, "the function " + function.name + " calls itself");
  }
  if (depth_ >= max_depth) return failed(call, "calls of functions are nested too deeply");
  Graph& body = *function.body;
  if (call.input_count() > body.inputs().size() || call.output_count() > body.outputs().size()) {
    return failed(call, "the function " + function.name + " has fewer inputs or outputs than the call");
  }

  Scope inner;
  inner.opset_imports = function.opset_imports.empty() ? scope_.opset_imports : &function.opset_imports;
  inner.path = label(call.node()) + "/";
  inner.may_not_run = scope_.may_not_run;
  for (const Attribute& otherwise : function.attribute_defaults) inner.bindings[otherwise.name] = &otherwise;
  for (const Attribute& given : call.node().attributes()) {
    if (const Attribute* attribute = call.attribute(given.name)) inner.bindings[given.name] = attribute;
  }

  std::vector<std::pair<Value*, Type>> declared;
  collect_types(body, declared);
  for (std::size_t i = 0; i < body.inputs().size(); ++i) {
    Value* formal = body.inputs()[i];
    forget(*formal);
    absent_.erase(formal);
    doubtful_.erase(formal);
    if (!call.has_input(i)) {
      absent_.insert(formal);
      continue;
    }
    const Value& actual = *call.node().input(i);
    if (actual.type.kind != Type::Kind::none) formal->type = actual.type;
    if (const KnownValue* value = value_of(actual)) values_[formal] = *value;
    if (const Tensor* tensor = tensor_of(actual)) tensors_[formal] = tensor;
    if (doubtful_.contains(&actual)) doubtful_.insert(formal);
  }

  std::swap(scope_, inner);
  calls_.push_back(&function);
  ++depth_;
  const Status status = infer_graph(body);
  --depth_;
  calls_.pop_back();
  std::swap(scope_, inner);

  InferredTypes result{std::vector<Type>(call.output_count()), {}, false};
  for (std::size_t i = 0; i < call.output_count(); ++i) result.outputs[i] = body.outputs()[i]->type;
  for (auto& [value, type] : declared) value->type = std::move(type);
  if (!status) return tl::make_unexpected(status.error());
  return result;
}

}  // namespace mk
