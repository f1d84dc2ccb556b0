#include "nn/rope.h"

#include <fmt/format.h>

#include <cmath>

#include "nn/ops.h"

namespace mk::nn {
namespace {

// How many positions there are: the highest and one more; a number of the positions' type.
Value length_of(const Scope& s, Value positions) {
  const Value highest = Op(s, "ReduceMax", {positions}).with("keepdims", 0).out(positions.type(), {});
  return add(s, highest, 1);
}

// [pairs]
Value frequencies(const Scope& s, const Rope& rope, Value positions, std::int64_t longest) {
  Builder& b = s.builder();
  const auto table = [&](const char* name, const std::vector<float>& values) {
    return b.floats(fmt::format("{}.{}", s.module().path, name), values);
  };
  const Value fixed = table("inv_freq", rope.frequencies);
  if (!rope.depends_on_length() || !positions || (longest > 0 && longest <= rope.limit)) return fixed;
  const Value limit = b.scalar(positions.type(), static_cast<double>(rope.limit));
  if (!rope.long_frequencies.empty())
    return where(s, greater(s, length_of(s, positions), limit), table("long_inv_freq", rope.long_frequencies), fixed);

  const Value length = Op(s, "Max", {length_of(s, positions), limit}).out(positions.type(), {});
  const Value stretch =
      sub(s, mul(s, cast(s, length, DataType::float32), rope.ntk_factor / static_cast<double>(rope.limit)),
          rope.ntk_factor - 1);
  const double dims = static_cast<double>(rope.dims);
  const Value base = mul(s, pow(s, stretch, dims / (dims - 2)), rope.base);
  std::vector<float> exponents;
  for (std::int64_t i = 0; i < rope.dims; i += 2)
    exponents.push_back(-static_cast<float>(i) / static_cast<float>(dims));
  return Op(s, "Pow", {base, table("exponents", exponents)}).out(DataType::float32, static_shape({rope.dims / 2}));
}

}  // namespace

Angles angles(const Scope& s, const Rope& rope, Value positions, std::int64_t longest) {
  if (!positions) return {};
  const Value at = unsqueeze(s, unsqueeze(s, cast(s, positions, DataType::float32), 1), 3);
  const Value half = mul(s, at, frequencies(s, rope, positions, longest));
  const Value all = concat(s, {half, half}, -1);
  const auto finished = [&](const char* function) {
    Value value = unary(s, function, all);
    if (rope.amplitude != 1) value = mul(s, value, rope.amplitude);
    return cast(s, value, s.builder().float_type());
  };
  const Value cos = finished("Cos");
  return {cos, finished("Sin")};
}

Value rotate(const Scope& s, Value x, const Angles& by) {
  if (!x || !by.cos) return {};
  const std::int64_t dims = by.cos.dim(-1).value, size = x.dim(-1).value;
  const Value turning = dims < size ? slice(s, x, -1, 0, dims) : x;
  const Value first = slice(s, turning, -1, 0, dims / 2), second = slice(s, turning, -1, dims / 2, dims);
  const Value quarter_turn = concat(s, {unary(s, "Neg", second), first}, -1);
  const Value turned = add(s, mul(s, turning, by.cos), mul(s, quarter_turn, by.sin));
  return dims < size ? concat(s, {turned, slice(s, x, -1, dims, size)}, -1) : turned;
}

}  // namespace mk::nn
