#pragma once
// Which values of a control-flow node and of its bodies are the same: If, Loop, Scan.

#include <vector>

#include "graph/ir.h"

namespace mk {

struct BodyLink {
  const Value* outer = nullptr;  // an input or output of the node; null for an output that is left out
  Value* inner = nullptr;        // an input or output of the body
};

bool is_control_flow(const Node& node);

// Those without a counterpart (a Loop's iteration number and condition) are not listed.
std::vector<BodyLink> body_inputs(const Node& node, const Graph& body);
std::vector<BodyLink> body_outputs(const Node& node, const Graph& body);

}  // namespace mk
