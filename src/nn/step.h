#pragma once
// A decoder's step: one token that looks at a cache of earlier ones. The cache is an input of fixed length, and the
// graph gives the token's own slot of it; whoever runs the graph puts the slot in its place.
//
// Nothing is scattered and no cache is copied: scores of the past and of the token itself are computed apart and put
// side by side, capacity + 1 of them.

#include <cstdint>
#include <vector>

#include "nn/builder.h"

namespace mk::nn {

struct StepCache {
  std::vector<Value> keys, values;  // per layer, [batch, heads, capacity, size]
  // What is added to the scores of the past, then of the token: [batch, 1 or heads, 1, capacity + 1].
  Value mask;
  std::vector<Value> present;  // what the graph gives: key and value [batch, heads, 1, size] of layer 0, of layer 1 ...
};

// For a cache whose token goes to slot `position` (int64, one element): of the slots that `attention_mask`
// [batch, capacity] has, all but that one, and the token itself.
Value static_step_mask(const Scope& s, Value attention_mask, Value position);
// For a window that slides: `attention_mask` [batch, capacity] is of the window with the token in its last slot.
// The oldest slot of the past drops out.
Value sliding_step_mask(const Scope& s, Value attention_mask);

// Attention of a token: query, key and value [batch, 1, heads * size], the query already scaled. Notes what is present.
// [batch, 1, heads * size].
Value attend_step(const Scope& s, StepCache& cache, std::size_t layer, std::int64_t heads, Value query, Value key,
                  Value value);

}  // namespace mk::nn
