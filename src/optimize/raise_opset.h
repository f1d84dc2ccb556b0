#pragma once
// A newer version of ai.onnx for a model, where every operator that it uses means the same there.

#include <cstdint>
#include <optional>
#include <string>

#include "graph/ir.h"

namespace mk {

// Imports `version` where the model imports an older one. Why it cannot be, naming the node; then the model is as it
// was. From 13 on and up to 21: operators whose inputs, attributes or defaults changed between the two are refused
// where the change says something else for the node.
std::optional<std::string> raise_opset(Model& model, std::int64_t version);

}  // namespace mk
