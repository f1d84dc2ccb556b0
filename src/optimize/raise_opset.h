#pragma once
// A newer version of ai.onnx for a model, where every operator that it uses means the same there.

#include <cstdint>
#include <optional>
#include <string>

#include "graph/ir.h"

namespace mk {

// Why the model cannot import `version` of ai.onnx, naming the node; nothing where it can, or imports one as new. From
// 11 on and up to 21: operators whose inputs, attributes or defaults changed in between are refused where the change
// says something else for the node, and rewriting its attributes does not help.
std::optional<std::string> cannot_raise_opset(const Model& model, std::int64_t version);

// Imports it, and takes the IR version that goes with it; where it can. The nodes stay as they are.
void raise_opset(Model& model, std::int64_t version);

// Writes the nodes of a model that imported `from` as its opset now has them: axes and sizes as inputs.
void renew_nodes(Model& model, std::int64_t from);

}  // namespace mk
