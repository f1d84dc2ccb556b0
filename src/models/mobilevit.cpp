// MobileViT (Mehta and Rastegari 2021) as transformers' MobileViTModel.

#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "models/families.h"
#include "models/image.h"
#include "models/mobile.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr const char* layer_class = "MobileViTConvLayer";

struct MobileViTConfig {
  std::int64_t num_channels = 3;
  std::int64_t image_size = 256;
  std::int64_t patch_size = 2;
  std::vector<std::int64_t> hidden_sizes{144, 192, 240};
  std::vector<std::int64_t> neck_hidden_sizes{16, 32, 64, 96, 128, 160, 640};
  std::int64_t num_attention_heads = 4;
  double mlp_ratio = 2;
  double expand_ratio = 4;
  std::string hidden_act = "silu";
  std::int64_t conv_kernel_size = 3;
  std::int64_t output_stride = 32;
  double layer_norm_eps = 1e-5;
  bool qkv_bias = true;
  std::int64_t num_labels = 2;

  static MobileViTConfig read(const Family&, ConfigReader& fields) {
    MobileViTConfig c;
    c.num_channels = fields.size("num_channels", c.num_channels);
    c.image_size = fields.size("image_size", c.image_size);
    c.patch_size = fields.size("patch_size", c.patch_size);
    c.hidden_sizes = fields.sizes("hidden_sizes", c.hidden_sizes);
    c.neck_hidden_sizes = fields.sizes("neck_hidden_sizes", c.neck_hidden_sizes);
    c.num_attention_heads = fields.size("num_attention_heads", c.num_attention_heads);
    c.mlp_ratio = fields.number("mlp_ratio", c.mlp_ratio);
    c.expand_ratio = fields.number("expand_ratio", c.expand_ratio);
    c.hidden_act = fields.string("hidden_act", c.hidden_act);
    c.conv_kernel_size = fields.size("conv_kernel_size", c.conv_kernel_size);
    c.output_stride = fields.size("output_stride", c.output_stride);
    c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
    c.qkv_bias = fields.boolean("qkv_bias", c.qkv_bias);
    c.num_labels = fields.num_labels();
    if (c.hidden_sizes.size() < 3 || c.neck_hidden_sizes.size() < 7)
      fields.fail(ErrorCode::malformed, fmt::format("hidden_sizes has {} values and neck_hidden_sizes {}, expected 3 "
                                                    "and 7",
                                                    c.hidden_sizes.size(), c.neck_hidden_sizes.size()));
    for (const std::int64_t width : c.hidden_sizes)
      if (width % c.num_attention_heads != 0)
        fields.fail(ErrorCode::malformed, fmt::format("the hidden size {} is not a multiple of num_attention_heads {}",
                                                      width, c.num_attention_heads));
    return c;
  }
};

Value residual_block(const Scope& s, const MobileViTConfig& c, std::int64_t channels, std::int64_t stride,
                     std::int64_t dilation, Value x) {
  if (!x) return {};
  const std::int64_t wanted = rounded(static_cast<double>(x.dim(1).value) * c.expand_ratio);
  return inverted_residual(s,
                           {.layer_class = layer_class,
                            .channels = channels,
                            .expanded = make_divisible(static_cast<double>(wanted), 8, 8),
                            .stride = stride,
                            .dilation = dilation,
                            .act = c.hidden_act},
                           x);
}

Value mobilenet_layer(const Scope& s, const MobileViTConfig& c, std::int64_t channels, std::int64_t stride,
                      std::int64_t blocks, Value x) {
  for (std::int64_t i = 0; i < blocks; ++i)
    x = residual_block(s("layer", i, "MobileViTInvertedResidual"), c, channels, i == 0 ? stride : 1, 1, x);
  return x;
}

Value transformer_layer(const Scope& s, const MobileViTConfig& c, Value x) {
  if (!x) return {};
  const std::int64_t width = x.dim(2).value, heads = c.num_attention_heads;
  const Scope attention = s("attention", "MobileViTAttention"), self = attention("attention", "MobileViTSelfAttention");
  Value y = layer_norm(s["layernorm_before"], x, c.layer_norm_eps);
  const Value query = split_heads(self, linear(self["query"], y, width, c.qkv_bias), heads);
  const Value key = split_keys(self, linear(self["key"], y, width, c.qkv_bias), heads);
  const Value value = split_heads(self, linear(self["value"], y, width, c.qkv_bias), heads);
  const std::int64_t head_size = width / heads;
  y = attend(self, mul(self, matmul(self, query, key), 1 / std::sqrt(static_cast<double>(head_size))), {}, value);
  x = add(s, linear(attention("output", "MobileViTSelfOutput")["dense"], y, width), x);

  const Scope up = s("intermediate", "MobileViTIntermediate"), down = s("output", "MobileViTOutput");
  y = layer_norm(s["layernorm_after"], x, c.layer_norm_eps);
  y = linear(up["dense"], y, static_cast<std::int64_t>(static_cast<double>(width) * c.mlp_ratio));
  y = activation(up, "intermediate_act_fn", c.hidden_act, y);
  return add(down, linear(down["dense"], y, width), x);
}

// Pixels at the same place of every patch attend to each other.
Value transformer(const Scope& s, const MobileViTConfig& c, std::int64_t layers, Value x) {
  if (!x) return {};
  const std::int64_t p = c.patch_size, channels = x.dim(1).value, height = x.dim(2).value, width = x.dim(3).value;
  const std::int64_t rows = (height + p - 1) / p, columns = (width + p - 1) / p, patches = rows * columns;
  x = resize(s, x, {rows * p, columns * p}, Interpolation::bilinear);
  x = transpose(s, reshape(s, x, {rest, p, columns, p}), {0, 2, 1, 3});
  x = transpose(s, reshape(s, x, {rest, channels, patches, p * p}), {0, 3, 2, 1});
  x = reshape(s, x, {rest, patches, channels});
  const Scope layers_scope = s("transformer", "MobileViTTransformer");
  for (std::int64_t i = 0; i < layers; ++i)
    x = transformer_layer(layers_scope("layer", i, "MobileViTTransformerLayer"), c, x);
  x = layer_norm(s["layernorm"], x, c.layer_norm_eps);
  x = transpose(s, reshape(s, x, {rest, p * p, patches, channels}), {0, 3, 2, 1});
  x = transpose(s, reshape(s, x, {rest, columns, p, p}), {0, 2, 1, 3});
  x = reshape(s, x, {rest, channels, rows * p, columns * p});
  return resize(s, x, {height, width}, Interpolation::bilinear);
}

Value vit_layer(const Scope& s, const MobileViTConfig& c, std::size_t index, std::int64_t layers, std::int64_t dilation,
                Value x) {
  const std::int64_t channels = c.neck_hidden_sizes[index + 3];
  x = residual_block(s("downsampling_layer", "MobileViTInvertedResidual"), c, channels, dilation == 1 ? 2 : 1,
                     dilation > 1 ? dilation / 2 : 1, x);
  MobileLayer wide{.channels = channels, .kernel = c.conv_kernel_size, .act = c.hidden_act};
  Value y = mobile_layer(s("conv_kxk", layer_class), wide, x);
  y = mobile_layer(s("conv_1x1", layer_class), {.channels = c.hidden_sizes[index], .normalized = false}, y);
  y = transformer(s, c, layers, y);
  y = mobile_layer(s("conv_projection", layer_class), {.channels = channels, .act = c.hidden_act}, y);
  return mobile_layer(s("fusion", layer_class), wide, concat(s, {x, y}, 1));
}

Value model(const Scope& s, const MobileViTConfig& c, const ImageInputs& in) {
  expect_image(s, in.pixel_values, {.channels = c.num_channels});
  if (!expect_fixed_size(s, in.pixel_values, "patches")) return {};
  Value x = mobile_layer(s("conv_stem", layer_class),
                         {.channels = c.neck_hidden_sizes[0], .kernel = 3, .stride = 2, .act = c.hidden_act},
                         in.pixel_values);
  const Scope encoder = s("encoder", "MobileViTEncoder");
  x = mobilenet_layer(encoder("layer", 0, "MobileViTMobileNetLayer"), c, c.neck_hidden_sizes[1], 1, 1, x);
  x = mobilenet_layer(encoder("layer", 1, "MobileViTMobileNetLayer"), c, c.neck_hidden_sizes[2], 2, 3, x);
  std::int64_t dilation = 1;
  x = vit_layer(encoder("layer", 2, "MobileViTLayer"), c, 0, 2, dilation, x);
  if (c.output_stride == 8) dilation *= 2;
  x = vit_layer(encoder("layer", 3, "MobileViTLayer"), c, 1, 4, dilation, x);
  if (c.output_stride == 8 || c.output_stride == 16) dilation *= 2;
  x = vit_layer(encoder("layer", 4, "MobileViTLayer"), c, 2, 3, dilation, x);
  return mobile_layer(s("conv_1x1_exp", layer_class), {.channels = c.neck_hidden_sizes[6], .act = c.hidden_act}, x);
}

Outputs hidden_states(const Scope& root, const MobileViTConfig& c, const ImageInputs& in) {
  return {model(root, c, in)};
}

Outputs image_classifier(const Scope& root, const MobileViTConfig& c, const ImageInputs& in) {
  const Scope base = root("mobilevit", "MobileViTModel");
  const Value pooled = reduce_mean(base, model(base, c, in), {-2, -1}, false);
  return {c.num_labels > 0 ? linear(root["classifier"], pooled, c.num_labels) : pooled};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const MobileViTConfig c = MobileViTConfig::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = std::array{c.image_size, c.image_size}});
}

}  // namespace

const Family mobilevit{
    .model_type = "mobilevit",
    .stem = "MobileViT",
    .prefix = "mobilevit",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>},
        },
};

}  // namespace mk::models
