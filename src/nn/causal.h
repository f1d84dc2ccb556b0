#pragma once
// Attention that looks back only, over a cache of keys and values: what decoders share.

#include <cstdint>
#include <vector>

#include "nn/builder.h"

namespace mk::nn {

// The keys and values of earlier tokens, one pair per layer, [batch, key heads, past, size]. Without any, every token
// that is attended to is in the graph's input.
struct Cache {
  std::vector<Value> keys, values;
  // False: the tokens of this step are put behind the past, and the graph gives the whole.
  // True: as many of the oldest slots drop out as come in, and the graph gives the new ones only: shapes are static.
  bool sliding = false;
  Dim total;                   // the length with this step's tokens
  std::vector<Value> present;  // what the graph gives: key and value of layer 0, of layer 1 ...

  bool empty() const { return keys.empty(); }
};

struct KeyValue {
  Value key, value;
};
// This step's, [batch, key heads, length, size], with the layer's past before them; notes what is present.
KeyValue with_past(const Scope& s, Cache& cache, std::size_t layer, KeyValue now);

// Which keys a query sees, by the distance between their columns.
struct Reach {
  bool causal = true;       // none after it
  std::int64_t window = 0;  // less than this far away; 0 is any distance
};
// Queries are the last `length` columns of all. `ids` is [batch, length]; `attention_mask` [batch, columns] of ones and
// zeros, or empty where all columns are in `ids`. [batch, 1, length, columns]: 0 where seen, the builder's mask value
// elsewhere. Empty where all see all.
Value reach_mask(const Scope& s, Value ids, Value attention_mask, Reach reach);
// The columns of the queries, int64 [1, length].
Value columns_of(const Scope& s, Value ids, Value attention_mask);

// Queries [batch, heads, length, size], already scaled; keys and values [batch, key heads, columns, size], each for a
// group of heads (Ainslie et al. 2023). With a cap, scores go through cap * tanh(scores / cap).
// [batch, length, heads * size].
Value grouped_attention(const Scope& s, Value query, KeyValue all, Value mask, double cap = 0);

// x at the row of each sequence that holds its last token other than `padding`: [batch, width] from
// [batch, length, width]. With a negative `padding`, the last row.
Value last_token(const Scope& s, Value x, Value ids, std::int64_t padding);

}  // namespace mk::nn
