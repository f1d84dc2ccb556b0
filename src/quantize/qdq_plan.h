#pragma once
// What insert_qdq() is going to do, tensor by tensor: made by qdq_plan.cpp, carried out by qdq_insert.cpp.

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "quantize/qdq.h"
#include "quantize/qdq_rules.h"
#include "quantize/quantization_parameters.h"

namespace mk {

// An initializer that becomes integers behind a DQ, for some of its uses.
struct WeightPlan {
  Value* value = nullptr;
  std::optional<std::size_t> axis;  // per channel
  DataType type = DataType::undefined;
  bool symmetric = false;
  std::vector<Use> uses;
  std::vector<TensorRange> ranges;  // of the channels, or one
  std::vector<QuantizationParameters> parameters;
};

// A float tensor that gets Q and DQ.
struct ActivationPlan {
  Value* value = nullptr;
  Value* shares = nullptr;  // the value whose parameters it has: an activation, a weight or a dequantized value
  bool everywhere = false;  // all consumers read the DQ; else only `uses`
  std::vector<Use> uses;
};

// A Gather that takes rows of integers, with a DQ behind it.
struct TablePlan {
  Node* node = nullptr;
  std::size_t weight = 0;  // index of its WeightPlan; channels are the last axis
};

struct BiasPlan {
  Use use;
  Value* input = nullptr;  // of the same node
  std::size_t weight = 0;  // index of its WeightPlan
  float alpha = 1;         // factor of the product
  float beta = 1;          // factor of the bias
};

struct QdqPlan {
  std::vector<WeightPlan> weights;
  std::vector<ActivationPlan> activations;
  std::unordered_map<const Value*, std::size_t> activation_of;  // index
  std::vector<BiasPlan> biases;
  std::vector<TablePlan> tables;
};

// What the samples, or the operator that makes it, say of a value; nothing where it has no range, or one that cannot be
// quantized. Masks of attention, and the scores that they are added to, have ranges in which they saturate.
class QdqRanges {
 public:
  QdqRanges(const TensorRanges& ranges, const QdqOptions& options) : ranges_(ranges), options_(options) {}
  std::optional<TensorRange> of(const Value& value) const;
  // The same, saying why there is none.
  std::string why_not(const Value& value) const;

 private:
  const TensorRange* observed(const Value& value) const;
  std::optional<TensorRange> unmasked(const Value& value, TensorRange range) const;
  const TensorRanges& ranges_;
  const QdqOptions& options_;
};

// The rule by which a node is to be quantized; null where the options leave it out.
const QdqRuleRow* selected_rule(const Node& node, const QdqOptions& options, std::int64_t opset);

// Whether it is the output of a DequantizeLinear, or goes into a QuantizeLinear.
bool is_dequantized(const Value& value);
bool is_quantized(const Value& value);
// Whether Q and DQ behind a dequantized value can have its parameters: constants per tensor in this type.
bool shares_parameters(const Value& value, DataType type);
// Scale and zero point of a DequantizeLinear per tensor over constants.
std::optional<QuantizationParameters> dequantized_parameters(const Value& value);

// Folds Relu and Clip away where that is right, and plans the rest. The model's types must be inferred and its
// constants folded.
Result<QdqPlan> plan_qdq(Model& model, const QdqRanges& ranges, const QdqOptions& options, QdqReport& report);

// Carries the plan out.
Status apply_qdq(Model& model, QdqPlan& plan, const QdqRanges& ranges, const QdqOptions& options, QdqReport& report);

}  // namespace mk
