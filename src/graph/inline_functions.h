#pragma once
// Puts the bodies of model-local functions in place of their calls (onnx.FunctionProto; the rules are those of ONNX's
// IR specification: attribute references take the call's value, else the function's default, else they are absent).

#include "base/result.h"
#include "graph/ir.h"

namespace mk {

struct InliningReport {
  std::size_t inlined = 0;  // calls
  std::size_t left = 0;     // calls of functions that follow another opset than the model, or call themselves
};

// Names of new values and nodes begin with the call's. Outputs keep their names. Functions that nothing calls any more
// go. A function whose imports the model does not have adds them.
InliningReport inline_functions(Model& model);

}  // namespace mk
