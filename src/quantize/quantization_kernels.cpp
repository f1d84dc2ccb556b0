#include "quantize/quantization_kernels.h"

#include <bit>
#include <limits>

namespace mk {
namespace {

// Adding it to a float of less than 2^22 in size rounds that half to even, and leaves the integer in the low bits.
constexpr float rounder = 12582912.0f;  // 1.5 * 2^23

inline float finite_or_zero(float value) {
  const float size = value < 0 ? -value : value;
  return size <= std::numeric_limits<float>::max() ? value : 0.0f;
}

inline std::int32_t rounded(float value, float scale, float low, float high) {
  float steps = value / scale;
  steps = steps == steps ? steps : 0.0f;
  steps = steps > low ? steps : low;
  steps = steps < high ? steps : high;
  return std::bit_cast<std::int32_t>(steps + rounder) - std::bit_cast<std::int32_t>(rounder);
}

}  // namespace

void widen_range(const float* values, std::size_t count, float& low, float& high) {
  constexpr std::size_t lanes = 16;
  float lows[lanes];
  float highs[lanes];
  for (std::size_t j = 0; j < lanes; ++j) {
    lows[j] = low;
    highs[j] = high;
  }
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t j = 0; j < lanes; ++j) {
      const float value = finite_or_zero(values[i + j]);
      lows[j] = value < lows[j] ? value : lows[j];
      highs[j] = value > highs[j] ? value : highs[j];
    }
  }
  for (; i < count; ++i) {
    const float value = finite_or_zero(values[i]);
    lows[0] = value < lows[0] ? value : lows[0];
    highs[0] = value > highs[0] ? value : highs[0];
  }
  for (std::size_t j = 0; j < lanes; ++j) {
    low = lows[j] < low ? lows[j] : low;
    high = highs[j] > high ? highs[j] : high;
  }
}

void widen_ranges(const float* __restrict values, std::size_t count, float* __restrict low, float* __restrict high) {
  for (std::size_t i = 0; i < count; ++i) {
    const float value = finite_or_zero(values[i]);
    low[i] = value < low[i] ? value : low[i];
    high[i] = value > high[i] ? value : high[i];
  }
}

template <typename Integer>
void quantize_run(const float* __restrict values, std::size_t count, const QuantizationStep& step,
                  Integer* __restrict to) {
  const float scale = step.scale;
  const std::int32_t zero_point = step.zero_point;
  const auto low = static_cast<float>(step.low - step.zero_point);
  const auto high = static_cast<float>(step.high - step.zero_point);
  for (std::size_t i = 0; i < count; ++i)
    to[i] = static_cast<Integer>(rounded(values[i], scale, low, high) + zero_point);
}

template <typename Integer>
void quantize_row(const float* __restrict values, std::size_t count, const float* __restrict scales,
                  const std::int32_t* __restrict zero_points, std::int32_t low, std::int32_t high,
                  Integer* __restrict to) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t zero_point = zero_points[i];
    to[i] = static_cast<Integer>(
        rounded(values[i], scales[i], static_cast<float>(low - zero_point), static_cast<float>(high - zero_point)) +
        zero_point);
  }
}

void round_steps(const float* __restrict values, std::size_t count, float inverse, float zero_point, std::uint8_t most,
                 std::uint8_t* __restrict to) {
  const float limit = most;
  for (std::size_t i = 0; i < count; ++i) {
    float steps = finite_or_zero(values[i]) * inverse + zero_point;
    steps = steps > 0 ? steps : 0.0f;
    steps = steps < limit ? steps : limit;
    const auto whole = static_cast<std::int32_t>(steps);
    to[i] = static_cast<std::uint8_t>(whole + (steps - static_cast<float>(whole) >= 0.5f ? 1 : 0));
  }
}

template void quantize_run(const float*, std::size_t, const QuantizationStep&, std::int8_t*);
template void quantize_run(const float*, std::size_t, const QuantizationStep&, std::uint8_t*);
template void quantize_run(const float*, std::size_t, const QuantizationStep&, std::int16_t*);
template void quantize_run(const float*, std::size_t, const QuantizationStep&, std::uint16_t*);
template void quantize_row(const float*, std::size_t, const float*, const std::int32_t*, std::int32_t, std::int32_t,
                           std::int8_t*);
template void quantize_row(const float*, std::size_t, const float*, const std::int32_t*, std::int32_t, std::int32_t,
                           std::uint8_t*);
template void quantize_row(const float*, std::size_t, const float*, const std::int32_t*, std::int32_t, std::int32_t,
                           std::int16_t*);
template void quantize_row(const float*, std::size_t, const float*, const std::int32_t*, std::int32_t, std::int32_t,
                           std::uint16_t*);

}  // namespace mk
