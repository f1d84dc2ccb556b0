#include "quantize/qdq.h"

#include <algorithm>
#include <set>

#include "graph/shape_inference.h"
#include "quantize/qdq_constants.h"
#include "quantize/qdq_masks.h"
#include "quantize/qdq_plan.h"

namespace mk {
namespace {

Status check_types(const QdqOptions& options) {
  for (const DataType type : {options.weight_type, options.activation_type}) {
    if (!is_quantized_type(type))
      return fail(ErrorCode::usage, "cannot quantize to " + std::string(name_of(type)), {},
                  "use int8, uint8, int16 or uint16");
  }
  return {};
}

}  // namespace

Status prepare_qdq(Model& model) {
  MK_CHECK(check_not_compiled(model));
  MK_CHECK(infer_shapes(model));
  MK_CHECK(fold_weight_constants(model));
  MK_CHECK(soften_masks(model));
  return {};
}

QdqScope chosen_scope(Model& model, const QdqOptions& options) {
  if (options.scope != QdqScope::automatic) return options.scope;
  if (!options.op_types.empty() || bits_of(options.activation_type) > 8) return QdqScope::all;
  // Attention multiplies two activations; other blocks of transformers have a norm between their products.
  bool attends = false;
  bool multiplies = false;
  bool normalizes = false;
  for_each_node(*model.graph, [&](const Node& node) {
    normalizes |= node.op_type == "LayerNormalization" || node.op_type == "SkipLayerNormalization";
    if (node.op_type != "MatMul" && node.op_type != "Gemm") return;
    const auto is_constant = [](const Value* value) {
      return value && (weight_tensor(value) || (is_dequantized(*value) && weight_tensor(value->producer()->input(0))));
    };
    const bool constant = is_constant(node.input(1)) || is_constant(node.input(0));
    (constant ? multiplies : attends) = true;
  });
  return multiplies && (attends || normalizes) ? QdqScope::weighted : QdqScope::all;
}

Result<QdqReport> insert_qdq(Model& model, const TensorRanges& ranges, const QdqOptions& requested) {
  MK_CHECK(check_types(requested));
  if (model.opset() < 10)
    return fail(ErrorCode::unsupported, "opset " + std::to_string(model.opset()) + " has no QuantizeLinear", {},
                "convert the model to opset 10 or later");
  MK_CHECK(prepare_qdq(model));
  QdqOptions options = requested;
  options.scope = chosen_scope(model, requested);
  QdqReport report;
  report.scope = options.scope;
  const QdqRanges usable(ranges, options);
  MK_TRY(QdqPlan plan, plan_qdq(model, usable, options, report));
  MK_CHECK(apply_qdq(model, plan, usable, options, report));
  if (report.nodes_quantized == 0) report.warnings.push_back("no node was quantized");
  return report;
}

Result<std::vector<std::string>> tensors_to_observe(Model& model, const QdqOptions& requested) {
  MK_CHECK(prepare_qdq(model));
  QdqOptions options = requested;
  options.scope = chosen_scope(model, requested);
  std::set<std::string> names;
  const auto add = [&](const Value* value) {
    if (value && !value->initializer() && value->type.is_tensor() && value->type.element == DataType::float32 &&
        !is_dequantized(*value))
      names.insert(value->name());
  };
  for (Node* node : model.graph->nodes()) {
    const QdqRuleRow* row = selected_rule(*node, options, model.opset());
    if (!row || options.exclude.matches(*node)) continue;
    const bool weights_only = options.scope == QdqScope::weighted && row->weighted;
    if (weights_only && !weight_tensor(node->input(1)) && !weight_tensor(node->input(0))) continue;
    for (const Value* value : node->inputs()) add(value);
    if (weights_only && row->rule != QdqRule::convolution) continue;
    for (const Value* value : node->outputs()) add(value);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace mk
