#pragma once
// The optimize stage: the passes of the target's policy and of the config, checked against the model before.

#include "build/pipeline.h"

namespace mk {

struct OptimizeStage {
  StageOutcome outcome;
  bool fired = false;  // a pass has changed the graph
};

// state.graph is replaced. usage for an unknown flag in the config's optim section, otherwise as optimize().
Result<OptimizeStage> run_optimize(BuildState& state);

// Whether a model holds compiled graphs of an EP (com.microsoft.EPContext), which no pass may touch.
bool is_compiled(const Model& model);

}  // namespace mk
