#pragma once
// How alike two tensors are, and what is said of many such pairs.
//
// Over the flattened values r (reference) and t (candidate), in float64:
//   sqnr_db            10 log10(sum r^2 / sum (r-t)^2); +inf without noise, else -inf without signal
//   psnr_db            10 log10(max|r|^2 / mse); +inf where mse is 0, else -inf where the peak is 0
//   cosine_similarity  1 where both are all zero, 0 where one is
//   mse, max_abs_diff  of r - t
// A NaN on either side makes every figure NaN; infinities follow IEEE 754.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace mk {

enum class Metric { sqnr_db, psnr_db, cosine_similarity, mse, max_abs_diff };

struct MetricRow {
  Metric metric;
  std::string_view name;
  bool higher_is_better;
};
inline constexpr std::array<MetricRow, 5> all_metrics{{{Metric::sqnr_db, "sqnr_db", true},
                                                       {Metric::psnr_db, "psnr_db", true},
                                                       {Metric::cosine_similarity, "cosine_similarity", true},
                                                       {Metric::mse, "mse", false},
                                                       {Metric::max_abs_diff, "max_abs_diff", false}}};
std::optional<MetricRow> metric_named(std::string_view name);

struct Similarity {
  std::array<double, all_metrics.size()> values{};
  double operator[](Metric metric) const { return values[static_cast<std::size_t>(metric)]; }
  double& operator[](Metric metric) { return values[static_cast<std::size_t>(metric)]; }
};

// Both spans have the same length. Of nothing: no noise, so +inf, +inf, 1, 0, 0.
Similarity similarity(std::span<const double> reference, std::span<const double> candidate);

// One metric over the samples. Mean and std (of the population) are over finite values; all +inf are inf and 0, all
// -inf are -inf and 0, a mixture without a finite value is NaN. Min and max are over all, NaN as soon as one is.
struct MetricSummary {
  double mean = 0;
  double std = 0;
  double min = 0;
  double max = 0;
  std::size_t non_finite = 0;  // samples whose value is no number
};
MetricSummary summarize(std::span<const double> values);

}  // namespace mk
