#pragma once
// The ways in which exporters write the operands of attention: heads that are split from [batch, tokens, hidden] or
// taken from a joint projection, scales on either side, linear layers before them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "optimize/patch.h"

namespace mk {

// A value without the constant factor that it is multiplied by.
struct Scaled {
  Value* value = nullptr;
  double factor = 1;
};
Scaled without_factor(Value* value);

// Heads [batch, heads, tokens, size] and what they are split from.
struct Heads {
  Value* flat = nullptr;   // [batch, tokens, heads * size]; null where a joint projection is split by one Reshape
  Value* joint = nullptr;  // [batch, tokens, 3 * heads * size], queries, keys and values one after the other
  std::int64_t part = 0;   // of `joint`: 0, 1 or 2
  std::int64_t count = 0;  // heads
  std::int64_t size = 0;
  double factor = 1;  // that they are multiplied by
};
// usage, with what was found instead.
Result<Heads> heads_of(Value* value);
// Of keys [batch, heads, size, tokens].
Result<Heads> transposed_heads_of(Value* value);

// [batch, tokens, heads * size] from [batch, tokens, heads, size]: whether `flat` is that.
bool joins_heads(const Value* split, const Value* flat);

// value = x * weight + bias, the weight a constant matrix [in, out] and the bias a constant vector or null.
struct Linear {
  Value* x = nullptr;
  Value* weight = nullptr;
  Value* bias = nullptr;
};
// Nothing where it is another, or where its value is used elsewhere, too (`uses` times is right).
std::optional<Linear> linear_of(Value* value, std::size_t uses = 1);

// value = input + bias, the bias a constant vector, for `value` that is used once.
std::optional<Linear> biased(Value* value);

// Constant matrices [in, a], [in, b] ... of one type as [in, a + b ...], a view of theirs.
std::optional<Tensor> joined_columns(const std::vector<Value*>& matrices);
// Constant vectors one after the other; zeros of `sizes` where one is null.
std::optional<Tensor> joined_vectors(const std::vector<Value*>& vectors, const std::vector<std::int64_t>& sizes,
                                     DataType type);

}  // namespace mk
