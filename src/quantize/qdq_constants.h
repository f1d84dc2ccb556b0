#pragma once
// Weights that stand behind nodes become initializers before a graph is quantized.

#include "base/result.h"
#include "graph/ir.h"

namespace mk {

// Float tensors of Constant nodes, and of Identity, Cast to a float type, Transpose, Reshape, Squeeze, Unsqueeze and
// Flatten over such and over initializers, become initializers under the name of the node's output, in sub-graphs too.
// The bytes are views of the original ones. Other Identity nodes go too, but those that make an output. The model's
// types must be inferred.
Status fold_weight_constants(Model& model);

// unsupported, naming the node, for a model with EPContext nodes.
Status check_not_compiled(Model& model);

// The tensor of a value that is an initializer (one that a caller of the model may replace counts too).
const Tensor* weight_tensor(const Value* value);

}  // namespace mk
