#pragma once
// The loops over observed values, in their own file so that the compiler may vectorise them.

#include <cstddef>
#include <span>

#include "quantize/tensor_ranges.h"

namespace mk {

// Widens the range by the values; NaN does not count. False where one of them is not finite.
bool widen(std::span<const float> values, TensorRange& range);
// The same for rows of `ranges` columns, each column into its own range; `low` and `high` have one element for each.
void widen_columns(std::span<const float> values, std::span<float> low, std::span<float> high);

}  // namespace mk
