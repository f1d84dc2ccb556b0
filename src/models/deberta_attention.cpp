// The disentangled attention of DeBERTa and DeBERTaV2: content to content, content to position, position to content.

#include <algorithm>
#include <cmath>

#include "models/deberta.h"
#include "nn/attention.h"
#include "nn/distances.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

// The row of the embeddings for a distance, row - column.
std::int64_t row_of(const DebertaConfig& c, std::int64_t distance) {
  if (c.second && c.position_buckets > 0)
    distance = signed_bucket(distance, c.position_buckets, c.max_relative_positions);
  return std::clamp<std::int64_t>(distance + c.span(), 0, 2 * c.span() - 1);
}

// As row_of, but with the sign turned after the bucket.
std::int64_t row_of_reverse(const DebertaConfig& c, std::int64_t distance) {
  if (c.second && c.position_buckets > 0)
    distance = signed_bucket(distance, c.position_buckets, c.max_relative_positions);
  return std::clamp<std::int64_t>(c.span() - distance, 0, 2 * c.span() - 1);
}

// x [batch, heads, length, size] against projected embeddings [1, 2 * span, heads * size]: for each pair of positions,
// that of their distance. The rows of x are rows of the result.
Value position_scores(const Scope& s, const DebertaConfig& c, Value x, Value like, Value projected, bool reverse) {
  const std::int64_t width = projected.dim(2).value, heads = c.num_attention_heads;
  const auto row = [&](std::int64_t distance) { return reverse ? row_of_reverse(c, -distance) : row_of(c, -distance); };
  const Value table = reshape(s, projected, {2 * c.span(), width});
  const Value rows = rows_by_distance(s, table, like, std::max(c.max_position_embeddings, c.span()), row);
  const Value keys = transpose(s, reshape(s, rows, {keep, heads, width / heads}), {1, 2, 0});
  return columns_by_distance(s, matmul(s, x, keys));
}

Value swapped(const Scope& s, Value x) { return transpose(s, x, {0, 1, 3, 2}); }

// Scores where the mask allows them. In the place of others, not added to them: a row of padding sees nothing, and its
// weights are alike only where its scores are.
Value masked(const Scope& s, Value scores, Value mask) {
  if (!mask) return scores;
  return where(s, mask, scores, s.builder().scalar(scores.type(), s.builder().mask_value()));
}

// Linear layers across the heads of scores [batch, heads, rows, columns].
Value mixed_heads(const Scope& s, Value scores) {
  const std::int64_t heads = scores.dim(1).value;
  return transpose(s, linear(s, transpose(s, scores, {0, 2, 3, 1}), heads, false), {0, 3, 1, 2});
}

// Values of softmax(scores + mask), with DeBERTa's layers across heads.
Value talking_heads(const Scope& s, Value scores, Value mask, Value value) {
  scores = mixed_heads(s["head_logits_proj"], scores);
  const Value weights = softmax(s, masked(s, scores, mask));
  return merge_heads(s, matmul(s, mixed_heads(s["head_weights_proj"], weights), value));
}

Value first_attention(const Scope& s, const DebertaConfig& c, Value x, Value mask, Value distances) {
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size, size = width / heads;
  const double scale = std::sqrt(static_cast<double>(size * (1 + c.position_kinds)));

  // A head's query, key and value are beside each other.
  const Value all = split_heads(s, linear(s["in_proj"], x, 3 * width, false), heads);
  const auto part = [&](std::int64_t index) { return slice(s, all, 3, index * size, (index + 1) * size); };
  const auto bias = [&](const char* name) { return reshape(s, s.weight(name, {width}), {1, heads, 1, size}); };
  const Value query = div(s, add(s, part(0), bias("q_bias")), scale), key = part(1);
  const Value value = add(s, part(2), bias("v_bias"));

  Value scores = matmul(s, query, swapped(s, key));
  if (distances && c.c2p) {
    const Value keys = linear(s["pos_proj"], unsqueeze(s, distances, 0), width, false);
    scores = add(s, scores, position_scores(s, c, query, x, keys, false));
  }
  if (distances && c.p2c) {
    const Value queries = div(s, linear(s["pos_q_proj"], unsqueeze(s, distances, 0), width), scale);
    scores = add(s, scores, swapped(s, position_scores(s, c, key, x, queries, true)));
  }
  return c.talking_head ? talking_heads(s, scores, mask, value) : attend(s, masked(s, scores, mask), {}, value);
}

Value second_attention(const Scope& s, const DebertaConfig& c, Value x, Value mask, Value distances) {
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const double scale = std::sqrt(static_cast<double>(width / heads * (1 + (c.c2p ? 1 : 0) + (c.p2c ? 1 : 0))));
  const Value query = split_heads(s, linear(s["query_proj"], x, width), heads);
  const Value key = split_heads(s, linear(s["key_proj"], x, width), heads);
  const Value value = split_heads(s, linear(s["value_proj"], x, width), heads);

  Value scores = div(s, matmul(s, query, swapped(s, key)), scale);
  const auto projected = [&](const char* shared, const char* own) {
    return linear(s[c.share_att_key ? shared : own], unsqueeze(s, distances, 0), width);
  };
  if (distances && c.c2p) {
    const Value to = position_scores(s, c, query, x, projected("key_proj", "pos_key_proj"), false);
    scores = add(s, scores, div(s, to, scale));
  }
  if (distances && c.p2c) {
    const Value from = position_scores(s, c, key, x, projected("query_proj", "pos_query_proj"), true);
    scores = add(s, scores, div(s, swapped(s, from), scale));
  }
  return attend(s, masked(s, scores, mask), {}, value);
}

}  // namespace

Value deberta_attention(const Scope& s, const DebertaConfig& c, Value x, Value mask, Value distances) {
  return c.second ? second_attention(s, c, x, mask, distances) : first_attention(s, c, x, mask, distances);
}

}  // namespace mk::models
