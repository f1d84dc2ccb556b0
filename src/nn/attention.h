#pragma once
// The parts of multi-head attention (Vaswani et al. 2017) that all families share. What differs (projections, scaling,
// position terms, caches) is written out by the family between them.

#include <cstdint>

#include "nn/builder.h"

namespace mk::nn {

// [batch, length] of ones and zeros -> [batch, 1, 1, length]: 0 where attended to, the builder's mask value elsewhere.
// The empty value where there is no mask.
Value additive_mask(const Scope& s, Value attention_mask);

// [1, 1, length, length] for axis 1 of `like` [batch, length, ...]: 0 up to the diagonal, the builder's mask value
// after it.
Value causal_mask(const Scope& s, Value like);

// [batch, length, heads * size] -> [batch, heads, length, size], and for keys already transposed
// [batch, heads, size, length].
Value split_heads(const Scope& s, Value x, std::int64_t heads);
Value split_keys(const Scope& s, Value x, std::int64_t heads);
// [batch, heads, length, size] -> [batch, length, heads * size].
Value merge_heads(const Scope& s, Value x);

// softmax(scores + mask) values, heads merged. The mask may be empty.
Value attend(const Scope& s, Value scores, Value mask, Value values);

// Shaw et al. 2018: scores of the relative distance, [batch, heads, rows, columns], from x [batch, heads, rows, size]
// and the layer's table of 2 * positions - 1 distances. With `ascending` row i, column j takes distance j - i,
// else i - j.
Value relative_scores(const Scope& s, Value x, std::int64_t positions, bool ascending);

}  // namespace mk::nn
