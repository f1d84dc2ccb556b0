#include "quantize/qdq_rules.h"

#include <algorithm>
#include <array>

namespace mk {
namespace {

using enum QdqRule;

// Sorted by type.
constexpr std::array rules{
    QdqRuleRow{"Add", elementwise},
    QdqRuleRow{"ArgMax", elementwise},
    QdqRuleRow{"AveragePool", movement},
    QdqRuleRow{"BatchNormalization", normalization},
    QdqRuleRow{"Clip", removable},
    QdqRuleRow{"Concat", elementwise},
    QdqRuleRow{"Conv", convolution, 1, true},
    QdqRuleRow{"ConvTranspose", convolution, 1, true},
    QdqRuleRow{"CumSum", elementwise},
    QdqRuleRow{"DepthToSpace", movement},
    QdqRuleRow{"Div", elementwise},
    QdqRuleRow{"Elu", elementwise},
    QdqRuleRow{"Erf", elementwise},
    QdqRuleRow{"Expand", movement},
    QdqRuleRow{"Flatten", movement},
    QdqRuleRow{"Gather", gather, 1, true},
    QdqRuleRow{"GatherElements", gather},
    QdqRuleRow{"Gelu", elementwise},
    QdqRuleRow{"Gemm", gemm, 1, true},
    QdqRuleRow{"GlobalAveragePool", elementwise},
    QdqRuleRow{"GlobalMaxPool", elementwise},
    QdqRuleRow{"HardSigmoid", elementwise, 1, false, 0, 1, 16},
    QdqRuleRow{"HardSwish", elementwise},
    QdqRuleRow{"InstanceNormalization", normalization},
    QdqRuleRow{"LayerNormalization", normalization},
    QdqRuleRow{"LeakyRelu", elementwise},
    QdqRuleRow{"MatMul", matmul, 1, true},
    QdqRuleRow{"MaxPool", movement, 12},
    QdqRuleRow{"Mul", elementwise},
    QdqRuleRow{"PRelu", elementwise},
    QdqRuleRow{"Pad", pad},
    QdqRuleRow{"Relu", removable},
    QdqRuleRow{"Reshape", movement},
    QdqRuleRow{"Resize", resize, 11},
    QdqRuleRow{"Sigmoid", elementwise, 1, false, 0, 1, 16},
    QdqRuleRow{"Slice", movement},
    QdqRuleRow{"Softmax", softmax, 1, false, 0, 1},
    QdqRuleRow{"SpaceToDepth", movement},
    QdqRuleRow{"Split", split},
    QdqRuleRow{"Squeeze", movement},
    QdqRuleRow{"Sub", elementwise},
    QdqRuleRow{"Tanh", elementwise, 1, false, -1, 1, 16},
    QdqRuleRow{"Tile", movement},
    QdqRuleRow{"TopK", movement},
    QdqRuleRow{"Transpose", movement},
    QdqRuleRow{"Unsqueeze", movement},
    QdqRuleRow{"Where", select},
};

constexpr bool by_type(const QdqRuleRow& a, const QdqRuleRow& b) { return a.op_type < b.op_type; }
static_assert(std::is_sorted(rules.begin(), rules.end(), by_type));

}  // namespace

const QdqRuleRow* qdq_rule(std::string_view domain, std::string_view op_type) {
  const bool known = domain.empty() || (domain == "com.microsoft" && op_type == "Gelu");
  if (!known) return nullptr;
  const auto* row = std::lower_bound(rules.begin(), rules.end(), QdqRuleRow{op_type, elementwise}, by_type);
  return row != rules.end() && row->op_type == op_type ? row : nullptr;
}

}  // namespace mk
