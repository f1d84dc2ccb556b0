#pragma once
// The loops over weights, in their own file so that the compiler may vectorise them.

#include <cstddef>
#include <cstdint>

namespace mk {

struct QuantizationStep {
  float scale;
  std::int32_t zero_point;
  std::int32_t low;  // of the type
  std::int32_t high;
};

// Widens [low, high] by `count` elements; those that are not finite count as 0.
void widen_range(const float* values, std::size_t count, float& low, float& high);
// The same for element i into low[i], high[i].
void widen_ranges(const float* values, std::size_t count, float* low, float* high);

// Rounds half to even and saturates; NaN becomes the zero point. `Integer`: 8 or 16 bits.
template <typename Integer>
void quantize_run(const float* values, std::size_t count, const QuantizationStep& step, Integer* to);
// The same with a scale and a zero point for each element.
template <typename Integer>
void quantize_row(const float* values, std::size_t count, const float* scales, const std::int32_t* zero_points,
                  std::int32_t low, std::int32_t high, Integer* to);

// value * inverse + zero point, rounded half away from zero, within [0, most].
void round_steps(const float* values, std::size_t count, float inverse, float zero_point, std::uint8_t most,
                 std::uint8_t* to);

}  // namespace mk
