#pragma once
// The additive masks of attention: numbers so far below zero that Softmax gives them nothing. As the smallest float, or
// -10000, they stretch the range of all they are added to, and quantization leaves nothing of the rest.

#include <cstddef>
#include <optional>

#include "base/result.h"

#include "graph/ir.h"
#include "quantize/tensor_ranges.h"

namespace mk {

// What masks become: exp(mask_value) is 0 in float32.
inline constexpr float mask_value = -1000;
// By how much a masked score has to lie below the smallest other one: exp(-20) of a row is nothing to 16 bits.
inline constexpr float mask_margin = 20;

// Makes the constants of masks mask_value: float32 initializers with elements of at most -10000 (-inf too) from which
// every path leads through additions, choices and data movement into a Softmax. Softmax gives what it gave before,
// unless a whole row is masked. How many it changed.
Result<std::size_t> soften_masks(Model& model);

// Whether a range is that of an additive mask: far below zero and next to nothing above.
bool is_mask_range(TensorRange range);

// The range of a score that a Softmax reads, where it is the sum of `scores` and a mask: masked ones saturate.
std::optional<TensorRange> masked_scores_range(TensorRange scores, TensorRange mask, TensorRange sum);

}  // namespace mk
