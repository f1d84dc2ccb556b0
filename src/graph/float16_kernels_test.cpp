#include "graph/float16_kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "graph/float_formats.h"

namespace mk {
namespace {

std::vector<std::uint16_t> narrowed(const std::vector<float>& values) {
  std::vector<std::uint16_t> bits(values.size());
  float32_to_float16(reinterpret_cast<const std::byte*>(values.data()), reinterpret_cast<std::byte*>(bits.data()),
                     values.size());
  return bits;
}

// float16_bits is held against numpy in float_formats_test.cpp.
TEST(Float16Kernels, ArraysRoundAsSingleValuesDo) {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 65521) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  const std::vector<std::uint16_t> bits = narrowed(values);
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(bits[i], float16_bits(values[i])) << values[i];
}

TEST(Float16Kernels, EveryHalfWidens) {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> values(bits.size());
  float16_to_float32(reinterpret_cast<const std::byte*>(bits.data()), reinterpret_cast<std::byte*>(values.data()),
                     bits.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const double expected = decode_float(DataType::float16, bits[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(values[i]));
    } else {
      ASSERT_EQ(static_cast<double>(values[i]), expected);
    }
  }
}

TEST(Float16Kernels, ClipsAndCounts) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<std::pair<float, std::uint16_t>> cases{{0.0f, 0x0000},       {-0.0f, 0x8000},
                                                           {1.0f, 0x3c00},       {65504.0f, 0x7bff},
                                                           {65505.0f, 0x7bff},   {1e5f, 0x7bff},
                                                           {-3.4e38f, 0xfbff},   {inf, 0x7bff},
                                                           {-inf, 0xfbff},       {1e-9f, 0x0001},
                                                           {-1e-40f, 0x8001},    {0x1p-24f, 0x0001},
                                                           {0x1.8p-24f, 0x0002}, {0x1.fffffep-25f, 0x0001},
                                                           {-65504.0f, 0xfbff}};
  // Alone, and at every place of arrays with lanes to spare.
  for (std::size_t before = 0; before <= 9; ++before) {
    std::vector<float> values(before, 2.0f);
    for (const auto& [value, bits] : cases) values.push_back(value);
    std::vector<std::uint16_t> halves(values.size());
    const Float16Losses losses = clip_to_float16(reinterpret_cast<const std::byte*>(values.data()),
                                                 reinterpret_cast<std::byte*>(halves.data()), values.size());
    for (std::size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(halves[before + i], cases[i].second) << cases[i].first;
    EXPECT_EQ(losses, (Float16Losses{3, 2, 3}));
  }
  const float nan = std::nanf("");
  std::uint16_t bits = 0;
  EXPECT_FALSE(clip_to_float16(reinterpret_cast<const std::byte*>(&nan), reinterpret_cast<std::byte*>(&bits), 1).any());
  EXPECT_TRUE(std::isnan(float16_value(bits)));
}

}  // namespace
}  // namespace mk
