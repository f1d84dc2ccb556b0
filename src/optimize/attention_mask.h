#pragma once
// What a mask that is added to attention scores comes from. Exporters write a padding mask [batch, keys] of ones and
// zeros as (1 - mask) * -3.4e38, or with Where, after views that put it at [batch, 1, 1, keys]; Attention takes the
// mask itself.

#include <optional>

#include "optimize/patch.h"

namespace mk {

struct PaddingMask {
  Value* mask = nullptr;  // two dimensions, of an integer type or bool
  bool keeps = true;      // nonzero is a key to attend to; else a key to leave out
  double fill = 0;        // what is added to the scores of keys that are left out
};

// The padding mask that an additive mask is made of; nothing where it is something else.
std::optional<PaddingMask> padding_mask(Value* added);
// The same where Where(condition, then, otherwise) puts a constant in place of scores: `keeps_scores` where the
// condition is true.
std::optional<PaddingMask> padding_condition(Value* condition, bool keeps_scores, double fill);

// As the kernels take it: int32, nonzero is a key to attend to.
PatchValue key_mask(Patch& patch, const PaddingMask& padding);

}  // namespace mk
