#include "eval/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/system.h"
#include "eval/compare_inputs.h"
#include "graph/onnx_reader.h"
#include "runtime/value_ranges.h"

namespace mk {
namespace {

// The figures of one output, sample by sample.
class OutputTally {
 public:
  explicit OutputTally(std::string name) : name_(std::move(name)), values_(all_metrics.size()) {}

  Status add(std::int64_t sample, const HostTensor& reference, const HostTensor& candidate) {
    if (reference.dims != candidate.dims) {
      note(mismatches_, sample,
           "shape " + to_string(static_shape(candidate.dims)) + ", the reference has " +
               to_string(static_shape(reference.dims)));
      return {};
    }
    MK_TRY(auto r, numbers(reference, candidate, true));
    MK_TRY(auto t, numbers(reference, candidate, false));
    std::size_t kept = 0;
    for (std::size_t i = 0; i < r.size(); ++i) {
      if (std::isinf(r[i]) && r[i] == t[i]) {
        ++equal_infinities_;
        continue;
      }
      if (std::isnan(r[i]) || std::isnan(t[i])) {
        note(nans_, sample,
             std::string("NaN in ") + (std::isnan(t[i]) ? "the candidate" : "the reference") + " at " +
                 position(i, reference.dims));
      } else if (std::isinf(r[i]) || std::isinf(t[i])) {
        note(infinities_, sample,
             std::string("an infinity in ") +
                 (std::isinf(t[i]) ? std::isinf(r[i]) ? "both, with other signs," : "the candidate" : "the reference") +
                 " at " + position(i, reference.dims));
      }
      r[kept] = r[i];
      t[kept++] = t[i];
    }
    Similarity s = similarity(std::span(r).first(kept), std::span(t).first(kept));
    if (reference.type == candidate.type) {
      if (reference.type == DataType::int64) exact_differences<std::int64_t>(reference, candidate, s);
      if (reference.type == DataType::uint64) exact_differences<std::uint64_t>(reference, candidate, s);
    }
    for (std::size_t m = 0; m < values_.size(); ++m) values_[m].push_back(s.values[m]);
    return {};
  }

  OutputComparison finish(const std::vector<Tolerance>& tolerances) const {
    OutputComparison result{name_, {}, equal_infinities_, {}};
    for (const auto& values : values_) result.metrics.push_back(summarize(values));
    for (const auto* found : {&mismatches_, &nans_, &infinities_})
      if (found->count > 0) result.reasons.push_back(found->text());
    if (!result.reasons.empty()) return result;
    for (const Tolerance& tolerance : tolerances) {
      const MetricSummary& summary = result.metrics[static_cast<std::size_t>(tolerance.metric.metric)];
      const double worst = tolerance.metric.higher_is_better ? summary.min : summary.max;
      if (tolerance.metric.higher_is_better ? worst >= tolerance.limit : worst <= tolerance.limit) continue;
      result.reasons.push_back(std::string(tolerance.metric.name) + " is " + short_number(worst) + ", the limit is " +
                               short_number(tolerance.limit));
    }
    return result;
  }

  static std::string short_number(double value) {
    char text[32];
    const auto [end, ignored] = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6);
    return {text, end};
  }

 private:
  struct Finding {
    std::size_t count = 0;  // elements, or samples with another shape
    std::int64_t sample = 0;
    std::string first;
    std::string text() const {
      return first + " (sample " + std::to_string(sample) +
             (count > 1 ? ", " + std::to_string(count) + " in all)" : ")");
    }
  };
  static void note(Finding& finding, std::int64_t sample, const std::string& what) {
    if (finding.count++ == 0) {
      finding.sample = sample;
      finding.first = what;
    }
  }

  static std::string position(std::size_t index, const std::vector<std::int64_t>& dims) {
    std::vector<std::int64_t> at(dims.size());
    for (std::size_t axis = dims.size(); axis-- > 0;) {
      at[axis] = static_cast<std::int64_t>(index) % dims[axis];
      index /= static_cast<std::size_t>(dims[axis]);
    }
    return to_string(static_shape(at));
  }

  // Text is compared as equal or not: 0 for the reference, 1 where the candidate has another.
  static Result<std::vector<double>> numbers(const HostTensor& reference, const HostTensor& candidate,
                                             bool of_reference) {
    if (reference.type != DataType::string || candidate.type != DataType::string)
      return float64_values(of_reference ? reference : candidate);
    std::vector<double> values(reference.strings.size(), 0.0);
    for (std::size_t i = 0; !of_reference && i < values.size(); ++i)
      values[i] = reference.strings[i] == candidate.strings[i] ? 0.0 : 1.0;
    return values;
  }

  // Two integers beyond 2^53 may be one double.
  template <typename T>
  static void exact_differences(const HostTensor& reference, const HostTensor& candidate, Similarity& s) {
    const std::span<const T> r = reference.values<T>(), t = candidate.values<T>();
    double largest = 0, squares = 0;
    for (std::size_t i = 0; i < r.size(); ++i) {
      const auto high = static_cast<std::uint64_t>(std::max(r[i], t[i]));
      const auto difference = static_cast<double>(high - static_cast<std::uint64_t>(std::min(r[i], t[i])));
      largest = std::max(largest, difference);
      squares += difference * difference;
    }
    s[Metric::max_abs_diff] = largest;
    s[Metric::mse] = r.empty() ? 0 : squares / static_cast<double>(r.size());
  }

  std::string name_;
  std::vector<std::vector<double>> values_;
  std::size_t equal_infinities_ = 0;
  Finding mismatches_, nans_, infinities_;
};

std::vector<std::string> missing_outputs(const Session& candidate, const Session& reference) {
  std::vector<std::string> missing;
  for (const Port& port : reference.outputs())
    if (std::ranges::find(candidate.outputs(), port.name, &Port::name) == candidate.outputs().end())
      missing.push_back(port.name);
  return missing;
}

// Tensors that both give, in the candidate's order.
Result<std::vector<std::string>> common_outputs(const Session& candidate, const Session& reference,
                                                Progress& progress) {
  std::vector<std::string> common;
  std::string only;
  const auto find_in = [](const Session& session, const std::string& name) {
    const auto& ports = session.outputs();
    return std::find_if(ports.begin(), ports.end(), [&](const Port& port) { return port.name == name; });
  };
  const auto add_only = [&](const std::string& name) {
    only.append(only.empty() ? "'" : ", '").append(name).append("'");
  };
  for (const Port& port : candidate.outputs()) {
    const auto other = find_in(reference, port.name);
    if (other != reference.outputs().end() && port.type.is_tensor() && other->type.is_tensor()) {
      common.push_back(port.name);
    } else {
      add_only(port.name);
    }
  }
  for (const std::string& name : missing_outputs(candidate, reference)) add_only(name);
  if (common.empty())
    return fail(ErrorCode::failed, "the models have no output in common: " + only, {},
                "Outputs are matched by name; rename them or compare other models");
  if (!only.empty()) progress.warn("only in one of the models, or no tensor, and not compared: " + only);
  return common;
}

}  // namespace

std::vector<Tolerance> default_tolerances() {
  return {{*metric_named("max_abs_diff"), 1e-3}, {*metric_named("cosine_similarity"), 0.999}};
}

Result<std::vector<Tolerance>> parse_tolerances(const std::vector<std::pair<std::string, std::string>>& given) {
  if (given.empty()) return default_tolerances();
  std::vector<Tolerance> tolerances;
  for (const auto& [name, text] : given) {
    const auto metric = metric_named(name);
    if (!metric) {
      std::string known;
      for (const MetricRow& row : all_metrics) known.append(known.empty() ? "" : ", ").append(row.name);
      return fail(ErrorCode::usage, "unknown metric '" + name + "'", "--tolerance", "Known are " + known);
    }
    double limit = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || std::isnan(limit))
      return fail(ErrorCode::usage, fmt::format("'{}' is no number for {}", text, name), "--tolerance");
    const bool sensible = std::isfinite(limit) && (metric->higher_is_better || limit >= 0) &&
                          (metric->metric != Metric::cosine_similarity || std::fabs(limit) <= 1);
    if (!sensible)
      return fail(ErrorCode::usage, fmt::format("{} cannot be a limit of {}", text, name), "--tolerance",
                  metric->metric == Metric::cosine_similarity ? "Give a number between -1 and 1"
                  : metric->higher_is_better                  ? "Give a finite number"
                                                              : "Give a finite number of at least 0");
    std::erase_if(tolerances, [&](const Tolerance& other) { return other.metric.metric == metric->metric; });
    tolerances.push_back({*metric, limit});
  }
  return tolerances;
}

bool CompareReport::yes() const {
  return missing.empty() &&
         std::all_of(outputs.begin(), outputs.end(), [](const auto& output) { return output.reasons.empty(); });
}

std::vector<std::string> CompareReport::reasons() const {
  std::vector<std::string> all;
  for (const std::string& name : missing) all.push_back(name + ": the candidate has no such output");
  for (const OutputComparison& output : outputs)
    for (const std::string& reason : output.reasons) all.push_back(output.name + ": " + reason);
  return all;
}

Result<CompareReport> compare_sessions(const Session& candidate, const Session& reference,
                                       const std::map<std::string, ValueRange>& ranges, const CompareOptions& options,
                                       Progress& progress) {
  MK_TRY(const auto names, common_outputs(candidate, reference, progress));
  MK_TRY(auto source, CompareInputs::make(candidate, reference, ranges, options, progress));
  std::vector<OutputTally> tallies;
  for (const std::string& name : names) tallies.emplace_back(name);

  const auto stage = progress.stage("compare");
  for (std::int64_t sample = 0; sample < source.samples(); ++sample) {
    if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
    MK_TRY(const auto pair, source.next());
    MK_TRY(const auto expected, reference.run(pair.reference, names));
    MK_TRY(const auto actual, candidate.run(pair.candidate, names));
    for (std::size_t i = 0; i < names.size(); ++i) MK_CHECK(tallies[i].add(sample, expected[i], actual[i]));
    stage->update(static_cast<std::uint64_t>(sample) + 1, static_cast<std::uint64_t>(source.samples()));
  }
  stage->done(std::to_string(source.samples()) + " samples");

  CompareReport report{
      source.samples(), options.tolerances, {}, source.dynamic(), missing_outputs(candidate, reference)};
  for (const OutputTally& tally : tallies) report.outputs.push_back(tally.finish(options.tolerances));
  return report;
}

Result<CompareReport> compare_models(const std::shared_ptr<Runtime>& runtime, const Path& candidate,
                                     const Path& reference, const CompareOptions& options, Progress& progress) {
  std::map<std::string, ValueRange> ranges;
  for (const Path& path : {candidate, reference}) {
    MK_TRY(const auto model, read_onnx(path));
    ranges.merge(value_ranges(*model));
  }
  MK_TRY(const auto expected, Session::open(runtime, reference));
  MK_TRY(const auto actual, Session::open(runtime, candidate));
  return compare_sessions(actual, expected, ranges, options, progress);
}

}  // namespace mk
