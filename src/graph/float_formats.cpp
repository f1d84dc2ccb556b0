#include "graph/float_formats.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "graph/float16_kernels.h"

namespace mk {
namespace {

enum class Special : std::uint8_t {
  ieee,         // exponent all ones: infinity and NaN
  nan_at_ones,  // no infinity; all ones but the sign is NaN
  negative_zero_is_nan,
  none,  // every pattern is a number
};

struct Format {
  DataType type;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Special special;
};

constexpr std::array formats{
    Format{DataType::float16, 5, 10, 15, Special::ieee},
    Format{DataType::bfloat16, 8, 7, 127, Special::ieee},
    Format{DataType::float8e4m3fn, 4, 3, 7, Special::nan_at_ones},
    Format{DataType::float8e4m3fnuz, 4, 3, 8, Special::negative_zero_is_nan},
    Format{DataType::float8e5m2, 5, 2, 15, Special::ieee},
    Format{DataType::float8e5m2fnuz, 5, 2, 16, Special::negative_zero_is_nan},
    Format{DataType::float4e2m1, 2, 1, 1, Special::none},
    Format{DataType::float6e2m3, 2, 3, 1, Special::none},
    Format{DataType::float6e3m2, 3, 2, 3, Special::none},
};

double decode(const Format& format, std::uint32_t bits) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const std::uint32_t mantissa_mask = (1u << format.mantissa_bits) - 1;
  const std::uint32_t exponent_mask = (1u << format.exponent_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = (bits >> format.mantissa_bits) & exponent_mask;
  const bool negative = ((bits >> (format.mantissa_bits + format.exponent_bits)) & 1) != 0;
  if (format.special == Special::ieee && exponent == exponent_mask) {
    if (mantissa != 0) return nan;
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  if (format.special == Special::nan_at_ones && exponent == exponent_mask && mantissa == mantissa_mask) return nan;
  if (format.special == Special::negative_zero_is_nan && negative && exponent == 0 && mantissa == 0) return nan;
  const std::uint32_t significand = exponent == 0 ? mantissa : mantissa | (mantissa_mask + 1);
  const int scale = (exponent == 0 ? 1 : static_cast<int>(exponent)) - format.bias - format.mantissa_bits;
  const double magnitude = std::ldexp(static_cast<double>(significand), scale);
  return negative ? -magnitude : magnitude;
}

}  // namespace

double decode_float(DataType type, std::uint32_t bits) {
  if (type == DataType::float8e8m0) {
    const auto exponent = static_cast<int>(bits & 0xff);
    return exponent == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, exponent - 127);
  }
  for (const Format& format : formats) {
    if (format.type == type) return decode(format, bits);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The conversions below have no branches that depend on values other than selects, so that loops over them vectorise.

std::uint16_t float16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Normal results: move the exponent's bias from 127 to 15 and round the 13 bits that go; a carry may reach infinity.
  const std::uint32_t rounded = (magnitude - (112u << 23) + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal results: adding 0.5 leaves the result in the low bits of the sum, rounded by the addition itself.
  const float sum = std::bit_cast<float>(magnitude) + 0.5f;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5f);
  std::uint32_t result = magnitude < (113u << 23) ? subnormal : rounded;
  result = magnitude >= (143u << 23) ? 0x7c00u : result;  // 2^16 and more, infinity
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  result = magnitude > 0x7f800000u ? nan : result;
  return static_cast<std::uint16_t>(sign | result);
}

float float16_value(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7fffu;
  const std::uint32_t normal = (magnitude << 13) + (112u << 23);
  const std::uint32_t special = (magnitude << 13) + (224u << 23);  // infinity and NaN
  // Subnormal: the mantissa counts units of 2^-24.
  const auto subnormal =
      std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  std::uint32_t result = magnitude < 0x400u ? subnormal : normal;
  result = magnitude >= 0x7c00u ? special : result;
  return std::bit_cast<float>(sign | result);
}

std::uint16_t bfloat16_bits(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

float bfloat16_value(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

namespace {

// A double rounded to a float whose last bit is set when anything was lost (round to odd): rounding that float again to
// a format at least two bits shorter gives the same as rounding the double at once.
float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto back = static_cast<double>(nearest);
  if (back == value || std::isnan(value) || std::isinf(nearest)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(back) > std::fabs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1u);
}

struct Float32 {
  using Stored = float;
  static float to_float(Stored value) { return value; }
  static Stored from_float(float value) { return value; }
};
struct Float64 {
  using Stored = double;
  static Stored from_float(float value) { return static_cast<double>(value); }
};
struct Float16 {
  using Stored = std::uint16_t;
  static float to_float(Stored bits) { return float16_value(bits); }
  static Stored from_float(float value) { return float16_bits(value); }
};
struct Bfloat16 {
  using Stored = std::uint16_t;
  static float to_float(Stored bits) { return bfloat16_value(bits); }
  static Stored from_float(float value) { return bfloat16_bits(value); }
};

template <typename From, typename To>
typename To::Stored convert_one(typename From::Stored value) {
  if constexpr (!std::is_same_v<From, Float64>) {
    return To::from_float(From::to_float(value));
  } else if constexpr (std::is_same_v<To, Float32>) {
    return static_cast<float>(value);
  } else {
    return To::from_float(round_to_odd(value));
  }
}

template <typename From, typename To>
void convert(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    typename From::Stored in;
    std::memcpy(&in, from + i * sizeof in, sizeof in);
    const typename To::Stored out = convert_one<From, To>(in);
    std::memcpy(to + i * sizeof out, &out, sizeof out);
  }
}

struct ConversionRow {
  DataType from;
  DataType to;
  FloatConversion convert;
};

constexpr std::array conversions{
    ConversionRow{DataType::float32, DataType::float64, convert<Float32, Float64>},
    ConversionRow{DataType::float32, DataType::float16, float32_to_float16},
    ConversionRow{DataType::float32, DataType::bfloat16, convert<Float32, Bfloat16>},
    ConversionRow{DataType::float64, DataType::float32, convert<Float64, Float32>},
    ConversionRow{DataType::float64, DataType::float16, convert<Float64, Float16>},
    ConversionRow{DataType::float64, DataType::bfloat16, convert<Float64, Bfloat16>},
    ConversionRow{DataType::float16, DataType::float32, float16_to_float32},
    ConversionRow{DataType::float16, DataType::float64, convert<Float16, Float64>},
    ConversionRow{DataType::float16, DataType::bfloat16, convert<Float16, Bfloat16>},
    ConversionRow{DataType::bfloat16, DataType::float32, convert<Bfloat16, Float32>},
    ConversionRow{DataType::bfloat16, DataType::float64, convert<Bfloat16, Float64>},
    ConversionRow{DataType::bfloat16, DataType::float16, convert<Bfloat16, Float16>},
};

}  // namespace

FloatConversion float_conversion(DataType from, DataType to) {
  for (const ConversionRow& row : conversions) {
    if (row.from == from && row.to == to) return row.convert;
  }
  return nullptr;
}

}  // namespace mk
