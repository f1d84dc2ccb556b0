// The right values are those of onnxruntime.quantization 1.32 (HistogramCollector, a sample at a time) on the same
// samples.

#include "quantize/histogram.h"

#include <algorithm>
#include <numeric>

#include "quantize/range_kernels.h"
#include "testing/testing.h"

namespace mk {
namespace {

// Sums of three uniform integers: a bell.
std::vector<float> bell(std::int64_t count, std::int64_t seed, float scale) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t a = (i * 7919 + seed * 104729) % 1000;
    const std::int64_t b = (i * 6271 + seed * 15485863) % 1000;
    const std::int64_t c = (i * 3571 + seed * 32452843) % 1000;
    values.push_back(static_cast<float>(a + b + c - 1500) / 512.0f * scale);
  }
  return values;
}

void add(Histogram& histogram, const std::vector<float>& values) {
  TensorRange range{values[0], values[0]};
  EXPECT_TRUE(widen(values, range));
  histogram.add(values, range);
}

// Four samples of other sizes and scales, the positive values halved.
void add_four(Histogram& histogram) {
  struct Sample {
    std::int64_t count, seed;
    float scale;
  };
  for (const auto& [count, seed, scale] :
       {Sample{5000, 1, 1.0f}, Sample{777, 2, 3.5f}, Sample{20000, 3, 0.25f}, Sample{64, 4, 9.0f}}) {
    auto values = bell(count, seed, scale);
    for (float& value : values)
      if (value > 0) value *= 0.5f;
    add(histogram, values);
  }
}

std::uint64_t total(const Histogram& histogram) {
  return std::accumulate(histogram.counts().begin(), histogram.counts().end(), std::uint64_t{0});
}

TEST(Histogram, GrowsAsTheReferenceDoes) {
  Histogram histogram(128);
  add_four(histogram);
  ASSERT_EQ(histogram.counts().size(), 1054u);
  EXPECT_EQ(total(histogram), 25841u);
  const auto peak = std::ranges::max_element(histogram.counts());
  EXPECT_EQ(peak - histogram.counts().begin(), 527);
  EXPECT_EQ(*peak, 2473u);
  EXPECT_NEAR(histogram.edge(0), -20.232117f, 1e-5);
  EXPECT_NEAR(histogram.edge(1054), 20.232117f, 1e-5);
  EXPECT_EQ(histogram.range(), (TensorRange{-20.214844f, 9.958008f}));
  const TensorRange range = entropy_range(histogram, 128);
  EXPECT_NEAR(range.low, -4.9908447f, 1e-5);
  EXPECT_NEAR(range.high, 5.0292358f, 1e-5);
}

TEST(Histogram, Percentiles) {
  Histogram histogram(2048, 1u << 16);
  add_four(histogram);
  ASSERT_EQ(histogram.counts().size(), 16850u);
  const TensorRange range = percentile_range(histogram, 99.999);
  EXPECT_NEAR(range.low, -20.214844f, 1e-5);
  EXPECT_NEAR(range.high, 9.9576950f, 1e-5);
  Histogram one(2048);
  add(one, bell(5000, 1, 1.0f));
  const TensorRange most = percentile_range(one, 90.0);
  EXPECT_NEAR(most.low, -1.6026764f, 1e-6);
  EXPECT_NEAR(most.high, 1.6281967f, 1e-6);
}

TEST(Histogram, EntropyCutsAnOutlierOff) {
  Histogram histogram(2048);
  auto values = bell(20000, 1, 1.0f);
  values[77] = 40.0f;
  add(histogram, values);
  const TensorRange range = entropy_range(histogram, 128);
  EXPECT_NEAR(range.low, -2.4570312f, 1e-5);
  // The reference has 6.09; around there the divergence is flat to eight digits.
  EXPECT_GT(range.high, 5.0f);
  EXPECT_LT(range.high, 8.0f);
}

TEST(Histogram, StaysWithinItsBins) {
  Histogram histogram(128, 256);
  std::uint64_t count = 0;
  for (const float scale : {1e-6f, 1e-3f, 1.0f, 1e6f, 3e37f}) {
    add(histogram, bell(1000, 1, scale));
    count += 1000;
    EXPECT_LE(histogram.counts().size(), 256u);
    EXPECT_EQ(total(histogram), count);
    EXPECT_GE(histogram.edge(histogram.counts().size()), 2.4f * scale);
  }
  // Merging loses no value's side: half of each sample is below 0.
  const std::size_t middle = histogram.counts().size() / 2;
  const auto below = std::accumulate(histogram.counts().begin(),
                                     histogram.counts().begin() + static_cast<std::ptrdiff_t>(middle), 0ul);
  EXPECT_NEAR(static_cast<double>(below), static_cast<double>(count) / 2, 50);
}

TEST(Histogram, ZerosOnlyAndOneValue) {
  Histogram histogram(128);
  add(histogram, {0, 0, 0});
  EXPECT_EQ(entropy_range(histogram, 128), (TensorRange{0, 0}));
  EXPECT_EQ(percentile_range(histogram, 99.999), (TensorRange{0, 0}));
  add(histogram, {2, 2});
  EXPECT_EQ(total(histogram), 5u);
  Histogram constant(2048);
  add(constant, {5, 5, 5});
  EXPECT_EQ(percentile_range(constant, 99.999), (TensorRange{5, 5}));
}

}  // namespace
}  // namespace mk
