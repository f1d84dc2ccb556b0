#pragma once
// Models whose outputs are others at each run.

#include "graph/ir.h"

namespace mk {

// Whether a node, in a sub-graph too, draws random numbers: RandomNormal and its kind, and Dropout in training.
bool draws_random_numbers(const Model& model);

}  // namespace mk
