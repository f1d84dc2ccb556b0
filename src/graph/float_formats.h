#pragma once
// The floating point formats of tensors: one value at a time for the small ones, whole arrays between the common ones.
// IEEE 754 binary16/32/64; bfloat16; OCP 8-bit formats (E4M3FN, E5M2), their FNUZ variants (arXiv:2206.02915), and the
// OCP microscaling formats (E8M0 scales, E2M1, E2M3, E3M2).

#include <cstddef>
#include <cstdint>
#include <span>

#include "graph/data_type.h"

namespace mk {

// The value of the low bits of `bits` in a format of at most 16 bits.
double decode_float(DataType type, std::uint32_t bits);

// Round to nearest even, subnormals kept; NaN stays NaN; past the largest finite value is infinity.
std::uint16_t float16_bits(float value);
float float16_value(std::uint16_t bits);
std::uint16_t bfloat16_bits(float value);
float bfloat16_value(std::uint16_t bits);

// Converts count elements, `from` packed to `to` packed; neither needs alignment, they must not overlap.
using FloatConversion = void (*)(const std::byte* from, std::byte* to, std::size_t count);
// Between float64, float32, float16 and bfloat16; null for other pairs.
FloatConversion float_conversion(DataType from, DataType to);

}  // namespace mk
