#include "eval/node_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "base/system.h"
#include "eval/node_match.h"
#include "graph/shape_inference.h"
#include "runtime/feed.h"
#include "runtime/observer.h"

namespace mk {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::array<std::string_view, 3> ways{"name", "node", "tag"};

std::size_t float_value_count(const Model& model) {
  const auto names = float_values(model);
  return static_cast<std::size_t>(std::ranges::count_if(
      names, [&](const std::string& name) { return model.graph->find(name)->producer() != nullptr; }));
}

// The worst of each figure over the samples.
class Worst {
 public:
  void add(std::size_t sample, const TensorView& reference, const TensorView& candidate) {
    if (reference.dims != candidate.dims) {
      note(fmt::format("shape {}, the reference has {} (sample {})", to_string(static_shape(candidate.dims)),
                       to_string(static_shape(reference.dims)), sample));
      return;
    }
    auto r = float64_values(reference);
    auto t = float64_values(candidate);
    if (!r || !t) return note("values that cannot be compared");
    for (std::size_t i = 0; i < r->size(); ++i) {
      double &a = (*r)[i], &b = (*t)[i];
      if (std::isfinite(a) && std::isfinite(b)) continue;
      if (std::isinf(a) && a == b) {
        a = b = 0;
      } else {
        note(fmt::format("{} where the reference has {} (sample {})", b, a, sample));
        return;
      }
    }
    const Similarity s = similarity(*r, *t);
    for (const MetricRow& row : all_metrics) {
      double& worst = values[row.metric];
      worst = row.higher_is_better ? std::min(worst, s[row.metric]) : std::max(worst, s[row.metric]);
    }
  }

  std::vector<std::string> reasons(const std::vector<Tolerance>& tolerances) const {
    if (!problem.empty()) return {problem};
    std::vector<std::string> found;
    for (const Tolerance& tolerance : tolerances) {
      const double worst = values[tolerance.metric.metric];
      if (tolerance.metric.higher_is_better ? worst >= tolerance.limit : worst <= tolerance.limit) continue;
      found.push_back(fmt::format("{} is {:.6g}, the limit is {:.6g}", tolerance.metric.name, worst, tolerance.limit));
    }
    return found;
  }

  Similarity values{{infinity, infinity, 1, 0, 0}};
  std::string problem;

 private:
  void note(std::string what) {
    if (problem.empty()) problem = std::move(what);
    values[Metric::cosine_similarity] = values[Metric::sqnr_db] = values[Metric::max_abs_diff] = std::nan("");
  }
};

std::vector<PrecisionSummary> by_precision(const std::vector<NodeComparison>& values) {
  std::map<std::string, PrecisionSummary> groups;
  std::map<std::string, std::size_t> measured;
  for (const NodeComparison& value : values) {
    PrecisionSummary& group = groups[value.precision];
    group.precision = value.precision;
    ++group.values;
    group.beyond += !value.reasons.empty();
    if (std::isnan(value.cosine)) continue;
    ++measured[value.precision];
    group.mean_cosine += value.cosine;
    group.least_cosine = std::min(group.least_cosine, value.cosine);
    group.max_abs_diff = std::max(group.max_abs_diff, value.max_abs_diff);
  }
  std::vector<PrecisionSummary> list;
  for (auto& [name, group] : groups) {
    group.mean_cosine /= static_cast<double>(std::max<std::size_t>(1, measured[name]));
    list.push_back(std::move(group));
  }
  return list;
}

class Comparison {
 public:
  Comparison(std::size_t matches, Observer reference, Observer candidate)
      : reference_(std::move(reference)), candidate_(std::move(candidate)), worst_(matches) {}

  Status add(std::size_t sample, const std::vector<HostTensor>& inputs) {
    MK_TRY(const auto given, inputs_for(reference_.session(), inputs));
    MK_TRY(const auto given_too, inputs_for(candidate_.session(), inputs));
    for (const auto& group : reference_.groups(given)) {
      MK_TRY(const auto expected, reference_.collect(given, group));
      MK_CHECK(candidate_.run(given_too, [&](std::size_t index, const TensorView& actual) -> Status {
        const auto value = expected.find(index);
        if (value != expected.end()) worst_[index].add(sample, view_of(value->second), actual);
        return {};
      }));
    }
    return {};
  }

  const Worst& worst(std::size_t index) const { return worst_[index]; }

 private:
  Observer reference_;
  Observer candidate_;
  std::vector<Worst> worst_;
};

NodeComparison described(const MatchedValue& match, const Worst& worst, const std::vector<Tolerance>& tolerances) {
  NodeComparison value;
  const Node& node = *match.candidate->producer();
  value.name = match.candidate->name();
  if (match.reference->name() != value.name) value.reference = match.reference->name();
  value.op_type = node.op_type;
  value.node = node.label();
  value.matched_by = ways[static_cast<std::size_t>(match.by)];
  value.precision = value_precision(*match.candidate);
  value.is_output = match.candidate->is_graph_output();
  value.cosine = worst.values[Metric::cosine_similarity];
  value.snr_db = worst.values[Metric::sqnr_db];
  value.max_abs_diff = worst.values[Metric::max_abs_diff];
  value.reasons = worst.reasons(tolerances);
  return value;
}

}  // namespace

Result<NodeCompareReport> compare_nodes(const std::shared_ptr<Runtime>& runtime, Model& candidate, Model& reference,
                                        const SampleSource& source, std::size_t samples,
                                        const std::vector<Tolerance>& tolerances, Progress& progress) {
  MK_CHECK(infer_shapes(candidate));
  MK_CHECK(infer_shapes(reference));
  const std::vector<MatchedValue> matches = match_values(candidate, reference);
  if (matches.empty())
    return fail(ErrorCode::failed, "the models have no value in common", {},
                "Values are matched by their names, their nodes' names and their modules' tags");
  NodeCompareReport report{std::min(samples, source.size()), source.description(), tolerances, {}, {}, 0, 0, {}, {}};
  report.candidate_values = float_value_count(candidate);
  report.reference_values = float_value_count(reference);
  for (const Value* output : reference.graph->outputs())
    if (std::ranges::none_of(candidate.graph->outputs(), [&](const Value* o) { return o->name() == output->name(); }))
      report.missing.push_back(output->name());

  std::vector<std::string> reference_names, candidate_names;
  for (const MatchedValue& match : matches) {
    reference_names.push_back(match.reference->name());
    candidate_names.push_back(match.candidate->name());
  }
  ObserverOptions observing;
  MK_TRY(Observer of_reference, Observer::open(runtime, reference, std::move(reference_names), observing));
  MK_TRY(Observer of_candidate, Observer::open(runtime, candidate, std::move(candidate_names), observing));
  Comparison comparison(matches.size(), std::move(of_reference), std::move(of_candidate));
  const auto stage = progress.stage("compare");
  for (std::size_t i = 0; i < report.samples; ++i) {
    if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
    MK_TRY(const auto inputs, source.sample(i));
    MK_CHECK(comparison.add(i, inputs));
    stage->update(i + 1, report.samples);
  }
  stage->done(fmt::format("{} samples", report.samples));
  for (std::size_t i = 0; i < matches.size(); ++i) {
    report.values.push_back(described(matches[i], comparison.worst(i), tolerances));
    if (!report.values.back().reasons.empty() && !report.first_divergence) report.first_divergence = i;
  }
  report.precisions = by_precision(report.values);
  return report;
}

}  // namespace mk
