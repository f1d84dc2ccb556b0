#include "graph/onnx_operator.h"

#include <onnx/defs/schema.h>
#include <onnx/defs/shape_inference.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>

#include "graph/einsum_equation.h"
#include "graph/onnx_protos.h"
#include "graph/value_rules.h"

namespace mk {

struct OperatorSchema {
  const onnx::OpSchema* schema = nullptr;
  onnx::InferenceFunction infer;
  onnx::DataPropagationFunction propagate;
};

struct SchemaCache::Entries {
  // By op type; the domains and versions in use of one are few.
  struct Entry {
    std::string domain;
    std::int64_t version = 0;
    std::unique_ptr<OperatorSchema> found;
  };
  std::unordered_map<std::string, std::deque<Entry>> by_type;
};

SchemaCache::SchemaCache() : entries_(std::make_unique<Entries>()) {}
SchemaCache::~SchemaCache() = default;

const OperatorSchema* SchemaCache::find(std::string_view domain, std::string_view op_type, std::int64_t version) {
  if (domain == "ai.onnx") domain = {};
  auto& entries = entries_->by_type[std::string(op_type)];
  for (const auto& entry : entries) {
    if (entry.domain == domain && entry.version == version) return entry.found.get();
  }
  auto& entry = entries.emplace_back();
  entry.domain = domain;
  entry.version = version;
  const auto newest = static_cast<int>(std::clamp<std::int64_t>(version, 0, 1 << 20));
  const auto* schema = onnx::OpSchemaRegistry::Schema(std::string(op_type), newest, entry.domain);
  if (!schema) return nullptr;
  entry.found = std::make_unique<OperatorSchema>();
  entry.found->schema = schema;
  if (schema->has_type_and_shape_inference_function()) entry.found->infer = schema->GetTypeAndShapeInferenceFunction();
  if (schema->has_data_propagation_function()) entry.found->propagate = schema->GetDataPropagationFunction();
  return entry.found.get();
}

namespace {

[[noreturn]] void refuse(const std::string& why) { throw onnx::InferenceError(why); }

// Attributes by name, converted when they are asked for.
class AttributeProtos {
 public:
  const onnx::AttributeProto* find(const NodeFacts& node, const std::string& name) const {
    for (const auto& known : made_) {
      if (known.name() == name) return &known;
    }
    const Attribute* attribute = node.attribute(name);
    if (!attribute) return nullptr;
    auto& made = made_.emplace_back();
    to_proto(*attribute, made);
    made.set_name(name);
    if (name == "equation" && node.node().op_type == "Einsum") {
      const auto equation = plain_einsum_equation(made.s());
      if (!equation) refuse("its equation '" + made.s() + "' is not one");
      made.set_s(*equation);
    }
    return &made;
  }

 private:
  mutable std::deque<onnx::AttributeProto> made_;
};

// Types of a node's inputs, converted when they are asked for.
class InputTypes {
 public:
  explicit InputTypes(const NodeFacts& node) : node_(node), types_(node.input_count()) {}

  const onnx::TypeProto* find(std::size_t i) const {
    if (i >= types_.size()) refuse("it has no input " + std::to_string(i));
    auto& [state, proto] = types_[i];
    if (state == State::pending) {
      const Type* type = node_.input_type(i);
      state = type && to_proto(*type, proto) ? State::known : State::unknown;
    }
    return state == State::known ? &proto : nullptr;
  }

 private:
  enum class State : std::uint8_t { pending, known, unknown };
  const NodeFacts& node_;
  mutable std::vector<std::pair<State, onnx::TypeProto>> types_;
};

class SubgraphInferencer final : public onnx::GraphInferencer {
 public:
  SubgraphInferencer(const NodeFacts& node, Graph& graph) : node_(node), graph_(graph) {}

  std::vector<const onnx::TypeProto*> doInferencing(const std::vector<const onnx::TypeProto*>& input_types,
                                                    const std::vector<const onnx::TensorProto*>&) override {
    std::vector<Type> inputs;
    for (const auto* type : input_types) inputs.push_back(type ? from_proto(*type) : Type());
    std::vector<const Type*> pointers;
    for (const Type& type : inputs) pointers.push_back(&type);
    const auto outputs = node_.state().infer_subgraph(graph_, pointers);
    if (!outputs) refuse(outputs.error().message);
    std::vector<const onnx::TypeProto*> result;
    for (const Type& type : *outputs) {
      to_proto(type, outputs_.emplace_back());
      result.push_back(&outputs_.back());
    }
    return result;
  }

 private:
  const NodeFacts& node_;
  Graph& graph_;
  std::deque<onnx::TypeProto> outputs_;
};

class NodeInferenceContext final : public onnx::InferenceContext {
 public:
  explicit NodeInferenceContext(const NodeFacts& node)
      : node_(node),
        inputs_(node),
        data_(node.input_count()),
        values_(node.input_count()),
        outputs_(node.output_count()) {}

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    return attributes_.find(node_, name);
  }
  size_t getNumInputs() const override { return node_.input_count(); }
  const onnx::TypeProto* getInputType(size_t i) const override { return inputs_.find(i); }
  bool hasInput(size_t i) const override { return node_.has_input(i); }

  const onnx::TensorProto* getInputData(size_t i) const override {
    if (i >= data_.size()) refuse("it has no input " + std::to_string(i));
    if (data_[i]) return data_[i].get();
    auto proto = std::make_unique<onnx::TensorProto>();
    if (const Tensor* tensor = node_.input_tensor(i)) {
      to_proto(*tensor, *proto);
    } else {
      const KnownValue* value = node_.input_value(i);
      if (!value || !value->is_constant() || !to_proto(*value, *proto)) return nullptr;
    }
    data_[i] = std::move(proto);
    return data_[i].get();
  }

  const onnx::TensorShapeProto* getSymbolicInput(size_t i) const override {
    if (i >= values_.size()) refuse("it has no input " + std::to_string(i));
    if (values_[i]) return values_[i].get();
    const KnownValue* value = node_.input_value(i);
    if (!value || value->dims.size() > 1) return nullptr;
    values_[i] = std::make_unique<onnx::TensorShapeProto>();
    to_proto(*value, *values_[i]);
    return values_[i].get();
  }

  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  size_t getNumOutputs() const override { return outputs_.size(); }
  onnx::TypeProto* getOutputType(size_t i) override {
    if (i >= outputs_.size()) refuse("it has no output " + std::to_string(i));
    return &outputs_[i];
  }
  bool hasOutput(size_t i) override { return node_.node().output(i) != nullptr; }

  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string& name) override {
    for (auto& [known, inferencer] : subgraphs_) {
      if (known == name) return &inferencer;
    }
    const Attribute* attribute = node_.attribute(name);
    const auto* graph = attribute ? std::get_if<std::unique_ptr<Graph>>(&attribute->value) : nullptr;
    if (!graph || !*graph) refuse("its attribute " + name + " is not a graph");
    return &subgraphs_.emplace_back(name, SubgraphInferencer(node_, **graph)).second;
  }

  std::string getDisplayName() const override { return node_.node().label(); }

 private:
  const NodeFacts& node_;
  AttributeProtos attributes_;
  InputTypes inputs_;
  mutable std::vector<std::unique_ptr<onnx::TensorProto>> data_;
  mutable std::vector<std::unique_ptr<onnx::TensorShapeProto>> values_;
  std::vector<onnx::TypeProto> outputs_;
  std::deque<std::pair<std::string, SubgraphInferencer>> subgraphs_;
};

class NodePropagationContext final : public onnx::DataPropagationContext {
 public:
  NodePropagationContext(const NodeFacts& node, const Type& output) : node_(node), inputs_(node), output_(output) {}

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    return attributes_.find(node_, name);
  }
  size_t getNumInputs() const override { return node_.input_count(); }
  const onnx::TypeProto* getInputType(size_t i) const override { return inputs_.find(i); }
  size_t getNumOutputs() const override { return node_.output_count(); }
  const onnx::TypeProto* getOutputType(size_t) const override { return &no_type_; }

  const onnx::TensorShapeProto* getInputData(size_t i) override {
    const KnownValue* value = node_.input_value(i);
    if (!value || value->dims.size() > 1) return nullptr;
    to_proto(*value, values_.emplace_back());
    return &values_.back();
  }

  void addOutputData(size_t i, onnx::TensorShapeProto&& data) override {
    const auto dims = known_dims(output_);
    const auto count = dims ? known_count(*dims) : std::nullopt;
    if (i != 0 || !count || *count != static_cast<std::size_t>(data.dim_size())) return;
    result_.emplace(KnownValue{output_.element, *dims, {}});
    for (const auto& dim : data.dim()) result_->elements.push_back(element_from_proto(dim));
  }

  std::optional<KnownValue> take_result() { return std::move(result_); }

 private:
  const NodeFacts& node_;
  AttributeProtos attributes_;
  InputTypes inputs_;
  const Type& output_;
  onnx::TypeProto no_type_;
  std::deque<onnx::TensorShapeProto> values_;
  std::optional<KnownValue> result_;
};

// Operators whose shape function takes for granted that the type of the first input is known.
constexpr std::array needs_input_type{std::string_view("DictVectorizer"), std::string_view("EyeLike"),
                                      std::string_view("LabelEncoder"), std::string_view("RegexFullMatch")};

// Shape functions take for granted what the schema promises: counts of inputs and outputs, types of attributes.
void check_against_schema(const onnx::OpSchema& schema, const NodeFacts& node) {
  const auto in_range = [](std::size_t count, int least, int most) {
    return count <= static_cast<std::size_t>(INT32_MAX) && static_cast<int>(count) >= least &&
           static_cast<int>(count) <= most;
  };
  if (!in_range(node.input_count(), schema.min_input(), schema.max_input())) {
    refuse(schema.Name() + " does not take " + std::to_string(node.input_count()) + " inputs");
  }
  if (!in_range(node.output_count(), schema.min_output(), schema.max_output())) {
    refuse(schema.Name() + " does not have " + std::to_string(node.output_count()) + " outputs");
  }
  if (!node.input_type(0) &&
      std::find(needs_input_type.begin(), needs_input_type.end(), schema.Name()) != needs_input_type.end()) {
    refuse("the type of its input is not known");
  }
  for (std::size_t i = 0; i < node.input_count() && i < schema.inputs().size(); ++i) {
    if (schema.inputs()[i].GetOption() == onnx::OpSchema::Single && !node.has_input(i)) {
      refuse("its input " + schema.inputs()[i].GetName() + " is missing");
    }
  }
  for (const Attribute& given : node.node().attributes()) {
    const auto known = schema.attributes().find(given.name);
    const Attribute* attribute = known == schema.attributes().end() ? nullptr : node.attribute(given.name);
    if (attribute && static_cast<int>(attribute->kind) != static_cast<int>(known->second.type)) {
      refuse("its attribute " + given.name + " is of the wrong type");
    }
  }
  for (const auto& [name, attribute] : schema.attributes()) {
    if (attribute.required && !node.attribute(name)) refuse("its attribute " + name + " is missing");
  }
}

void run(const OperatorSchema& schema, NodeInferenceContext& context) {
  if (schema.infer) {
    schema.infer(context);
  } else if (const auto* body = schema.schema->HasFunction() ? schema.schema->GetFunction() : nullptr) {
    onnx::shape_inference::DataValueMap values;
    onnx::shape_inference::InferShapeForFunctionNode(*body, onnx::OpSchemaRegistry::Instance(), context,
                                                     onnx::ShapeInferenceOptions(false, 0, true), {}, nullptr, &values);
  } else {
    schema.schema->CheckInputOutputType(context);  // gives the element types that follow from the type constraints
  }
}

// Without the library's decoration: "[ShapeInferenceError] ", and the context it appends.
std::string plain(std::string message) {
  if (message.starts_with("[")) {
    const std::size_t end = message.find("] ");
    if (end != std::string::npos) message.erase(0, end + 2);
  }
  message.erase(std::min(message.find_first_of('\n'), message.size()));
  while (message.ends_with(".")) message.pop_back();
  return message;
}

// Operators whose shape function fails only where dimensions cannot match, so that no run can succeed.
constexpr std::array must_match{
    std::string_view("Add"),    std::string_view("And"),         std::string_view("BitwiseAnd"),
    std::string_view("Concat"), std::string_view("Div"),         std::string_view("Equal"),
    std::string_view("Gemm"),   std::string_view("Greater"),     std::string_view("GreaterOrEqual"),
    std::string_view("Less"),   std::string_view("LessOrEqual"), std::string_view("MatMul"),
    std::string_view("Max"),    std::string_view("Mean"),        std::string_view("Min"),
    std::string_view("Mod"),    std::string_view("Mul"),         std::string_view("Or"),
    std::string_view("Pow"),    std::string_view("Sub"),         std::string_view("Sum"),
    std::string_view("Where"),  std::string_view("Xor"),
};

}  // namespace

bool agrees(const OperatorSchema& known, const Node& node) {
  const onnx::OpSchema& schema = *known.schema;
  const auto in_range = [](std::size_t count, int least, int most) {
    return count >= static_cast<std::size_t>(std::max(least, 0)) && count <= static_cast<std::size_t>(most);
  };
  if (schema.deprecated() || !in_range(node.inputs().size(), schema.min_input(), schema.max_input()) ||
      !in_range(node.outputs().size(), schema.min_output(), schema.max_output()))
    return false;
  for (std::size_t i = 0; i < std::min(node.inputs().size(), schema.inputs().size()); ++i) {
    if (!node.input(i) && schema.inputs()[i].GetOption() == onnx::OpSchema::Single) return false;
  }
  for (const Attribute& given : node.attributes()) {
    const auto declared = schema.attributes().find(given.name);
    if (declared == schema.attributes().end()) {
      if (!given.name.starts_with("__")) return false;
    } else if (static_cast<int>(given.kind) != static_cast<int>(declared->second.type)) {
      return false;
    }
  }
  return std::ranges::all_of(schema.attributes(), [&](const auto& row) {
    return !row.second.required || node.attribute(row.first) != nullptr;
  });
}

std::int64_t newest_opset(std::string_view domain) {
  const auto& versions = onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
  const auto found = versions.find(domain == "ai.onnx" ? std::string() : std::string(domain));
  return found == versions.end() ? 0 : found->second.second;
}

InferredTypes infer_by_schema(const OperatorSchema& schema, const NodeFacts& node) {
  InferredTypes result{std::vector<Type>(node.output_count()), {}, false};
  NodeInferenceContext context(node);
  try {
    check_against_schema(*schema.schema, node);
    run(schema, context);
  } catch (const onnx::InferenceError& error) {
    const std::string message = error.what();
    result.problem = plain(message);
    result.impossible = message.starts_with("[ShapeInferenceError]") && schema.schema->domain().empty() &&
                        std::find(must_match.begin(), must_match.end(), schema.schema->Name()) != must_match.end();
  } catch (const std::exception& error) {
    result.problem = plain(error.what());
  } catch (...) {
    result.problem = "its shape function failed";
  }
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    result.outputs[i] = from_proto(*context.getOutputType(i));
    // A function that failed half way may have said which element type it is, but not all of the shape.
    if (!result.problem.empty()) result.outputs[i].shape.reset();
  }
  return result;
}

std::optional<KnownValue> propagate_by_schema(const OperatorSchema& schema, const NodeFacts& node, const Type& output) {
  if (!schema.propagate) return std::nullopt;
  try {
    check_against_schema(*schema.schema, node);
    NodePropagationContext context(node, output);
    schema.propagate(context);
    return context.take_result();
  } catch (...) {
    return std::nullopt;  // what cannot be propagated is not known
  }
}

}  // namespace mk
