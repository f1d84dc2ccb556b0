#include "nn/attention.h"

#include <fmt/format.h>

#include "nn/distances.h"
#include "nn/ops.h"

namespace mk::nn {

Value additive_mask(const Scope& s, Value attention_mask) {
  if (!attention_mask) return {};
  const Value wide = unsqueeze(s, unsqueeze(s, attention_mask, 1), 2);
  const Value masked = sub(s, 1, cast(s, wide, s.builder().float_type()));
  return mul(s, masked, s.builder().mask_value());
}

Value causal_mask(const Scope& s, Value like) {
  if (!like) return {};
  Builder& b = s.builder();
  const Value positions = ramp(s, like);
  const Value later = greater(s, unsqueeze(s, positions, 0), unsqueeze(s, positions, 1));
  const Value mask = mul(s, cast(s, later, b.float_type()), b.mask_value());
  return unsqueeze(s, unsqueeze(s, mask, 0), 0);
}

Value split_heads(const Scope& s, Value x, std::int64_t heads) {
  return transpose(s, reshape(s, x, {keep, keep, heads, x.dim(-1).value / heads}), {0, 2, 1, 3});
}

Value split_keys(const Scope& s, Value x, std::int64_t heads) {
  return transpose(s, reshape(s, x, {keep, keep, heads, x.dim(-1).value / heads}), {0, 2, 3, 1});
}

Value merge_heads(const Scope& s, Value x) {
  return reshape(s, transpose(s, x, {0, 2, 1, 3}), {keep, keep, x.dim(1).value * x.dim(3).value});
}

Value attend(const Scope& s, Value scores, Value mask, Value values) {
  const Value weights = softmax(s, mask ? add(s, scores, mask) : scores);
  return merge_heads(s, matmul(s, weights, values));
}

Value relative_scores(const Scope& s, Value x, std::int64_t positions, bool ascending) {
  if (!x) return {};
  s.is_a("Embedding");
  Builder& b = s.builder();
  const Dim rows = x.dim(2);
  if (rows.is_known() && rows.value > positions) {
    b.fail({ErrorCode::usage, fmt::format("a length of {} is beyond the model's {} positions", rows.value, positions),
            s.module().path, "Ask for a shorter one with --shape-config or --input-specs"});
    return {};
  }
  // Distances -(rows - 1) ... rows - 1 are in the middle of the table; counted from its end so that a window that
  // reaches its first row can be taken backwards.
  const Value length = size(s, x, 2);
  const auto bound = [&](std::int64_t offset, bool negated) {
    if (rows.is_known()) return b.integers({negated ? offset - rows.value : offset + rows.value});
    return negated ? sub(s, b.integers({offset}), length) : add(s, length, b.integers({offset}));
  };
  const Value table = s.weight("weight", {2 * positions - 1, x.dim(3).value});
  const Value begin = ascending ? bound(positions, true) : bound(positions - 2, false);
  const Value end = ascending ? bound(positions - 1, false) : bound(-positions, true);
  const Dim distances = rows.is_known() ? Dim::known(2 * rows.value - 1) : Dim{};
  const Value window = Op(s, "Slice", {table, begin, end, b.integers({0}), b.integers({ascending ? 1 : -1})})
                           .out(x.type(), {distances, x.dim(3)});
  return columns_by_distance(s, matmul(s, x, transpose(s, window, {1, 0})));
}

}  // namespace mk::nn
