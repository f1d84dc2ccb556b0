#include "quantize/range_kernels.h"

#include <array>

namespace mk {

bool widen(std::span<const float> values, TensorRange& range) {
  constexpr std::size_t lanes = 16;
  std::array<float, lanes> low, high, wrong{};
  low.fill(range.low);
  high.fill(range.high);
  const float* v = values.data();
  std::size_t i = 0;
  for (; i + lanes <= values.size(); i += lanes) {
    for (std::size_t j = 0; j < lanes; ++j) {
      const float value = v[i + j];
      low[j] = value < low[j] ? value : low[j];
      high[j] = value > high[j] ? value : high[j];
      wrong[j] += value - value;  // 0, or NaN for what is not finite
    }
  }
  for (; i < values.size(); ++i) {
    low[0] = v[i] < low[0] ? v[i] : low[0];
    high[0] = v[i] > high[0] ? v[i] : high[0];
    wrong[0] += v[i] - v[i];
  }
  float sum = 0;
  for (std::size_t j = 0; j < lanes; ++j) {
    range.low = low[j] < range.low ? low[j] : range.low;
    range.high = high[j] > range.high ? high[j] : range.high;
    sum += wrong[j];
  }
  return sum == 0;
}

void widen_columns(std::span<const float> values, std::span<float> low, std::span<float> high) {
  const std::size_t columns = low.size();
  if (columns == 0) return;
  float* lows = low.data();
  float* highs = high.data();
  for (const float* row = values.data(); row + columns <= values.data() + values.size(); row += columns) {
    for (std::size_t j = 0; j < columns; ++j) {
      lows[j] = row[j] < lows[j] ? row[j] : lows[j];
      highs[j] = row[j] > highs[j] ? row[j] : highs[j];
    }
  }
}

}  // namespace mk
