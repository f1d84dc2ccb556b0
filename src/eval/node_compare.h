#pragma once
// Two models held against each other value by value: where the second begins to differ from the first, and where it
// differs most. It is how one finds what a fusion or a quantizer broke.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"
#include "eval/compare.h"
#include "graph/ir.h"
#include "runtime/library.h"
#include "runtime/sample_source.h"

namespace mk {

struct NodeComparison {
  std::string name;       // of the candidate's value
  std::string reference;  // of the other one, where it has another
  std::string op_type;    // that computes it in the candidate
  std::string node;
  std::string matched_by;  // "name", "node" or "tag"
  std::string precision;   // node_match.h, value_precision
  bool is_output = false;
  double cosine = 1;  // of the worst sample; NaN where a value is none
  double snr_db = 0;  // of the worst sample; +inf without difference
  double max_abs_diff = 0;
  std::vector<std::string> reasons;  // why it is not alike; empty where it is
};

struct PrecisionSummary {
  std::string precision;
  std::size_t values = 0;
  std::size_t beyond = 0;  // of them, not alike
  double mean_cosine = 0;
  double least_cosine = 1;
  double max_abs_diff = 0;
};

struct NodeCompareReport {
  std::size_t samples = 0;
  std::string source;  // of the samples
  std::vector<Tolerance> tolerances;
  std::vector<NodeComparison> values;  // in the candidate's topological order
  std::optional<std::size_t> first_divergence;
  std::size_t candidate_values = 0, reference_values = 0;  // float ones, matched or not
  std::vector<std::string> missing;                        // outputs of the reference that the candidate lacks
  std::vector<PrecisionSummary> precisions;

  bool yes() const { return !first_divergence && missing.empty(); }
};

// The first `samples` of the source. Types are inferred in both models where they are not known. failed where no value
// of one is one of the other; the errors of sessions and samples; interrupted.
Result<NodeCompareReport> compare_nodes(const std::shared_ptr<Runtime>& runtime, Model& candidate, Model& reference,
                                        const SampleSource& source, std::size_t samples,
                                        const std::vector<Tolerance>& tolerances, Progress& progress);

Json node_compare_json(const NodeCompareReport& report);
// First divergence, the worst `most` values, precisions, verdict.
std::string node_compare_text(const NodeCompareReport& report, std::size_t most);

}  // namespace mk
