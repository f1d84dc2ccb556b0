#include <fmt/format.h>

#include <cmath>

#include "models/detection.h"
#include "models/rt_detr.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

Value conv_norm(const Scope& s, const RtDetrConfig& c, Value x, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride, bool activated) {
  const std::int64_t padding = (kernel - 1) / 2;
  x = conv2d(s["conv"], x,
             {.channels = channels,
              .kernel = {kernel, kernel},
              .stride = {stride, stride},
              .padding = {padding, padding},
              .bias = false});
  x = batch_norm(s["norm"], x, c.batch_norm_eps);
  return activated && !c.activation_function.empty() ? activation(s, "activation", c.activation_function, x) : x;
}

Value rep_vgg(const Scope& s, const RtDetrConfig& c, Value x) {
  const std::string part = c.name("ConvNormLayer");
  const Value y = add(s, conv_norm(s("conv1", part), c, x, c.csp_width, 3, 1, false),
                      conv_norm(s("conv2", part), c, x, c.csp_width, 1, 1, false));
  return c.activation_function.empty() ? y : activation(s, "activation", c.activation_function, y);
}

Value csp_layer(const Scope& s, const RtDetrConfig& c, Value x) {
  const std::string part = c.name("ConvNormLayer");
  Value y = conv_norm(s("conv1", part), c, x, c.csp_width, 1, 1, true);
  constexpr std::int64_t blocks = 3;
  for (std::int64_t i = 0; i < blocks; ++i) y = rep_vgg(s("bottlenecks", i, c.name("RepVggBlock")), c, y);
  y = add(s, y, conv_norm(s("conv2", part), c, x, c.csp_width, 1, 1, true));
  return c.csp_width == c.encoder_hidden_dim ? y : conv_norm(s("conv3", part), c, y, c.encoder_hidden_dim, 1, 1, true);
}

// [1, height * width, encoder_hidden_dim]. The points are numbered column by column, though the map's are row by row:
// so the model was trained.
Value positions(const Scope& s, const RtDetrConfig& c, std::int64_t height, std::int64_t width) {
  if (!expect_affordable(s, height * width, c.encoder_hidden_dim)) return {};
  const std::int64_t quarter = c.encoder_hidden_dim / 4;
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(height * width * c.encoder_hidden_dim));
  std::vector<float> omega;
  for (std::int64_t i = 0; i < quarter; ++i)
    omega.push_back(1.0F / std::pow(static_cast<float>(c.positional_encoding_temperature),
                                    static_cast<float>(i) / static_cast<float>(quarter)));
  for (std::int64_t x = 0; x < width; ++x)
    for (std::int64_t y = 0; y < height; ++y)
      for (const std::int64_t at : {x, y}) {
        for (const float w : omega) values.push_back(std::sin(static_cast<float>(at) * w));
        for (const float w : omega) values.push_back(std::cos(static_cast<float>(at) * w));
      }
  return float_constant(s, fmt::format("positions_{}x{}", height, width), {1, height * width, c.encoder_hidden_dim},
                        values);
}

Value layer(const Scope& s, const RtDetrConfig& c, Value x, Value places) {
  const Scope attention = s("self_attn", c.name("MultiheadAttention"));
  const auto attend = [&](Value y) {
    const Value query = add(attention, y, places);
    return detection_attention(attention, c.encoder_attention_heads, query, query, y);
  };
  const auto norm = [&](const char* name, Value y) { return layer_norm(s[name], y, c.layer_norm_eps); };
  const auto feed = [&](Value y) {
    y = activation(s, "activation_fn", c.encoder_activation_function, linear(s["fc1"], y, c.encoder_ffn_dim));
    return linear(s["fc2"], y, c.encoder_hidden_dim);
  };
  if (!c.normalize_before) {
    x = norm("self_attn_layer_norm", add(s, x, attend(x)));
    return norm("final_layer_norm", add(s, x, feed(x)));
  }
  x = norm("final_layer_norm", add(s, x, attend(norm("self_attn_layer_norm", x))));
  return add(s, x, feed(x));
}

Value on_tokens(const Scope& s, const RtDetrConfig& c, Value map) {
  if (!map) return {};
  const std::int64_t height = map.dim(2).value, width = map.dim(3).value;
  Value x = transpose(s, reshape(s, map, {keep, keep, rest}), {0, 2, 1});
  const Value places = positions(s, c, height, width);
  for (std::int64_t i = 0; i < c.encoder_layers; ++i) x = layer(s("layers", i, c.name("EncoderLayer")), c, x, places);
  return reshape(s, transpose(s, x, {0, 2, 1}), {keep, keep, height, width});
}

// Two maps of one size, channels behind channels.
Value fuse(const Scope& s, Value a, Value b) {
  if (a && b && (a.dim(2) != b.dim(2) || a.dim(3) != b.dim(3))) {
    s.builder().fail(
        {ErrorCode::usage,
         fmt::format("feature maps {} and {} do not fit onto each other", to_string(a.shape()), to_string(b.shape())),
         s.module().path, "Ask for a height and width that are multiples of 32"});
    return {};
  }
  return concat(s, {a, b}, 1);
}

}  // namespace

std::vector<Value> rt_detr_encoder(const Scope& s, const RtDetrConfig& c, std::vector<Value> maps) {
  const std::string conv = c.name("ConvNormLayer"), csp = c.name("CSPRepLayer");
  const std::int64_t width = c.encoder_hidden_dim, steps = static_cast<std::int64_t>(maps.size()) - 1;
  if (c.encoder_layers > 0)
    for (std::size_t i = 0; i < c.encode_proj_layers.size(); ++i) {
      Value& map = maps[static_cast<std::size_t>(c.encode_proj_layers[i])];
      map = on_tokens(s("encoder", static_cast<std::int64_t>(i), c.name("Encoder")), c, map);
    }
  // From the smallest map up, then down again.
  for (std::int64_t i = 0; i < steps; ++i) {
    Value &top = maps[static_cast<std::size_t>(steps - i)], &below = maps[static_cast<std::size_t>(steps - i - 1)];
    top = conv_norm(s("lateral_convs", i, conv), c, top, width, 1, 1, true);
    if (!top) return {};
    const std::array size{2 * top.dim(2).value, 2 * top.dim(3).value};
    below = csp_layer(s("fpn_blocks", i, csp), c, fuse(s, resize(s, top, size, Interpolation::nearest), below));
  }
  for (std::int64_t i = 0; i < steps; ++i) {
    Value &above = maps[static_cast<std::size_t>(i)], &next = maps[static_cast<std::size_t>(i + 1)];
    const Value smaller = conv_norm(s("downsample_convs", i, conv), c, above, width, 3, 2, true);
    next = csp_layer(s("pan_blocks", i, csp), c, fuse(s, smaller, next));
  }
  return maps;
}

}  // namespace mk::models
