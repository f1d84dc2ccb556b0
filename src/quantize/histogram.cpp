#include "quantize/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mk {
namespace {

using Counts = std::vector<std::uint64_t>;

// Adjacent bins become one, from the middle outwards; an odd half gets an empty bin first.
Counts halved(const Counts& counts) {
  const std::size_t half = counts.size() / 2;
  const std::size_t kept = (half + 1) / 2;
  Counts result(2 * kept);
  for (std::size_t i = 0; i < half; ++i) {
    result[kept + i / 2] += counts[half + i];
    result[kept - 1 - i / 2] += counts[half - 1 - i];
  }
  return result;
}

// The first index whose cumulated share reaches `share`; the size where none does.
std::size_t position_of(const Counts& counts, double share) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    sum += static_cast<double>(counts[i]) / total;
    if (sum >= share) return i;
  }
  return counts.size();
}

TensorRange within(float low, float high, TensorRange seen) {
  const TensorRange range{std::max(low, seen.low), std::min(high, seen.high)};
  return range.low <= range.high ? range : seen;
}

// Zeros become a little, taken off what is there; false where there is too little to take it from.
bool smooth(std::vector<double>& distribution) {
  constexpr double epsilon = 1e-4;
  const auto zeros = static_cast<double>(std::ranges::count(distribution, 0.0));
  const double others = static_cast<double>(distribution.size()) - zeros;
  if (others == 0 || epsilon * zeros / others >= 1) return false;
  for (double& value : distribution) value += value == 0 ? epsilon : -epsilon * zeros / others;
  return std::ranges::all_of(distribution, [](double value) { return value > 0; });
}

double divergence(const std::vector<double>& p, const std::vector<double>& q) {
  const double p_sum = std::accumulate(p.begin(), p.end(), 0.0);
  const double q_sum = std::accumulate(q.begin(), q.end(), 0.0);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] / p_sum * std::log(p[i] / p_sum / (q[i] / q_sum));
  return sum;
}

// How unlike the values in bins [start, end) become when `levels` numbers stand for them; those outside are clipped.
double cost_of_clipping(const Counts& counts, std::size_t start, std::size_t end, std::size_t levels) {
  const auto sum = [&](std::size_t from, std::size_t to) {
    std::uint64_t total = 0;
    for (std::size_t i = from; i < to; ++i) total += counts[i];
    return total;
  };
  const std::size_t size = end - start;
  std::vector<double> p(size), q(size);
  for (std::size_t i = 0; i < size; ++i) p[i] = static_cast<double>(counts[start + i]);
  p.front() += static_cast<double>(sum(0, start));
  p.back() += static_cast<double>(sum(end, counts.size()));

  const std::size_t merged = size / levels;
  for (std::size_t level = 0; level < levels; ++level) {
    const std::size_t from = level * merged;
    const std::size_t to = level + 1 == levels ? size : from + merged;
    const auto present = static_cast<std::uint64_t>(
        std::count_if(p.begin() + static_cast<std::ptrdiff_t>(from),
                      p.begin() + static_cast<std::ptrdiff_t>(from + merged), [](double v) { return v != 0; }));
    if (present == 0) continue;
    const auto each = static_cast<double>(sum(start + from, start + to) / present);
    std::fill_n(q.begin() + static_cast<std::ptrdiff_t>(from), merged, each);
  }
  if (!smooth(p) || !smooth(q)) return std::numeric_limits<double>::infinity();
  return divergence(p, q);
}

}  // namespace

float Histogram::edge(std::size_t i) const {
  const float reach = threshold_ == 0 ? 0.5f : threshold_;
  if (i >= counts_.size()) return reach;
  const float width = 2 * reach / static_cast<float>(counts_.size());
  return static_cast<float>(i) * width - reach;
}

void Histogram::count(std::span<const float> values) {
  std::vector<float> edges(counts_.size() + 1);
  for (std::size_t i = 0; i < edges.size(); ++i) edges[i] = edge(i);
  const float first = edges.front();
  const float reach = edges.back() - first;
  const auto bins = static_cast<float>(counts_.size());
  const std::size_t last = counts_.size() - 1;
  for (const float value : values) {
    auto bin = std::min(static_cast<std::size_t>((value - first) / reach * bins), last);
    if (value < edges[bin]) {
      --bin;
    } else if (bin != last && value >= edges[bin + 1]) {
      ++bin;
    }
    ++counts_[bin];
  }
}

void Histogram::grow(float threshold) {
  if (threshold_ == 0) {
    threshold_ = threshold;
    return;
  }
  for (;;) {
    const auto bins = static_cast<float>(counts_.size());
    const float width = 2 * threshold_ / bins;
    const float more = std::floor((threshold - threshold_) / width) + 1;
    if (bins + 2 * more > static_cast<float>(max_bins_)) {
      const bool odd = counts_.size() / 2 % 2 != 0;
      counts_ = halved(counts_);
      if (odd) threshold_ += width;
      if (threshold_ >= threshold) return;
      continue;
    }
    const auto added = static_cast<std::size_t>(more);
    Counts wider(counts_.size() + 2 * added);
    std::ranges::copy(counts_, wider.begin() + static_cast<std::ptrdiff_t>(added));
    counts_ = std::move(wider);
    threshold_ = more * width + threshold_;
    return;
  }
}

void Histogram::add(std::span<const float> values, TensorRange range) {
  const float threshold = std::max(std::fabs(range.low), std::fabs(range.high));
  if (counts_.empty()) {
    counts_.assign(bins_, 0);
    range_ = range;
    threshold_ = threshold;
  } else {
    range_ = {std::min(range_.low, range.low), std::max(range_.high, range.high)};
    if (threshold > threshold_) grow(threshold);
  }
  count(values);
}

TensorRange percentile_range(const Histogram& histogram, double percentile) {
  const double cut = (100.0 - percentile) / 200.0;
  const float low = histogram.edge(position_of(histogram.counts(), cut));
  const float high = histogram.edge(position_of(histogram.counts(), 1.0 - cut));
  return within(low, high, histogram.range());
}

TensorRange entropy_range(const Histogram& histogram, std::size_t levels) {
  const Counts& counts = histogram.counts();
  const std::size_t middle = counts.size() / 2;
  double least = std::numeric_limits<double>::infinity();
  std::size_t best_start = 0, best_end = counts.size();
  for (std::size_t i = levels / 2; i <= middle; ++i) {
    const std::size_t start = middle - i;
    const std::size_t end = std::min(middle + i + 1, counts.size());
    const double cost = cost_of_clipping(counts, start, end, levels);
    if (cost < least) {
      least = cost;
      best_start = start;
      best_end = end;
    }
  }
  return within(histogram.edge(best_start), histogram.edge(best_end), histogram.range());
}

}  // namespace mk
