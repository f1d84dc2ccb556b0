#pragma once
// The structure of a model, checked without the onnx library (fast enough to run after every pass).
//
// Names are unique and defined before they are used, captures are in scope and shadow nothing, uses and producers
// agree, domains are imported, attributes are of the kind they say, initializers have data of the right size (or a
// reference to an external file that was missing when the model was read), functions are unique.

#include "base/result.h"
#include "graph/ir.h"

namespace mk {

// malformed, with the node, graph or tensor.
Status verify(const Model& model);

// ONNX's own full checker, over a skeleton of the model in which initializers over 1 KiB are inputs (so that it works
// at any size). `malformed`, with the checker's message and the node it names.
Status check_onnx(const Model& model);

}  // namespace mk
