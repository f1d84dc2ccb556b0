#include "nn/distances.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>

namespace mk::nn {
namespace {

constexpr std::array<std::int64_t, 26> distances{-600, -128, -127, -100, -64, -17, -16, -9, -8, -7, -1,  0,   1,
                                                 7,    8,    9,    15,   16,  23,  31,  64, 90, 91, 127, 128, 600};

// The values are those of transformers 4.57.6: MPNetEncoder.relative_position_bucket, make_log_bucket_position.
TEST(DistancesTest, TwoSidedBucketsAreThoseOfT5) {
  constexpr std::array<std::int64_t, 26> buckets{15, 15, 15, 15, 14, 10, 10, 8,  8,  7,  1,  0,  17,
                                                 23, 24, 24, 25, 26, 27, 27, 30, 30, 31, 31, 31, 31};
  for (std::size_t i = 0; i < distances.size(); ++i)
    EXPECT_EQ(two_sided_bucket(distances[i], 32, 128), buckets[i]) << distances[i];
  std::int64_t sum = 0;
  for (std::int64_t distance = -511; distance < 512; ++distance) sum += two_sided_bucket(distance, 32, 128);
  EXPECT_EQ(sum, 22896);
}

TEST(DistancesTest, SignedBucketsAreThoseOfDeberta) {
  constexpr std::array<std::int64_t, 26> buckets{-23, -18, -18, -17, -16, -11, -11, -9, -8, -7, -1, 0,  1,
                                                 7,   8,   9,   11,  11,  12,  13,  16, 17, 17, 18, 18, 23};
  for (std::size_t i = 0; i < distances.size(); ++i)
    EXPECT_EQ(signed_bucket(distances[i], 16, 64), buckets[i]) << distances[i];
  std::int64_t sum = 0;
  for (std::int64_t distance = -511; distance < 512; ++distance) sum += std::abs(signed_bucket(distance, 256, 512));
  EXPECT_EQ(sum, 174594);
}

TEST(DistancesTest, SmallOrOddNumbersOfBucketsAreNoTrouble) {
  for (std::int64_t buckets = 0; buckets < 9; ++buckets)
    for (std::int64_t farthest = 0; farthest < 9; ++farthest)
      for (const std::int64_t distance : distances) {
        EXPECT_GE(two_sided_bucket(distance, buckets, farthest), 0);
        signed_bucket(distance, buckets, farthest);
      }
}

}  // namespace
}  // namespace mk::nn
