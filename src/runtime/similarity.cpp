#include "runtime/similarity.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mk {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

double decibels(double signal, double noise) {
  if (noise == 0) return infinity;
  if (signal == 0 || signal / noise == 0) return -infinity;
  return 10 * std::log10(signal / noise);
}

// std::max drops a NaN, depending on the order.
double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? not_a_number : std::max(a, b); }

}  // namespace

std::optional<MetricRow> metric_named(std::string_view name) {
  for (const MetricRow& row : all_metrics)
    if (row.name == name) return row;
  return std::nullopt;
}

Similarity similarity(std::span<const double> reference, std::span<const double> candidate) {
  double signal = 0, other = 0, noise = 0, dot = 0, peak = 0, largest = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    const double r = reference[i];
    const double t = candidate[i];
    const double difference = r - t;
    signal += r * r;
    other += t * t;
    dot += r * t;
    noise += difference * difference;
    peak = larger(peak, std::fabs(r));
    largest = larger(largest, std::fabs(difference));
  }
  const double mse = reference.empty() ? 0 : noise / static_cast<double>(reference.size());
  Similarity s;
  s[Metric::sqnr_db] = decibels(signal, noise);
  s[Metric::psnr_db] = decibels(peak * peak, mse);
  s[Metric::cosine_similarity] = signal == 0 && other == 0   ? 1
                                 : signal == 0 || other == 0 ? 0
                                                             : dot / (std::sqrt(signal) * std::sqrt(other));
  s[Metric::mse] = mse;
  s[Metric::max_abs_diff] = largest;
  return s;
}

MetricSummary summarize(std::span<const double> values) {
  MetricSummary s;
  if (values.empty()) return {not_a_number, not_a_number, not_a_number, not_a_number, 0};
  std::vector<double> finite;
  std::size_t plus = 0, minus = 0;
  bool any_nan = false;
  for (const double value : values) {
    if (std::isfinite(value)) finite.push_back(value);
    plus += value == infinity;
    minus += value == -infinity;
    any_nan = any_nan || std::isnan(value);
  }
  s.non_finite = values.size() - finite.size();
  if (!finite.empty()) {
    double sum = 0, squares = 0;
    for (const double value : finite) sum += value;
    s.mean = sum / static_cast<double>(finite.size());
    for (const double value : finite) squares += (value - s.mean) * (value - s.mean);
    s.std = std::sqrt(squares / static_cast<double>(finite.size()));
  } else if (plus == values.size() || minus == values.size()) {
    s.mean = values.front();
  } else {
    s.mean = s.std = not_a_number;
  }
  s.min = any_nan ? not_a_number : *std::min_element(values.begin(), values.end());
  s.max = any_nan ? not_a_number : *std::max_element(values.begin(), values.end());
  return s;
}

}  // namespace mk
