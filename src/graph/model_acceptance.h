#pragma once
// What a command asks of a model before it changes it: that it is one. The same answer for all commands.
//
// Flaws that runtimes overlook are mended: a graph without a name, metadata keys that are there twice, outputs whose
// type or shape is not declared or contradicts what is computed. What is left must pass verify() and ONNX's full
// checker. Since the checker reads every node twice, it is asked only where inference or an operator's schema gives
// cause.

#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "graph/ir.h"

namespace mk {

struct Acceptance {
  bool mended = false;
  std::vector<std::string> warnings;  // of what was mended that a user should know of, a sentence each
};

// Types of inner values are those of inference where the model states any. malformed or unsupported (operators newer
// than we know), with what is wrong and the node or value.
Result<Acceptance> accept_model(Model& model);

// The same, warning; whether anything was mended.
Result<bool> accept_model(Model& model, Progress& progress);

}  // namespace mk
