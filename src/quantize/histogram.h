#pragma once
// The distribution of a tensor's values over many samples, of any shapes, in bounded memory: equal bins around 0 that
// grow outwards as larger values come, as onnxruntime.quantization's HistogramCollector keeps them when it is given one
// sample at a time. Where its bins would be more than `max_bins`, neighbours are merged instead.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "quantize/tensor_ranges.h"

namespace mk {

class Histogram {
 public:
  // `bins`: even; how many the first sample's values are sorted into.
  explicit Histogram(std::size_t bins, std::size_t max_bins = 1u << 14) : bins_(bins), max_bins_(max_bins) {}

  // Finite values whose smallest and largest are `range`; not none.
  void add(std::span<const float> values, TensorRange range);

  bool empty() const { return counts_.empty(); }
  TensorRange range() const { return range_; }  // of the values seen
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  float edge(std::size_t i) const;  // bin i is [edge(i), edge(i + 1)), the last one closed

 private:
  void count(std::span<const float> values);
  void grow(float threshold);
  std::size_t bins_;
  std::size_t max_bins_;
  std::vector<std::uint64_t> counts_;  // of bins from -threshold_ to threshold_
  float threshold_ = 0;
  TensorRange range_;
};

// All but (100 - percentile) / 2 percent of the values at either end.
TensorRange percentile_range(const Histogram& histogram, double percentile);

// The range around 0 whose values, quantized to `levels` bins, are least unlike what was seen (Kullback-Leibler
// divergence; Migacz, 8-bit Inference with TensorRT, 2017), within the values seen.
TensorRange entropy_range(const Histogram& histogram, std::size_t levels);

}  // namespace mk
