#pragma once
// Two models on the same inputs: how alike their outputs are, and whether that is good enough.
//
// The answer is no when a tolerance is missed, when an output holds a NaN, when an infinity is in one model only, or
// when shapes differ; each reason names the tensor. Infinities that both have in the same place (masked logits) are
// equal, and the figures are over the other values. Differences of 64-bit integers are exact, though the other figures
// are made of doubles.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"
#include "runtime/input_shapes.h"
#include "runtime/library.h"
#include "runtime/session.h"
#include "runtime/similarity.h"

namespace mk {

struct Tolerance {
  MetricRow metric;
  double limit = 0;  // the worst sample may not be beyond it: above for a difference, below for a similarity
};

// max_abs_diff=1e-3, cosine_similarity=0.999
std::vector<Tolerance> default_tolerances();
// From `--tolerance METRIC=VALUE`, in order, the last of a metric wins; what is given replaces the defaults. usage for
// an unknown metric and for a limit that no output could miss or meet: infinite, a difference below 0, a cosine
// beyond 1.
Result<std::vector<Tolerance>> parse_tolerances(const std::vector<std::pair<std::string, std::string>>& given);

struct CompareOptions {
  std::int64_t samples = 100;      // of random inputs
  std::uint64_t seed = 42;         // random_inputs.h; sample after sample from one generator
  std::optional<Path> input_data;  // .npz whose leading axis is the samples, instead of random inputs
  ShapeOverrides shapes;           // of dynamic dimensions, as perf chooses them at batch 1
  std::vector<Tolerance> tolerances = default_tolerances();
};

struct OutputComparison {
  std::string name;
  std::vector<MetricSummary> metrics;  // one per row of all_metrics
  std::size_t equal_infinities = 0;    // elements, over all samples
  std::vector<std::string> reasons;    // why the answer is no; empty when it is yes
};

struct CompareReport {
  std::int64_t samples = 0;
  std::vector<Tolerance> tolerances;
  std::vector<OutputComparison> outputs;                      // that both models have, in the candidate's order
  std::vector<std::pair<std::string, std::int64_t>> dynamic;  // dimensions that were chosen
  std::vector<std::string> missing;  // outputs of the reference that the candidate lacks: the answer is no

  bool yes() const;
  std::vector<std::string> reasons() const;  // "logits: max_abs_diff is 0.25, the limit is 0.001"
};

// Ranges of the inputs' values are read from the models. failed when they have no output in common, or an input of one
// cannot be an input of the other; inference when one does not run; interrupted.
Result<CompareReport> compare_models(const std::shared_ptr<Runtime>& runtime, const Path& candidate,
                                     const Path& reference, const CompareOptions& options, Progress& progress);
Result<CompareReport> compare_sessions(const Session& candidate, const Session& reference,
                                       const std::map<std::string, ValueRange>& ranges, const CompareOptions& options,
                                       Progress& progress);

// {"verdict": "yes", "reasons": [], "tolerance": {METRIC: limit}, "samples": N,
//  "metrics": {METRIC_STAT: {output: value or null}}, "non_finite": {METRIC: {output: samples}},
//  "equal_infinities": {output: elements}, "dynamic_dims": {symbol: value}}
Json compare_json(const CompareReport& report);
// A table with a row per output and metric, then the verdict and its reasons.
std::string compare_text(const CompareReport& report);

}  // namespace mk
