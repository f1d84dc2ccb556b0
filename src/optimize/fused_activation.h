#pragma once
// Activations that ONNX Runtime's fused operators take as attributes.

#include <optional>
#include <string>
#include <vector>

#include "graph/ir.h"

namespace mk {

struct FusedActivation {
  std::string name;
  std::vector<float> parameters;  // alpha and beta, or min and max: all that the activation has, defaults filled in
};

// Nothing where the node is no such activation, or its limits are not constant.
std::optional<FusedActivation> fused_activation(const Node& node);

}  // namespace mk
