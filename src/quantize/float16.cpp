#include "quantize/float16.h"

#include "graph/inline_functions.h"
#include "graph/shape_inference.h"
#include "quantize/float16_bytes.h"
#include "quantize/float16_plan.h"
#include "quantize/float16_rewrite.h"

namespace mk {
namespace {

tl::unexpected<Error> no_data(const std::string& where) {
  return fail(ErrorCode::failed, "the data of a float32 tensor is not there", where,
              "Bring the model's external data file back beside it");
}

bool is_missing(const Tensor& tensor) {
  return tensor.type == DataType::float32 && !tensor.data && tensor.sparse.empty() && tensor.element_count() > 0;
}

Status check_data(const Graph& graph) {
  for (const Value* value : graph.initializers()) {
    if (is_missing(*value->initializer())) return no_data("tensor " + value->name());
  }
  for (const Node* node : graph.nodes()) {
    for (const Attribute& attribute : node->attributes()) {
      const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&attribute.value);
      if (tensor && *tensor && is_missing(**tensor)) return no_data("node " + node->label());
    }
    if (node->attributes().empty()) continue;
    for (const Graph* body : node->subgraphs()) MK_CHECK(check_data(*body));
  }
  return {};
}

// Calls `visit(Value&)` for the values that nodes make, without those whose types are the model's interface.
template <typename Visit>
void for_each_inner_value(Graph& graph, Visit&& visit) {
  for_each_node(graph, [&](Node& node) {
    for (Value* value : node.outputs()) {
      if (value && (node.graph()->parent() || !value->is_graph_output())) visit(*value);
    }
  });
}

}  // namespace

Result<std::vector<Float16OutOfRange>> Float16Report::out_of_range() const {
  std::vector<Float16OutOfRange> found;
  for (const auto& [tensor, bytes] : conversions) {
    MK_TRY(const Float16Losses losses, bytes->losses());
    if (losses.any()) found.push_back({tensor, losses.clipped, losses.infinite, losses.raised});
  }
  return found;
}

Result<Float16Report> convert_to_float16(Model& model, const Float16Options& options) {
  if (model.opset() == 0) {
    return fail(ErrorCode::malformed, "the model imports no version of ai.onnx", {},
                "It may be cut short: write or download it again");
  }
  constexpr std::int64_t oldest = 6;  // before, a Cast names its type in another way
  if (model.opset() < oldest) {
    return fail(ErrorCode::unsupported, "opset " + std::to_string(model.opset()) + " is too old for float16", {},
                "Convert the model to opset " + std::to_string(oldest) + " or later first");
  }
  MK_CHECK(check_data(*model.graph));
  for (const Function& function : model.functions) MK_CHECK(check_data(*function.body));
  bool states_types = false;
  for_each_inner_value(*model.graph, [&](const Value& value) { states_types |= value.type.kind != Type::Kind::none; });
  MK_CHECK(model.graph->sort());
  inline_functions(model);
  ElementTypes types(model);
  types.infer();
  Float16Plan plan(model, types, options);
  plan.decide();
  Float16Report report;
  Float16Rewrite(model, types, plan, report).run();
  // Shapes that were stated may be those of one size of the input only. Where inference fails, the element types are
  // there all the same; in a model that did without them, nobody needs them.
  for_each_inner_value(*model.graph, [&](Value& value) {
    if (!states_types) value.type = {};
    if (value.type.is_tensor()) value.type.shape.reset();
  });
  if (states_types) static_cast<void>(infer_shapes(model));
  return report;
}

}  // namespace mk
