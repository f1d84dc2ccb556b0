#include "nn/causal.h"

#include <fmt/format.h>

#include <algorithm>

#include "nn/attention.h"
#include "nn/ops.h"

namespace mk::nn {
namespace {

Value number(const Scope& s, Value one_element) { return Op(s, "Squeeze", {one_element}).out(DataType::int64, {}); }

Value range(const Scope& s, Value from, Value to, Dim length) {
  return Op(s, "Range", {from, to, s.builder().scalar(DataType::int64, 1)}).out(DataType::int64, {std::move(length)});
}

bool sees(Reach reach, std::int64_t from, std::int64_t to) {
  const std::int64_t back = from - to;
  if (reach.causal && back < 0) return false;
  return reach.window == 0 || (back < reach.window && -back < reach.window);
}

// bool [length, columns] of a graph whose lengths are known.
Value known_reach(const Scope& s, std::int64_t length, std::int64_t columns, Reach reach) {
  const std::int64_t past = columns - length;
  auto fill = [=](std::span<std::byte> out) -> Status {
    std::size_t at = 0;
    for (std::int64_t row = 0; row < length; ++row)
      for (std::int64_t column = 0; column < columns; ++column)
        out[at++] = static_cast<std::byte>(sees(reach, row + past, column));
    return {};
  };
  return s.builder().constant(fmt::format("constant/reach/{}x{}/{}{}", length, columns, reach.causal ? "back" : "both",
                                          reach.window > 0 ? fmt::format("/{}", reach.window) : ""),
                              DataType::boolean, {length, columns},
                              computed(static_cast<std::uint64_t>(length * columns), std::move(fill)));
}

Value open_reach(const Scope& s, Value ids, Value over, Reach reach) {
  Builder& b = s.builder();
  const Value end = number(s, size(s, over, 1));
  const Value rows = unsqueeze(s, range(s, sub(s, end, number(s, size(s, ids, 1))), end, ids.dim(1)), 1);
  const Value columns = range(s, b.scalar(DataType::int64, 0), end, over.dim(1));
  const Value back = sub(s, rows, columns);
  Value seen;
  if (reach.causal) seen = greater(s, back, b.scalar(DataType::int64, -1));
  if (reach.window > 0) {
    const Value distance = reach.causal ? back : unary(s, "Abs", back);
    const Value near = greater(s, b.scalar(DataType::int64, static_cast<double>(reach.window)), distance);
    seen = seen ? Op(s, "And", {seen, near}).like(near) : near;
  }
  return seen;
}

bool all_see_all(Reach reach, std::int64_t length, std::int64_t columns) {
  const bool near = reach.window == 0 || (columns <= reach.window && length <= reach.window);
  return near && (!reach.causal || length == 1);
}

}  // namespace

KeyValue with_past(const Scope& s, Cache& cache, std::size_t layer, KeyValue now) {
  if (cache.empty() || !now.key || !now.value) return now;
  const auto joined = [&](Value past, Value added) {
    if (cache.sliding) {
      const Dim length = added.dim(2);
      past = length.is_known() ? slice(s, past, 2, length.value, to_the_end)
                               : slice(s, past, 2, size(s, added, 2), s.builder().integers({to_the_end}));
    }
    Shape shape = added.shape();
    shape[2] = cache.total;
    return Op(s, "Concat", {past, added}).with("axis", 2).out(added.type(), std::move(shape));
  };
  const KeyValue all{joined(cache.keys[layer], now.key), joined(cache.values[layer], now.value)};
  const KeyValue& given = cache.sliding ? now : all;
  cache.present.push_back(given.key);
  cache.present.push_back(given.value);
  return all;
}

Value reach_mask(const Scope& s, Value ids, Value attention_mask, Reach reach) {
  if (!ids) return {};
  Builder& b = s.builder();
  const Value over = attention_mask ? attention_mask : ids;
  const Dim length = ids.dim(1), columns = over.dim(1);
  const bool known = length.is_known() && columns.is_known() && columns.value >= length.value;
  Value seen;
  if (!known)
    seen = open_reach(s, ids, over, reach);
  else if (!all_see_all(reach, length.value, columns.value))
    seen = known_reach(s, length.value, columns.value, reach);
  if (attention_mask) {
    const Value there = unsqueeze(s, unsqueeze(s, cast(s, attention_mask, DataType::boolean), 1), 1);
    seen = !seen ? there
                 : Op(s, "And", {there, seen}).out(DataType::boolean, {over.dim(0), Dim::known(1), length, columns});
  }
  if (!seen) return {};
  return where(s, seen, b.scalar(b.float_type(), 0), b.scalar(b.float_type(), b.mask_value()));
}

Value columns_of(const Scope& s, Value ids, Value attention_mask) {
  if (!ids) return {};
  Builder& b = s.builder();
  const Value over = attention_mask ? attention_mask : ids;
  const Dim length = ids.dim(1), columns = over.dim(1);
  if (length.is_known() && columns.is_known()) {
    std::vector<std::int64_t> positions;
    for (std::int64_t at = std::max<std::int64_t>(0, columns.value - length.value); at < columns.value; ++at)
      positions.push_back(at);
    const auto count = static_cast<std::int64_t>(positions.size());
    return b.constant(fmt::format("constant/columns/{}:{}", columns.value - count, columns.value), DataType::int64,
                      {1, count}, owned_values(positions));
  }
  const Value end = number(s, size(s, over, 1));
  return unsqueeze(s, range(s, sub(s, end, number(s, size(s, ids, 1))), end, length), 0);
}

Value grouped_attention(const Scope& s, Value query, KeyValue all, Value mask, double cap) {
  if (!query || !all.key || !all.value) return {};
  Builder& b = s.builder();
  const std::int64_t heads = query.dim(1).value, shared = all.key.dim(1).value;
  const Dim batch = query.dim(0), length = query.dim(2), columns = all.key.dim(2), width = query.dim(3);
  const DataType type = query.type();
  // A group's heads lie next to each other: as rows of one matrix they meet their keys without copies of these.
  const bool grouped = heads != shared;
  const Dim stacked = length.is_known() ? Dim::known(length.value * (heads / shared)) : Dim{};
  const auto shaped = [&](Value x, bool stack, const Dim& last) {
    if (!grouped) return x;
    const std::vector<std::int64_t> sizes{keep, stack ? shared : heads, rest, keep};
    return Op(s, "Reshape", {x, b.integers(sizes)})
        .out(type, {batch, Dim::known(sizes[1]), stack ? stacked : length, last});
  };
  Value scores = matmul(s, shaped(query, true, width), transpose(s, all.key, {0, 1, 3, 2}));
  if (cap > 0) scores = mul(s, unary(s, "Tanh", div(s, scores, cap)), cap);
  scores = shaped(scores, false, columns);
  const Value weights = shaped(softmax(s, mask ? add(s, scores, mask) : scores), true, columns);
  return merge_heads(s, shaped(matmul(s, weights, all.value), false, all.value.dim(3)));
}

Value last_token(const Scope& s, Value x, Value ids, std::int64_t padding) {
  if (!x || !ids) return {};
  Builder& b = s.builder();
  if (padding < 0) return take(s, x, 1, -1);
  const Value is_padding = equal(s, ids, b.scalar(ids.type(), static_cast<double>(padding)));
  const Value tokens = cast(s, unary(s, "Not", is_padding), DataType::int32);
  const Value places = mul(s, cast(s, columns_of(s, ids, {}), DataType::int32), tokens);
  const Value last =
      Op(s, "ArgMax", {places}).with("axis", 1).with("keepdims", 1).out(DataType::int64, {ids.dim(0), Dim::known(1)});
  return Op(s, "GatherND", {x, last}).with("batch_dims", 1).out(x.type(), {x.dim(0), x.dim(2)});
}

}  // namespace mk::nn
