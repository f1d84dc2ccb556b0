#include "graph/model_acceptance.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_set>

#include "graph/onnx_operator.h"
#include "graph/shape_inference.h"
#include "graph/verifier.h"

namespace mk {
namespace {

bool is_onnx(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

void keep_last_of_each_key(Metadata& metadata, Acceptance& acceptance) {
  std::unordered_set<std::string> seen;
  Metadata kept;
  for (auto entry = metadata.rbegin(); entry != metadata.rend(); ++entry) {
    if (seen.insert(entry->first).second) kept.push_back(*entry);
  }
  if (kept.size() == metadata.size()) return;
  acceptance.mended = true;
  acceptance.warnings.push_back(fmt::format("{} keys of the model's metadata were there twice: the last value counts",
                                            metadata.size() - kept.size()));
  metadata.assign(kept.rbegin(), kept.rend());
}

// Whether a graph's interface says what it must: outputs at all, and a type for each input.
Status check_interface(const Graph& graph) {
  if (graph.outputs().empty()) return fail(ErrorCode::malformed, "the model has no output");
  for (const Value* input : graph.inputs()) {
    if (input->type.kind == Type::Kind::none)
      return fail(ErrorCode::malformed, "the input has no type", "input " + input->name(),
                  "A model declares the element type and shape of each input");
  }
  return {};
}

Status check_versions(const Model& model) {
  for (const auto& [domain, version] : model.opset_imports) {
    const std::int64_t newest = newest_opset(domain);
    if (newest > 0 && version > newest)
      return fail(
          ErrorCode::unsupported,
          fmt::format("the model has operators of version {} of {}", version, is_onnx(domain) ? "ai.onnx" : domain), {},
          fmt::format("Versions up to {} are known here", newest));
  }
  return {};
}

// Operators that ONNX Runtime knows in ai.onnx and ONNX does not, at least not in all versions: its own optimizer and
// older exporters wrote them.
constexpr std::array of_runtime{
    std::string_view("Affine"),
    std::string_view("Crop"),
    std::string_view("DynamicSlice"),
    std::string_view("GivenTensorFill"),
    std::string_view("ImageScaler"),
    std::string_view("LayerNormalization"),
    std::string_view("MeanVarianceNormalization"),
    std::string_view("ParametricSoftplus"),
    std::string_view("RMSNormalization"),
    std::string_view("Scale"),
    std::string_view("ScaledTanh"),
    std::string_view("SimplifiedLayerNormalization"),
    std::string_view("ThresholdedRelu"),
};

struct Operators {
  bool disagree = false;    // some node is not as its schema says
  bool of_runtime = false;  // some have no schema, and run all the same: ONNX's checker would refuse them
};

Result<Operators> check_operators(const Model& model) {
  SchemaCache schemas;
  const std::int64_t opset = model.opset();
  Operators found;
  const Node* unknown = nullptr;
  for_each_node(*model.graph, [&](const Node& node) {
    if (!is_onnx(node.domain)) return;
    if (const OperatorSchema* schema = schemas.find({}, node.op_type, opset)) {
      found.disagree |= !agrees(*schema, node);
    } else if (std::ranges::find(of_runtime, node.op_type) != of_runtime.end()) {
      found.of_runtime = true;
    } else if (std::ranges::none_of(model.functions, [&](const Function& function) {
                 return function.name == node.op_type && is_onnx(function.domain);
               })) {
      unknown = unknown ? unknown : &node;
    }
  });
  if (!unknown) return found;
  return fail(ErrorCode::malformed, fmt::format("ai.onnx {} has no operator {}", opset, unknown->op_type),
              unknown->label(), "Operators of other makers need their domain");
}

bool states_inner_types(const Model& model) {
  bool states = false;
  for_each_node(*model.graph, [&](const Node& node) {
    for (const Value* output : node.outputs())
      states |= output && !output->is_graph_output() && output->type.kind != Type::Kind::none;
  });
  return states;
}

void forget_inner_types(Model& model) {
  for_each_node(*model.graph, [&](Node& node) {
    for (Value* output : node.outputs())
      if (output && !output->is_graph_output()) output->type = {};
  });
}

void name_graph(Graph& graph, Acceptance& acceptance) {
  if (!graph.name.empty()) return;
  graph.name = "graph";
  acceptance.mended = true;
}

bool same_element(const Type& declared, const Type& inferred) {
  if (declared.kind == Type::Kind::none || inferred.kind == Type::Kind::none) return true;
  return declared.kind == inferred.kind &&
         (declared.element == inferred.element || declared.element == DataType::undefined ||
          inferred.element == DataType::undefined);
}

// A size and a symbol can both be.
bool same_shape(const Type& declared, const Type& inferred) {
  if (!declared.shape || !inferred.shape) return true;
  return std::ranges::equal(*declared.shape, *inferred.shape, [](const Dim& a, const Dim& b) {
    return !a.is_known() || !b.is_known() || a.value == b.value;
  });
}

// Outputs are now as inference says; `declared` is what was said of them. Runtimes refuse another element type, and
// only warn of another shape.
Status compare_outputs(const Graph& graph, const std::vector<Type>& declared, Acceptance& acceptance) {
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const Value& output = *graph.outputs()[i];
    const Type& was = declared[i];
    acceptance.mended |= was.kind == Type::Kind::none || (was.is_tensor() && !was.shape && output.type.shape);
    const bool right_element = same_element(was, output.type);
    if (right_element && same_shape(was, output.type)) continue;
    std::string difference =
        fmt::format("the output {} is declared as {} but is {}", output.name(), to_string(was), to_string(output.type));
    if (!right_element) return fail(ErrorCode::malformed, std::move(difference));
    acceptance.mended = true;
    acceptance.warnings.push_back(std::move(difference) + ": corrected");
  }
  return {};
}

// Runtimes refuse nodes that share a name.
void make_names_unique(Graph& graph, Acceptance& acceptance) {
  std::unordered_set<std::string_view> taken;
  std::vector<Node*> again;
  for_each_node(graph, [&](Node& node) {
    if (!node.name.empty() && !taken.insert(node.name).second) again.push_back(&node);
  });
  for (Node* node : again) {
    std::string name;
    for (int number = 2; name.empty() || taken.contains(name); ++number)
      name = fmt::format("{}_{}", node->name, number);
    node->name = std::move(name);
    taken.insert(node->name);
  }
  acceptance.mended |= !again.empty();
}

// ONNX's checker decides; what inference saw is the better reason where there is one.
Status check_doubtful(const Model& model, const InferenceReport& inferred) {
  auto checked = check_onnx(model);
  if (checked) return checked;
  const auto note = std::ranges::find_if(inferred.notes, &InferenceNote::refused);
  if (note == inferred.notes.end()) return checked;
  return fail(ErrorCode::malformed, note->message, note->node, "The model cannot run; it has to be exported again");
}

}  // namespace

Result<Acceptance> accept_model(Model& model) {
  MK_CHECK(verify(model));
  MK_CHECK(check_versions(model));
  MK_CHECK(check_interface(*model.graph));
  Acceptance acceptance;
  name_graph(*model.graph, acceptance);
  make_names_unique(*model.graph, acceptance);
  keep_last_of_each_key(model.metadata, acceptance);

  std::vector<Type> declared;
  for (const Value* output : model.graph->outputs()) declared.push_back(output->type);
  const bool states_types = states_inner_types(model);
  MK_TRY(const InferenceReport inferred, infer_shapes(model));
  MK_CHECK(compare_outputs(*model.graph, declared, acceptance));
  MK_TRY(const Operators operators, check_operators(model));
  const bool doubtful = operators.disagree || std::ranges::any_of(inferred.notes, &InferenceNote::refused);
  if (doubtful && !operators.of_runtime) MK_CHECK(check_doubtful(model, inferred));
  if (!states_types) forget_inner_types(model);
  return acceptance;
}

Result<bool> accept_model(Model& model, Progress& progress) {
  MK_TRY(const Acceptance acceptance, accept_model(model));
  for (const std::string& sentence : acceptance.warnings) progress.warn(sentence);
  return acceptance.mended;
}

}  // namespace mk
