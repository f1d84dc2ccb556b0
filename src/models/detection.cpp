#include "models/detection.h"

#include <cmath>
#include <string>

#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;
using nn::Value;

Value detection_mlp(const Scope& s, Value x, std::int64_t hidden, std::int64_t features, std::int64_t layers) {
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool last = i == layers - 1;
    x = linear(s["layers." + std::to_string(i)], x, last ? features : hidden);
    if (!last) x = unary(s, "Relu", x);
  }
  return x;
}

Value detection_attention(const Scope& s, std::int64_t heads, Value query, Value key, Value value) {
  if (!query) return {};
  const std::int64_t width = query.dim(-1).value;
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  const Value q = split_heads(s, mul(s, linear(s["q_proj"], query, width), scale), heads);
  const Value k = split_keys(s, linear(s["k_proj"], key, width), heads);
  const Value v = split_heads(s, linear(s["v_proj"], value, width), heads);
  return linear(s["out_proj"], attend(s, matmul(s, q, k), {}, v), width);
}

bool expect_affordable(const Scope& s, std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t most = std::int64_t{1} << 28;
  if (rows > 0 && width > 0 && width <= most / rows) return true;
  s.builder().fail({ErrorCode::malformed,
                    "a constant of " + std::to_string(rows) + " x " + std::to_string(width) + " values is too large",
                    s.module().path, "Ask for a smaller image, or check the widths in the configuration"});
  return false;
}

Value float_constant(const Scope& s, std::string name, std::vector<std::int64_t> dims,
                     const std::vector<float>& values) {
  Builder& b = s.builder();
  return b.constant(std::move(name), b.float_type(), std::move(dims),
                    cast(owned_values(values), DataType::float32, b.float_type()));
}

}  // namespace mk::models
