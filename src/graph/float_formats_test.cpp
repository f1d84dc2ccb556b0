#include "graph/float_formats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace mk {
namespace {

// From numpy 2 and ml_dtypes 0.5: np.float32(x).astype(np.float16), .astype(bfloat16).
struct FloatCase {
  float value;
  std::uint16_t float16;
  std::uint16_t bfloat16;
};
constexpr FloatCase float_cases[] = {
    {0x0.0p+0f, 0x0000, 0x0000},
    {-0x0.0p+0f, 0x8000, 0x8000},
    {1.0f, 0x3c00, 0x3f80},
    {0x1.555556p-2f, 0x3555, 0x3eab},
    {65504.0f, 0x7bff, 0x4780},
    {0x1.ffdffap+15f, 0x7bff, 0x4780},
    {65520.0f, 0x7c00, 0x4780},
    {1e5f, 0x7c00, 0x47c3},
    {-1e6f, 0xfc00, 0xc974},
    {0x1.fff5cap-25f, 0x0001, 0x3380},
    {0x1.0p-25f, 0x0000, 0x3300},
    {0x1.000002p-25f, 0x0001, 0x3300},
    {0x1.ffb48p-15f, 0x03ff, 0x3880},
    {0x1.ff7edp-15f, 0x03ff, 0x3880},
    {2049.0f, 0x6800, 0x4500},
    {2051.0f, 0x6802, 0x4500},
    {std::numeric_limits<float>::infinity(), 0x7c00, 0x7f80},
    {0x1.921fb6p+1f, 0x4248, 0x4049},
    {-0x1.ad7f2ap-24f, 0x8002, 0xb3d7},
    {0x1.002p+0f, 0x3c00, 0x3f80},
    {0x1.006p+0f, 0x3c02, 0x3f80},
};

TEST(FloatFormats, RoundsAsNumpy) {
  for (const auto& c : float_cases) {
    EXPECT_EQ(float16_bits(c.value), c.float16) << c.value;
    EXPECT_EQ(bfloat16_bits(c.value), c.bfloat16) << c.value;
  }
  EXPECT_TRUE(std::isnan(float16_value(float16_bits(std::nanf("")))));
  EXPECT_TRUE(std::isnan(bfloat16_value(bfloat16_bits(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(float16_value(float16_bits(std::bit_cast<float>(0xff800001u)))));
}

TEST(FloatFormats, EveryHalfSurvives) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const double expected = decode_float(DataType::float16, half);
    const float value = float16_value(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(float16_value(float16_bits(value))));
      continue;
    }
    EXPECT_EQ(static_cast<double>(value), expected);
    EXPECT_EQ(float16_bits(value), half);
  }
}

// The nearest of two neighbours by distance, the even one of a tie.
TEST(FloatFormats, HalfwayPointsGoToEven) {
  for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = float16_value(bits);
    const float high = float16_value(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    const auto even = static_cast<std::uint16_t>((bits & 1) == 0 ? bits : bits + 1);
    ASSERT_EQ(float16_bits(middle), even);
    ASSERT_EQ(float16_bits(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(float16_bits(std::nextafter(middle, 1e9f)), bits + 1);
  }
}

template <typename From, typename To>
To converted(DataType from, DataType to, From value) {
  To result;
  float_conversion(from, to)(reinterpret_cast<const std::byte*>(&value), reinterpret_cast<std::byte*>(&result), 1);
  return result;
}

TEST(FloatFormats, DoublesAreRoundedOnce) {
  const auto half = [](double v) { return converted<double, std::uint16_t>(DataType::float64, DataType::float16, v); };
  const auto brain = [](double v) {
    return converted<double, std::uint16_t>(DataType::float64, DataType::bfloat16, v);
  };
  // numpy's float64 -> float16.
  EXPECT_EQ(half(0x1.0020000001p+0), 0x3c01);
  EXPECT_EQ(half(0x1.002p+0), 0x3c00);
  EXPECT_EQ(half(0x1.005ffffffff8p+0), 0x3c01);
  EXPECT_EQ(half(0x1.000000000008p-25), 0x0001);
  EXPECT_EQ(half(0x1.ffdffffffff8p+15), 0x7bff);
  EXPECT_EQ(half(1e300), 0x7c00);
  EXPECT_EQ(half(-1e-300), 0x8000);
  // Just past the middle of 0x3f80 and 0x3f81, nearer to the latter.
  EXPECT_EQ(brain(0x1.0100000000004p+0), 0x3f81);
  EXPECT_EQ(brain(0x1.01p+0), 0x3f80);
}

// From ml_dtypes 0.5.
TEST(FloatFormats, SmallFormats) {
  struct Case {
    DataType type;
    std::uint32_t bits;
    double value;
  };
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  const Case cases[] = {
      {DataType::float8e4m3fn, 0x01, 0.001953125},
      {DataType::float8e4m3fn, 0x7e, 448},
      {DataType::float8e4m3fn, 0x7f, nan},
      {DataType::float8e4m3fn, 0x81, -0.001953125},
      {DataType::float8e4m3fn, 0xff, nan},
      {DataType::float8e4m3fnuz, 0x07, 0.0068359375},
      {DataType::float8e4m3fnuz, 0x38, 0.5},
      {DataType::float8e4m3fnuz, 0x7f, 240},
      {DataType::float8e4m3fnuz, 0x80, nan},
      {DataType::float8e4m3fnuz, 0xff, -240},
      {DataType::float8e5m2, 0x07, 0.0001068115234375},
      {DataType::float8e5m2, 0x7b, 57344},
      {DataType::float8e5m2, 0x7c, inf},
      {DataType::float8e5m2, 0x7e, nan},
      {DataType::float8e5m2fnuz, 0x7f, 57344},
      {DataType::float8e5m2fnuz, 0x80, nan},
      {DataType::float8e5m2fnuz, 0x38, 0.25},
      {DataType::float8e8m0, 0, 5.877471754111438e-39},
      {DataType::float8e8m0, 127, 1},
      {DataType::float8e8m0, 255, nan},
      {DataType::float4e2m1, 1, 0.5},
      {DataType::float4e2m1, 15, -6},
      {DataType::float6e2m3, 1, 0.125},
      {DataType::float6e2m3, 63, -7.5},
      {DataType::float6e3m2, 8, 0.5},
      {DataType::float6e3m2, 31, 28},
  };
  for (const Case& c : cases) {
    const double value = decode_float(c.type, c.bits);
    if (std::isnan(c.value)) {
      EXPECT_TRUE(std::isnan(value)) << name_of(c.type) << ' ' << c.bits;
    } else {
      EXPECT_EQ(value, c.value) << name_of(c.type) << ' ' << c.bits;
    }
  }
}

TEST(FloatFormats, OnlyTheCommonFormatsConvert) {
  EXPECT_EQ(float_conversion(DataType::float8e5m2, DataType::float32), nullptr);
  EXPECT_EQ(float_conversion(DataType::float32, DataType::int32), nullptr);
  EXPECT_EQ((converted<float, double>(DataType::float32, DataType::float64, 0.1f)), static_cast<double>(0.1f));
  EXPECT_EQ((converted<double, float>(DataType::float64, DataType::float32, 0.1)), 0.1f);
}

}  // namespace
}  // namespace mk
