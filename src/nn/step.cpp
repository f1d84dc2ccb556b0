#include "nn/step.h"

#include "nn/attention.h"
#include "nn/ops.h"

namespace mk::nn {
namespace {

// A column of ones or zeros before or behind each row of `mask`.
Value padded(const Scope& s, Value mask, bool behind, std::int64_t value) {
  if (!mask) return {};
  Builder& b = s.builder();
  const Dim length = mask.dim(1);
  const Value pads = b.integers(behind ? std::vector<std::int64_t>{0, 0, 0, 1} : std::vector<std::int64_t>{0, 1, 0, 0});
  return Op(s, "Pad", {mask, pads, b.scalar(mask.type(), static_cast<double>(value))})
      .out(mask.type(), {mask.dim(0), length.is_known() ? Dim::known(length.value + 1) : Dim{}});
}

Value columns(const Scope& s, Value mask) {
  Builder& b = s.builder();
  const Dim length = mask.dim(1);
  if (length.is_known()) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(length.value));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    return b.integers(std::move(all));
  }
  const Value end = Op(s, "Squeeze", {size(s, mask, 1)}).out(DataType::int64, {});
  return Op(s, "Range", {b.scalar(DataType::int64, 0), end, b.scalar(DataType::int64, 1)})
      .out(DataType::int64, {length});
}

}  // namespace

Value static_step_mask(const Scope& s, Value attention_mask, Value position) {
  if (!attention_mask || !position) return {};
  const Value other = unary(s, "Not", equal(s, columns(s, attention_mask), cast(s, position, DataType::int64)));
  const Value past = mul(s, attention_mask, cast(s, other, attention_mask.type()));
  return additive_mask(s, padded(s, past, true, 1));
}

Value sliding_step_mask(const Scope& s, Value attention_mask) {
  return additive_mask(s, padded(s, attention_mask, false, 0));
}

Value attend_step(const Scope& s, StepCache& cache, std::size_t layer, std::int64_t heads, Value query, Value key,
                  Value value) {
  if (!query || !key || !value) return {};
  const std::int64_t size = query.dim(-1).value / heads;
  const Value column = reshape(s, query, {keep, heads, size, 1});
  const Value own_key = reshape(s, key, {keep, heads, 1, size}), own_value = reshape(s, value, {keep, heads, 1, size});
  cache.present.insert(cache.present.end(), {own_key, own_value});

  Value scores = concat(s, {matmul(s, cache.keys[layer], column), matmul(s, own_key, column)}, 2);
  scores = add(s, reshape(s, scores, {keep, keep, 1, rest}), cache.mask);
  const Value weights = softmax(s, scores);
  const Value past = matmul(s, slice(s, weights, 3, 0, -1), cache.values[layer]);
  const Value own = mul(s, slice(s, weights, 3, -1, to_the_end), own_value);
  return reshape(s, add(s, past, own), {keep, 1, heads * size});
}

}  // namespace mk::nn
