#include "perf/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace mk {
namespace {

double mean_of(std::span<const double> values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double percentile(std::span<const double> sorted, double percent) {
  if (sorted.empty()) return 0;
  const double rank = static_cast<double>(sorted.size() - 1) * percent / 100;
  const auto below = static_cast<std::size_t>(rank);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (rank - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

LatencyStatistics latency_statistics(std::span<const double> samples, std::size_t warmup) {
  warmup = std::min(warmup, samples.size());
  LatencyStatistics s;
  s.warmup_mean = mean_of(samples.first(warmup));
  std::vector<double> timed(samples.begin() + static_cast<std::ptrdiff_t>(warmup), samples.end());
  if (timed.empty()) return s;
  std::sort(timed.begin(), timed.end());
  s.count = timed.size();
  s.mean = mean_of(timed);
  s.min = timed.front();
  s.max = timed.back();
  s.p50 = percentile(timed, 50);
  s.p90 = percentile(timed, 90);
  s.p95 = percentile(timed, 95);
  s.p99 = percentile(timed, 99);
  double squares = 0;
  for (const double value : timed) squares += (value - s.mean) * (value - s.mean);
  s.std = std::sqrt(squares / static_cast<double>(timed.size()));
  return s;
}

}  // namespace mk
