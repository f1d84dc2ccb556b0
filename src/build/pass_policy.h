#pragma once
// Which passes a build runs: the one table, target by what follows (spec: decisions, which passes a build runs). What a
// config's optim section says comes on top.

#include <string_view>
#include <vector>

#include "optimize/capabilities.h"
#include "runtime/target.h"

namespace mk {

enum class AfterOptimize {
  nothing,   // the model stays in float, or is quantized already
  float16,   // the same passes as in float32
  integers,  // quantize and dequantize nodes, or integer operators, come next
};

struct PassPolicy {
  CapabilitySet passes;
  bool standard_only = false;             // no operator of com.microsoft may be made
  std::string_view reason;                // for the manifest
  std::vector<std::string_view> unknown;  // names in the table that no pass has: a fault of the table
};

// An EP or device that is not said is the CPU.
PassPolicy pass_policy(const TargetRequest& target, AfterOptimize next);

}  // namespace mk
