#pragma once
// Runs the passes over a model until none fires, checks what they did, and takes back what does not hold.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "optimize/capabilities.h"
#include "optimize/pass.h"

namespace mk {

// How far the outputs of an optimized model are from those of the model before, on the same inputs.
struct NumericVerdict {
  bool same = true;          // within the tolerance
  std::string difference;    // "logits: max_abs_diff 0.5, the limit is 0.001"; empty where it is the same
  double max_abs_diff = 0;   // over all outputs
  double max_rel_diff = 0;   // of each output's largest magnitude
  std::string not_compared;  // why there was nothing to compare: no ONNX Runtime, or the source does not run
};
using NumericCheck = std::function<Result<NumericVerdict>(const Model& before, const Model& after)>;

struct OptimizeOptions {
  CapabilitySet capabilities = CapabilitySet::defaults();
  std::span<const Pass* const> passes;  // in this order; empty: all of them
  bool standard_only = false;           // no node of another domain than ai.onnx is made
  bool explain = false;                 // collect near misses
  NumericCheck check;                   // empty: numbers are not compared
};

struct PassRecord {
  std::string_view pass;
  std::size_t fired = 0;  // places
  double seconds = 0;
};

struct RolledBack {
  std::string_view pass;
  std::string reason;
};

struct OptimizeReport {
  std::size_t nodes_before = 0, nodes_after = 0;  // sub-graphs included
  std::vector<PassRecord> passes;                 // that fired, in the order of the list
  std::vector<RolledBack> rolled_back;
  std::vector<NearMiss> near_misses;
  std::vector<std::string> notes;  // what shape inference could not follow
  NumericVerdict numbers;
};

// Infers shapes first. After each pass that fired the structure is verified; a pass that breaks it, or without which
// the numbers agree, is taken back and named in the report. failed where the numbers differ and no pass is to blame;
// what infer_shapes and the check return otherwise; interrupted.
Result<OptimizeReport> optimize(std::unique_ptr<Model>& model, const OptimizeOptions& options);

}  // namespace mk
