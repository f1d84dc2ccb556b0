#pragma once
// The structure of a model, checked without the onnx library (fast enough to run after every pass).
// Unique names, topological order, every input defined, uses and producers that agree, initializers with data of the
// right size, known domains imported, subgraph captures in scope.

#include "base/result.h"
#include "graph/ir.h"

namespace mk {

Status verify(const Model& model);

// ONNX's own full checker, over a skeleton of the model in which initializers over 1 KiB are inputs (so that it works
// at any size). `malformed`, with the checker's message and the node it names.
Status check_onnx(const Model& model);

}  // namespace mk
