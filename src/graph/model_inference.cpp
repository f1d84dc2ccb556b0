#include "graph/model_inference.h"

#include <algorithm>

#include "graph/shape_rules.h"
#include "graph/value_rules.h"

namespace mk {
namespace {

constexpr std::size_t max_contradictions = 20;  // notes of that kind; their number comes after

bool is_onnx(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

// Whether data propagation may follow a value: a tensor of few elements of a type that shapes are made in.
bool is_small(const Type& type) {
  if (!type.is_tensor() || !type.shape || !(bits_of(type.element) >= 8 || type.element == DataType::boolean)) {
    return false;
  }
  std::int64_t count = 1;
  for (const Dim& dim : *type.shape) {
    if (!dim.is_known() || dim.value > static_cast<std::int64_t>(max_known_elements)) return false;
    count *= dim.value;
    if (count > static_cast<std::int64_t>(max_known_elements)) return false;
  }
  return true;
}

std::string function_key(const std::string& domain, const std::string& name, const std::string& overload) {
  return domain + ':' + name + ':' + overload;
}

std::uint64_t count_nodes(Graph& graph) {
  std::uint64_t count = 0;
  for_each_node(graph, [&](Node&) { ++count; });
  return count;
}

}  // namespace

ModelInference::ModelInference(Model& model) : model_(model) {
  scope_.opset_imports = &model.opset_imports;
  for (const Function& function : model.functions) {
    if (function.body) functions_.emplace(function_key(function.domain, function.name, function.overload), &function);
  }
}

Status ModelInference::run_on(Node& node) {
  values_.clear();
  tensors_.clear();
  absent_.clear();
  doubtful_.clear();
  visited_.clear();
  made_.clear();
  noted_.clear();
  report_ = {};
  contradictions_ = 0;
  steps_left_ = 200'000;
  names_dims_ = false;  // what earlier runs named is not known here
  scope_.may_not_run = node.graph()->parent() != nullptr;
  return infer_node(node);
}

Result<InferenceReport> ModelInference::run() {
  steps_left_ = 200'000 + 20 * count_nodes(*model_.graph);
  for (const Value* input : model_.graph->inputs()) symbols_.reserve(input->type);
  for (Value* input : model_.graph->inputs()) {
    if (!input->initializer()) symbols_.name_dims(input->type);
  }
  MK_CHECK(infer_graph(*model_.graph));
  if (contradictions_ > max_contradictions) {
    report_.notes.push_back({{},
                             std::to_string(contradictions_ - max_contradictions) +
                                 " more values are declared with types that contradict what they are"});
  }
  return std::move(report_);
}

Status ModelInference::infer_graph(Graph& graph) {
  infer_initializers(graph);
  for (Node* node : graph.nodes()) {
    if (steps_left_ == 0) {
      note_once("steps", *node, "calls of functions are nested too often to follow all of them");
      return {};
    }
    --steps_left_;
    MK_CHECK(infer_node(*node));
  }
  return {};
}

void ModelInference::infer_initializers(Graph& graph) {
  for (Value* value : graph.initializers()) {
    const Tensor& tensor = *value->initializer();
    if (!tensor.sparse.empty()) continue;
    MergedType merged = merge_types(value->type, Type::tensor(tensor.type, static_shape(tensor.dims)), false);
    if (!merged.contradiction.empty()) {
      report_.notes.push_back({scope_.path + value->name(), "the initializer " + merged.contradiction});
    }
    value->type = std::move(merged.type);
  }
}

Status ModelInference::infer_node(Node& node) {
  for (const Graph* graph : node.subgraphs()) visited_.erase(graph);
  const NodeFacts facts(node, opset_of(node.domain), *this);
  MK_TRY(const InferredTypes inferred, infer_types(facts));
  const auto is_doubtful = [&](const Value* input) { return input && doubtful_.contains(input); };
  bool doubtful = std::any_of(node.inputs().begin(), node.inputs().end(), is_doubtful);
  if (!inferred.problem.empty()) {
    if (inferred.impossible && !doubtful && !scope_.may_not_run) {
      return fail(ErrorCode::malformed, node.op_type + ": " + inferred.problem, label(node),
                  "The model cannot run; it has to be exported again");
    }
    note(node, node.op_type + ": " + inferred.problem);
    report_.notes.back().refused = is_onnx(node.domain);
  }
  doubtful |= merge_outputs(node, inferred.outputs);
  for (const Value* output : node.outputs()) {
    if (!output) continue;
    doubtful ? static_cast<void>(doubtful_.insert(output)) : static_cast<void>(doubtful_.erase(output));
  }
  propagate(facts);
  infer_remaining_subgraphs(node);
  return {};
}

Result<InferredTypes> ModelInference::infer_types(const NodeFacts& facts) {
  const Node& node = facts.node();
  const bool standard = is_onnx(node.domain);
  if (standard && facts.opset() >= 5) {
    if (const TypeRule rule = type_rule(node.op_type)) return rule(facts);
  }
  const OperatorSchema* schema = facts.opset() > 0 ? schemas_.find(node.domain, node.op_type, facts.opset()) : nullptr;
  if (!schema) {
    if (const Function* function = called_function(node)) return infer_call(facts, *function);
    const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
    note_once("operator " + domain + ":" + node.op_type, node,
              facts.opset() > 0 ? "there is no schema for " + domain + ":" + node.op_type +
                                      "; the outputs of such nodes stay as they are declared"
                                : "the model imports no version of the domain " + domain);
    return InferredTypes{std::vector<Type>(facts.output_count()), {}, false};
  }
  InferredTypes result = infer_by_schema(*schema, facts);
  if (!standard) return result;
  if (const Graph* branch = known_branch(facts); branch && branch->outputs().size() == result.outputs.size()) {
    result.problem.clear();
    for (std::size_t i = 0; i < result.outputs.size(); ++i) result.outputs[i] = branch->outputs()[i]->type;
  }
  if (node.op_type == "Loop" && result.problem.empty()) complete_loop(facts, result.outputs);
  if (node.op_type == "Conv" || node.op_type == "ConvTranspose") {
    if (std::string problem = convolution_problem(facts); !problem.empty()) {
      result.problem = std::move(problem);
      result.impossible = true;
    }
  }
  const ShapeCompletion completion = shape_completion(node.op_type);
  if (completion && result.problem.empty()) completion(facts, result.outputs);
  return result;
}

bool ModelInference::merge_outputs(Node& node, const std::vector<Type>& inferred) {
  bool from_declaration = false;
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    Value* output = node.output(i);
    if (!output) continue;
    const bool is_interface = output->is_graph_output() && !node.graph()->parent();
    MergedType merged = merge_types(without_generated_symbols(output->type), inferred[i], is_interface);
    if (!merged.contradiction.empty() && ++contradictions_ <= max_contradictions) {
      note(node, "its output " + output->name() + " " + merged.contradiction);
    }
    from_declaration |= merged.from_declaration;
    output->type = std::move(merged.type);
    if (names_dims_) symbols_.name_dims(output->type);
  }
  return from_declaration;
}

void ModelInference::propagate(const NodeFacts& node) {
  for (const Value* output : node.node().outputs()) {
    if (output) forget(*output);
  }
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    const Value* output = node.node().output(i);
    if (!output || !is_small(output->type)) continue;
    if (auto known = propagated(node, output->type, i)) values_[output] = std::move(known);
  }
  remember_tensor(node);
}

std::optional<KnownValue> ModelInference::propagated(const NodeFacts& facts, const Type& type, std::size_t index) {
  const Node& node = facts.node();
  const auto of_output = [&](const Graph& graph) -> std::optional<KnownValue> {
    const KnownValue* value = index < graph.outputs().size() ? value_of(*graph.outputs()[index]) : nullptr;
    return value ? std::optional(*value) : std::nullopt;
  };
  std::optional<KnownValue> known;
  const OperatorSchema* schema = facts.opset() > 0 ? schemas_.find(node.domain, node.op_type, facts.opset()) : nullptr;
  if (!schema) {
    if (const Function* function = called_function(node)) known = of_output(*function->body);
  } else if (const Graph* branch = known_branch(facts)) {
    known = of_output(*branch);
  } else if (const ValueRule rule = is_onnx(node.domain) ? value_rule(node.op_type) : nullptr) {
    known = rule(facts, type, index);
  } else if (index == 0) {
    known = propagate_by_schema(*schema, facts, type);
  }
  // What is propagated and what the type says come by different ways; only where they agree is it worth anything.
  if (!known || known_dims(type) != known->dims) return std::nullopt;
  known->type = type.element;
  return known;
}

// Small tensors of any type, for shape functions that read them: the scales of Resize.
void ModelInference::remember_tensor(const NodeFacts& facts) {
  const Node& node = facts.node();
  const Value* output = node.output(0);
  if (!output || !is_onnx(node.domain)) return;
  const Tensor* tensor = nullptr;
  if (node.op_type == "Identity") {
    tensor = facts.input_tensor(0);
  } else if (node.op_type == "Constant") {
    if (const Attribute* value = facts.attribute("value")) {
      const auto* held = std::get_if<std::shared_ptr<const Tensor>>(&value->value);
      tensor = held ? held->get() : nullptr;
    } else if (const Attribute* reals = facts.attribute("value_floats")) {
      const auto* list = std::get_if<std::vector<float>>(&reals->value);
      if (list && list->size() <= max_known_elements) {
        tensor = &made_.emplace_back(
            make_tensor({}, DataType::float32, {static_cast<std::int64_t>(list->size())}, owned_values(*list)));
      }
    }
  }
  if (tensor && tensor->data && tensor->data->size() <= 1024) tensors_[output] = tensor;
}

const Function* ModelInference::called_function(const Node& node) const {
  if (functions_.empty()) return nullptr;
  const auto found = functions_.find(function_key(node.domain, node.op_type, node.overload));
  return found == functions_.end() ? nullptr : found->second;
}

const KnownValue* ModelInference::value_of(const Value& value) {
  auto found = values_.find(&value);
  if (found == values_.end()) {
    if (!value.initializer()) return nullptr;
    found = values_.emplace(&value, known_value_of(*value.initializer())).first;
  }
  return found->second ? &*found->second : nullptr;
}

const Tensor* ModelInference::tensor_of(const Value& value) {
  if (const auto found = tensors_.find(&value); found != tensors_.end()) return found->second;
  const Tensor* tensor = value.initializer();
  return tensor && tensor->data && tensor->data->size() <= 1024 ? tensor : nullptr;
}

const Attribute* ModelInference::resolve(const Attribute& attribute) const {
  if (attribute.reference.empty()) return &attribute;
  const auto found = scope_.bindings.find(attribute.reference);
  return found == scope_.bindings.end() ? nullptr : found->second;
}

void ModelInference::forget(const Value& value) {
  values_.erase(&value);
  tensors_.erase(&value);
}

std::int64_t ModelInference::opset_of(std::string_view domain) const {
  for (const auto& [name, version] : *scope_.opset_imports) {
    if (name == domain || (is_onnx(name) && is_onnx(domain))) return version;
  }
  return 0;
}

std::string ModelInference::label(const Node& node) const { return scope_.path + node.label(); }

void ModelInference::note(const Node& node, std::string message) {
  report_.notes.push_back({label(node), std::move(message)});
}

void ModelInference::note_once(const std::string& key, const Node& node, std::string message) {
  if (noted_.insert(key).second) note(node, std::move(message));
}

Result<InferenceReport> infer_shapes(Model& model) { return ModelInference(model).run(); }

NodeInference::NodeInference(Model& model) : inference_(std::make_unique<ModelInference>(model)) {}
NodeInference::~NodeInference() = default;
Status NodeInference::infer(Node& node) { return inference_->run_on(node); }

}  // namespace mk
