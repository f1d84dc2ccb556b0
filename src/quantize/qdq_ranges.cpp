// Which nodes and values can be quantized, and with which ranges.

#include <algorithm>

#include "quantize/qdq_constants.h"
#include "quantize/qdq_masks.h"
#include "quantize/qdq_plan.h"

namespace mk {
namespace {

constexpr QdqRuleRow any_operator{"", QdqRule::elementwise};

bool is_qdq(const Node& node, std::string_view op_type) {
  return node.op_type == op_type && (node.domain.empty() || node.domain == "com.microsoft");
}

// The Relu or Clip that alone reads the value.
const Node* only_clip(const Value& value) {
  if (value.uses().size() != 1 || value.is_graph_output()) return nullptr;
  const Node& node = *value.uses().front().node;
  const bool clips = node.domain.empty() && (node.op_type == "Relu" || node.op_type == "Clip");
  return clips && node.graph() == value.graph() && value.uses().front().input == 0 ? &node : nullptr;
}

bool is_left_out(const Node& node, const QdqOptions& options) { return options.exclude.matches(node); }

}  // namespace

const QdqRuleRow* selected_rule(const Node& node, const QdqOptions& options, std::int64_t opset) {
  const QdqRuleRow* row = qdq_rule(node.domain, node.op_type);
  if (!options.op_types.empty()) {
    const auto& types = options.op_types;
    if (std::find(types.begin(), types.end(), node.op_type) == types.end()) return nullptr;
    if (!row && (is_qdq(node, "QuantizeLinear") || is_qdq(node, "DequantizeLinear"))) return nullptr;
    if (!row) row = &any_operator;
  } else if (options.scope == QdqScope::weighted && row && !row->weighted && row->rule != QdqRule::removable) {
    return nullptr;
  }
  return row && opset >= row->opset && node.subgraphs().empty() ? row : nullptr;
}

bool is_dequantized(const Value& value) { return value.producer() && is_qdq(*value.producer(), "DequantizeLinear"); }

bool is_quantized(const Value& value) {
  return std::any_of(value.uses().begin(), value.uses().end(),
                     [](const Use& use) { return is_qdq(*use.node, "QuantizeLinear") && use.input == 0; });
}

bool shares_parameters(const Value& value, DataType type) {
  if (!is_dequantized(value)) return false;
  const Tensor* scale = weight_tensor(value.producer()->input(1));
  const Tensor* zero_point = weight_tensor(value.producer()->input(2));
  return scale && scale->dims.empty() && scale->type == DataType::float32 && zero_point && zero_point->dims.empty() &&
         zero_point->type == type;
}

std::optional<QuantizationParameters> dequantized_parameters(const Value& value) {
  if (!is_dequantized(value)) return std::nullopt;
  const Node& node = *value.producer();
  const Tensor* scale = weight_tensor(node.input(1));
  if (!scale || scale->element_count() != 1) return std::nullopt;
  const auto scales = number_values(*scale);
  if (!scales) return std::nullopt;
  QuantizationParameters parameters{static_cast<float>(scales->front()), 0};
  if (const Value* zero_point = node.input(2)) {
    const Tensor* tensor = weight_tensor(zero_point);
    if (!tensor || tensor->element_count() != 1) return std::nullopt;
    const auto values = integer_values(*tensor);
    if (!values) return std::nullopt;
    parameters.zero_point = static_cast<std::int32_t>(values->front());
  }
  return parameters;
}

const TensorRange* QdqRanges::observed(const Value& value) const {
  const auto found = ranges_.find(value.name());
  return found == ranges_.end() ? nullptr : &found->second;
}

std::optional<TensorRange> QdqRanges::of(const Value& value) const {
  if (!value.type.is_tensor() || value.type.element != DataType::float32) return std::nullopt;
  const TensorRange* range = observed(value);
  if (const Node* producer = value.producer(); producer && !is_left_out(*producer, options_)) {
    const QdqRuleRow* row = qdq_rule(producer->domain, producer->op_type);
    const bool fixed = row && row->low < row->high && bits_of(options_.activation_type) >= row->bits;
    if (fixed && value.output_index() == 0) return TensorRange{row->low, row->high};
  }
  if (const Node* clip = only_clip(value); clip && clip->output(0) && !is_left_out(*clip, options_)) {
    if (const TensorRange* clipped = observed(*clip->output(0))) range = clipped;
  }
  if (!range || !(range->low <= range->high)) return std::nullopt;
  return unmasked(value, *range);
}

std::optional<TensorRange> QdqRanges::unmasked(const Value& value, TensorRange range) const {
  const Node* sum = value.producer();
  if (range.low <= mask_value / 10 && sum && sum->op_type == "Add" && sum->domain.empty()) {
    for (const std::size_t scores : {0u, 1u}) {
      const Value* other = sum->input(1 - scores);
      if (!other || !sum->input(scores)) continue;
      const TensorRange* of_scores = observed(*sum->input(scores));
      const TensorRange* of_mask = observed(*other);
      if (!of_scores || !of_mask) continue;
      if (const auto found = masked_scores_range(*of_scores, *of_mask, range)) return found;
    }
  }
  if (!is_mask_range(range)) return range;
  return TensorRange{mask_value, std::max(range.high, 0.0f)};
}

std::string QdqRanges::why_not(const Value& value) const {
  if (!value.type.is_tensor()) return "the type of '" + value.name() + "' is not known";
  if (value.type.element != DataType::float32)
    return "'" + value.name() + "' is " + std::string(name_of(value.type.element));
  if (value.graph() && value.graph()->parent())
    return "values inside of " + value.graph()->parent()->label() + " have no ranges: calibration sees those outside";
  return "no range of '" + value.name() + "' was calibrated";
}

}  // namespace mk
