#include "optimize/fused_activation.h"

#include <array>
#include <limits>

#include "optimize/constants.h"

namespace mk {
namespace {

struct Parameter {
  const char* name = nullptr;
  float otherwise = 0;
};
struct Row {
  const char* op_type;
  std::array<Parameter, 2> parameters;
};
constexpr std::array<Row, 5> rows{{
    {"Relu", {}},
    {"Sigmoid", {}},
    {"Tanh", {}},
    {"LeakyRelu", {{{"alpha", 0.01F}}}},
    {"HardSigmoid", {{{"alpha", 0.2F}, {"beta", 0.5F}}}},
}};

std::optional<float> limit(const Node& node, std::size_t input, const char* name, float otherwise) {
  if (!node.input(input)) return node.real(name, otherwise);
  const auto value = scalar_of(node.input(input));
  return value ? std::optional(static_cast<float>(*value)) : std::nullopt;
}

}  // namespace

std::optional<FusedActivation> fused_activation(const Node& node) {
  if (!node.domain.empty()) return std::nullopt;
  if (node.op_type == "Clip") {
    const auto low = limit(node, 1, "min", std::numeric_limits<float>::lowest());
    const auto high = limit(node, 2, "max", std::numeric_limits<float>::max());
    if (!low || !high) return std::nullopt;
    return FusedActivation{"Clip", {*low, *high}};
  }
  for (const Row& row : rows) {
    if (node.op_type != row.op_type) continue;
    FusedActivation result{row.op_type, {}};
    for (const Parameter& parameter : row.parameters) {
      if (parameter.name) result.parameters.push_back(node.real(parameter.name, parameter.otherwise));
    }
    return result;
  }
  return std::nullopt;
}

}  // namespace mk
