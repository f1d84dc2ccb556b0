// The report of a comparison node by node, as text and as JSON.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "eval/node_compare.h"

namespace mk {
namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const NodeComparison& value) {
  return {{"name", value.name},
          {"reference", value.reference.empty() ? Json(value.name) : Json(value.reference)},
          {"op_type", value.op_type},
          {"node", value.node},
          {"matched_by", value.matched_by},
          {"precision", value.precision},
          {"output", value.is_output},
          {"cosine_similarity", number(value.cosine)},
          {"sqnr_db", number(value.snr_db)},
          {"max_abs_diff", number(value.max_abs_diff)},
          {"reasons", value.reasons}};
}

std::string figure(double value) {
  if (std::isnan(value)) return "-";
  if (std::isinf(value)) return value > 0 ? "equal" : "-inf";
  return fmt::format("{:.6g}", value);
}

std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 < row.size() ? fmt::format("{:<{}}  ", row[i], widths[i]) : row[i];
    text += line + "\n";
  }
  return text;
}

std::string described(const NodeComparison& value) {
  std::string text = fmt::format("{} ({}, {})", value.name, value.op_type, value.precision);
  for (const std::string& reason : value.reasons) text += "; " + reason;
  return text;
}

// NaN, which no figure is worse than, first.
bool is_worse(const NodeComparison* a, const NodeComparison* b) {
  const auto rank = [](double value) { return std::isnan(value) ? -std::numeric_limits<double>::infinity() : value; };
  return rank(a->snr_db) < rank(b->snr_db);
}

}  // namespace

Json node_compare_json(const NodeCompareReport& report) {
  Json tolerance = Json::object(), values = Json::array(), precisions = Json::array();
  for (const Tolerance& row : report.tolerances) tolerance[std::string(row.metric.name)] = number(row.limit);
  for (const NodeComparison& value : report.values) values.push_back(to_json(value));
  for (const PrecisionSummary& group : report.precisions)
    precisions.push_back({{"precision", group.precision},
                          {"values", group.values},
                          {"beyond", group.beyond},
                          {"mean_cosine_similarity", number(group.mean_cosine)},
                          {"least_cosine_similarity", number(group.least_cosine)},
                          {"max_abs_diff", number(group.max_abs_diff)}});
  return {
      {"verdict", report.yes() ? "yes" : "no"},
      {"first_divergence", report.first_divergence ? to_json(report.values[*report.first_divergence]) : Json(nullptr)},
      {"missing_outputs", report.missing},
      {"tolerance", std::move(tolerance)},
      {"samples", report.samples},
      {"source", report.source},
      {"matched_values", report.values.size()},
      {"candidate_values", report.candidate_values},
      {"reference_values", report.reference_values},
      {"precisions", std::move(precisions)},
      {"values", std::move(values)}};
}

std::string node_compare_text(const NodeCompareReport& report, std::size_t most) {
  std::string text = fmt::format("Compared {} values on {} samples ({}); the candidate has {}, the reference {}\n",
                                 report.values.size(), report.samples, report.source, report.candidate_values,
                                 report.reference_values);
  if (report.first_divergence) text += "First divergence: " + described(report.values[*report.first_divergence]) + "\n";
  std::vector<const NodeComparison*> worst;
  for (const NodeComparison& value : report.values) worst.push_back(&value);
  std::ranges::stable_sort(worst, is_worse);
  if (worst.size() > most) worst.resize(most);
  std::vector<std::vector<std::string>> rows{
      {"worst values", "operator", "precision", "cosine", "SNR (dB)", "max_abs_diff"}};
  for (const NodeComparison* value : worst)
    rows.push_back({value->name, value->op_type, value->precision, figure(value->cosine), figure(value->snr_db),
                    figure(value->max_abs_diff)});
  if (most > 0) text += aligned(rows);
  rows = {{"precision", "values", "beyond", "mean cosine", "least cosine", "max_abs_diff"}};
  for (const PrecisionSummary& group : report.precisions)
    rows.push_back({group.precision, std::to_string(group.values), std::to_string(group.beyond),
                    figure(group.mean_cosine), figure(group.least_cosine), figure(group.max_abs_diff)});
  text += aligned(rows);
  const auto beyond = std::ranges::count_if(report.values, [](const auto& value) { return !value.reasons.empty(); });
  text += fmt::format("Verdict: {}", report.yes() ? "yes" : "no");
  if (beyond > 0) text += fmt::format(", {} of {} values are beyond the tolerance", beyond, report.values.size());
  for (const std::string& name : report.missing) text += fmt::format("; the candidate has no output {}", name);
  return text + "\n";
}

}  // namespace mk
