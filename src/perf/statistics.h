#pragma once
// What is said of a run of latencies.

#include <cstddef>
#include <span>

namespace mk {

struct LatencyStatistics {
  std::size_t count = 0;  // without warm-up
  double mean = 0;
  double min = 0;
  double max = 0;
  double p50 = 0;
  double p90 = 0;
  double p95 = 0;
  double p99 = 0;
  double std = 0;          // of the population: divided by the count
  double warmup_mean = 0;  // 0 where nothing was warmed up
};

// Linear interpolation between the two nearest ranks, as numpy.percentile. `sorted` ascending; 0 when it is empty.
double percentile(std::span<const double> sorted, double percent);

// Of all samples, the first `warmup` of which count for warmup_mean alone. Without others every figure is 0.
LatencyStatistics latency_statistics(std::span<const double> samples, std::size_t warmup);

}  // namespace mk
