#include "quantize/channel_gain.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "quantize/quantization_parameters.h"

namespace mk {
namespace {

// The axis of a weight's output channels; nothing where the node has no weight.
std::optional<std::size_t> channel_axis(const Node& node, const Tensor& weight) {
  if (!node.domain.empty()) return std::nullopt;
  const std::size_t rank = weight.dims.size();
  if (node.op_type == "Conv" && rank >= 3) return 0;
  if (node.op_type == "ConvTranspose" && rank >= 3 && node.integer("group", 1) == 1) return 1;
  if (node.op_type == "MatMul" && rank >= 2) return rank - 1;
  if (node.op_type == "Gemm" && rank == 2) return node.integer("transB", 0) != 0 ? 0 : 1;
  return std::nullopt;
}

double square(float value) { return static_cast<double>(value) * static_cast<double>(value); }

}  // namespace

Result<double> per_channel_gain(const Model& model, DataType type, bool symmetric, const NodeFilter& exclude) {
  double whole = 0, channels = 0;
  std::unordered_set<const Value*> seen;
  for (const Node* node : model.graph->nodes()) {
    const Value* value = node->input(1);
    if (!value || !value->initializer() || exclude.matches(*node)) continue;
    const Tensor& weight = *value->initializer();
    const auto axis = channel_axis(*node, weight);
    if (!axis || !weight.data || weight.type != DataType::float32 || !seen.insert(value).second) continue;
    MK_TRY(const std::vector<TensorRange> ranges, weight_ranges(weight, axis));
    if (ranges.empty()) continue;
    TensorRange all = ranges.front();
    for (const TensorRange& range : ranges) all = {std::min(all.low, range.low), std::max(all.high, range.high)};
    const std::array one{all};
    double sum = 0;
    for (const QuantizationParameters& p : weight_parameters(ranges, type, true)) sum += square(p.scale);
    const auto elements = static_cast<double>(weight.element_count());
    whole += elements * square(weight_parameters(one, type, symmetric).front().scale);
    channels += elements * sum / static_cast<double>(ranges.size());
  }
  return channels > 0 && whole > 0 ? 10 * std::log10(whole / channels) : 0;
}

}  // namespace mk
