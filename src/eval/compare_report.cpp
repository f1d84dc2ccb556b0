#include <fmt/format.h>

#include <array>
#include <cmath>

#include "base/json.h"
#include "eval/compare.h"

namespace mk {
namespace {

struct Stat {
  std::string_view name;
  double MetricSummary::*value;
};
constexpr std::array<Stat, 4> stats{{{"mean", &MetricSummary::mean},
                                     {"std", &MetricSummary::std},
                                     {"min", &MetricSummary::min},
                                     {"max", &MetricSummary::max}}};

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

}  // namespace

Json compare_json(const CompareReport& report) {
  Json tolerance = Json::object(), metrics = Json::object(), non_finite = Json::object();
  Json infinities = Json::object(), dynamic = Json::object();
  for (const Tolerance& t : report.tolerances) tolerance[std::string(t.metric.name)] = number_or_null(t.limit);
  for (std::size_t m = 0; m < all_metrics.size(); ++m) {
    const std::string name(all_metrics[m].name);
    for (const Stat& stat : stats)
      for (const OutputComparison& output : report.outputs)
        metrics[name + "_" + std::string(stat.name)][output.name] = number_or_null(output.metrics[m].*stat.value);
    for (const OutputComparison& output : report.outputs)
      if (output.metrics[m].non_finite > 0) non_finite[name][output.name] = output.metrics[m].non_finite;
  }
  for (const OutputComparison& output : report.outputs)
    if (output.equal_infinities > 0) infinities[output.name] = output.equal_infinities;
  for (const auto& [symbol, value] : report.dynamic) dynamic[symbol] = value;
  return {{"verdict", report.yes() ? "yes" : "no"},
          {"reasons", report.reasons()},
          {"tolerance", std::move(tolerance)},
          {"samples", report.samples},
          {"metrics", std::move(metrics)},
          {"non_finite", std::move(non_finite)},
          {"equal_infinities", std::move(infinities)},
          {"dynamic_dims", std::move(dynamic)}};
}

std::string compare_text(const CompareReport& report) {
  std::string text;
  for (const OutputComparison& output : report.outputs) {
    text += fmt::format("{}\n  {:<18}{:>14}{:>14}{:>14}{:>14}\n", output.name, "", "mean", "std", "min", "max");
    for (std::size_t m = 0; m < all_metrics.size(); ++m) {
      const MetricSummary& s = output.metrics[m];
      text += fmt::format("  {:<18}{:>14.6g}{:>14.6g}{:>14.6g}{:>14.6g}\n", all_metrics[m].name, s.mean, s.std, s.min,
                          s.max);
    }
    if (output.equal_infinities > 0)
      text += fmt::format("  {} infinities that both have are left out\n", output.equal_infinities);
  }
  std::string limits;
  for (const Tolerance& t : report.tolerances)
    limits += fmt::format("{}{} {} {:g}", limits.empty() ? "" : ", ", t.metric.name,
                          t.metric.higher_is_better ? ">=" : "<=", t.limit);
  text += fmt::format("Alike: {} ({} samples; {})\n", report.yes() ? "yes" : "no", report.samples, limits);
  for (const std::string& reason : report.reasons()) text += fmt::format("  {}\n", reason);
  return text;
}

}  // namespace mk
