#include "models/dinov2.h"

#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"
#include "nn/resample.h"

namespace mk::models {

using namespace nn;

Dinov2Config Dinov2Config::read(const Family& family, ConfigReader& fields) {
  return read(fields, family.stem != "Dinov2");
}

Dinov2Config Dinov2Config::read(ConfigReader& fields, bool with_registers) {
  Dinov2Config c;
  c.stem = with_registers ? "Dinov2WithRegisters" : "Dinov2";
  c.prefix = with_registers ? "dinov2_with_registers" : "dinov2";
  if (with_registers) {
    c.patch_size = {16, 16};
    c.registers = fields.count("num_register_tokens", 4);
  }
  c.hidden_size = fields.size("hidden_size", c.hidden_size);
  c.num_hidden_layers = fields.count("num_hidden_layers", c.num_hidden_layers);
  c.num_attention_heads = fields.size("num_attention_heads", c.num_attention_heads);
  c.mlp_ratio = fields.number("mlp_ratio", c.mlp_ratio);
  c.hidden_act = fields.string("hidden_act", c.hidden_act);
  c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
  c.image_size = fields.pair("image_size", 224);
  c.patch_size = fields.pair("patch_size", c.patch_size[0]);
  c.num_channels = fields.size("num_channels", c.num_channels);
  c.qkv_bias = fields.boolean("qkv_bias", c.qkv_bias);
  c.use_swiglu_ffn = fields.boolean("use_swiglu_ffn", c.use_swiglu_ffn);
  c.num_labels = fields.num_labels();
  c.pruned_heads = fields.pruned_heads(c.num_attention_heads);
  c.stages = backbone_stages(fields, c.num_hidden_layers);
  c.apply_layernorm = fields.boolean("apply_layernorm", c.apply_layernorm);
  c.reshape_hidden_states = fields.boolean("reshape_hidden_states", c.reshape_hidden_states);
  if (!(c.mlp_ratio * static_cast<double>(c.hidden_size) >= 1 && c.mlp_ratio <= 1e4)) {
    fields.fail(ErrorCode::malformed, fmt::format("mlp_ratio is {}", c.mlp_ratio));
    c.mlp_ratio = 4;
  }
  if (c.hidden_size % c.num_attention_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                  c.hidden_size, c.num_attention_heads));
  if (c.image_size[0] < c.patch_size[0] || c.image_size[1] < c.patch_size[1])
    fields.fail(ErrorCode::malformed, "image_size is below patch_size");
  return c;
}

namespace {

// The learned grid, resampled to the patches at hand; the class token's position is before it.
Value positions(const Scope& s, const Dinov2Config& c, Value pixels) {
  const std::int64_t patches = c.image_size[0] / c.patch_size[0] * (c.image_size[1] / c.patch_size[1]);
  const Value table = s.weight("position_embeddings", {1, patches + 1, c.hidden_size});
  if (!expect_fixed_size(s, pixels, "positions")) return {};
  const Dim height = pixels.dim(2), width = pixels.dim(3);
  const std::array to{height.value / c.patch_size[0], width.value / c.patch_size[1]};
  if (to[0] * to[1] == patches && height.value == width.value) return table;
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(patches)));
  if (side * side != patches) {
    s.builder().fail({ErrorCode::unsupported,
                      fmt::format("the {} positions are no square, so that they fit only images of {} x {}", patches,
                                  c.image_size[0], c.image_size[1]),
                      "", ""});
    return {};
  }
  const Value grid = reshape(s, slice(s, table, 1, 1, to_the_end), {patches, c.hidden_size});
  const Value resampled =
      resample(s, grid, {side, side}, to,
               c.registers > 0 || c.stem != "Dinov2" ? Resampling::antialiased_bicubic : Resampling::bicubic);
  return concat(s, {slice(s, table, 1, 0, 1), unsqueeze(s, resampled, 0)}, 1);
}

Value embeddings(const Scope& s, const Dinov2Config& c, Value pixels) {
  const Scope patches = s("patch_embeddings", c.name("PatchEmbeddings"));
  Value x = conv2d(patches["projection"], pixels,
                   {.channels = c.hidden_size, .kernel = c.patch_size, .stride = c.patch_size});
  x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
  x = concat(s, {expand_batch(s, s.weight("cls_token", {1, 1, c.hidden_size}), pixels), x}, 1);
  x = add(s, x, positions(s, c, pixels));
  if (c.registers == 0) return x;
  const Value registers = expand_batch(s, s.weight("register_tokens", {1, c.registers, c.hidden_size}), pixels);
  return concat(s, {slice(s, x, 1, 0, 1), registers, slice(s, x, 1, 1, to_the_end)}, 1);
}

Value self_attention(const Scope& s, const Dinov2Config& c, std::int64_t heads, Value x) {
  const std::int64_t head_size = c.hidden_size / c.num_attention_heads, width = heads * head_size;
  const Value query = split_heads(s, linear(s["query"], x, width, c.qkv_bias), heads);
  const Value key = split_keys(s, linear(s["key"], x, width, c.qkv_bias), heads);
  const Value value = split_heads(s, linear(s["value"], x, width, c.qkv_bias), heads);
  return attend(s, mul(s, matmul(s, query, key), 1 / std::sqrt(static_cast<double>(head_size))), {}, value);
}

Value feed_forward(const Scope& layer, const Dinov2Config& c, Value x) {
  const auto inner = static_cast<std::int64_t>(static_cast<double>(c.hidden_size) * c.mlp_ratio);
  if (!c.use_swiglu_ffn) {
    const Scope s = layer("mlp", c.name("MLP"));
    return linear(s["fc2"], activation(s, "activation", c.hidden_act, linear(s["fc1"], x, inner)), c.hidden_size);
  }
  const Scope s = layer("mlp", c.name("SwiGLUFFN"));
  const std::int64_t width = (inner * 2 / 3 + 7) / 8 * 8;
  x = linear(s["weights_in"], x, 2 * width);
  x = mul(s, activate(s, "silu", slice(s, x, -1, 0, width)), slice(s, x, -1, width, 2 * width));
  return linear(s["weights_out"], x, c.hidden_size);
}

Value layer(const Scope& s, const Dinov2Config& c, std::int64_t index, Value x) {
  const auto scaled = [&](std::string_view scale, Value y) {
    const Scope module = s(scale, c.name("LayerScale"));
    return mul(module, y, module.weight("lambda1", {c.hidden_size}));
  };
  const Scope attention = s("attention", c.name("Attention"));
  Value y = self_attention(attention("attention", c.name("SelfAttention")), c,
                           heads_of(index, c.num_attention_heads, c.pruned_heads),
                           layer_norm(s["norm1"], x, c.layer_norm_eps));
  y = linear(attention("output", c.name("SelfOutput"))["dense"], y, c.hidden_size);
  x = add(s, scaled("layer_scale1", y), x);
  return add(s, scaled("layer_scale2", feed_forward(s, c, layer_norm(s["norm2"], x, c.layer_norm_eps))), x);
}

}  // namespace

std::vector<Value> dinov2_layers(const Scope& s, const Dinov2Config& c, Value pixels) {
  expect_image(s, pixels, {.channels = c.num_channels});
  std::vector<Value> tokens{embeddings(s("embeddings", c.name("Embeddings")), c, pixels)};
  const Scope encoder = s("encoder", c.name("Encoder"));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i)
    tokens.push_back(layer(encoder("layer", i, c.name("Layer")), c, i, tokens.back()));
  return tokens;
}

FeatureMaps dinov2_backbone(const Scope& s, const Dinov2Config& c, Value pixels) {
  const std::vector<Value> tokens = dinov2_layers(s, c, pixels);
  if (!tokens.back()) return {};
  const std::int64_t height = pixels.dim(2).value / c.patch_size[0], width = pixels.dim(3).value / c.patch_size[1];
  FeatureMaps features{{}, c.stages};
  for (const std::int64_t stage : c.stages) {
    Value x = tokens[static_cast<std::size_t>(stage)];
    if (c.apply_layernorm) x = layer_norm(s["layernorm"], x, c.layer_norm_eps);
    if (c.reshape_hidden_states) {
      x = transpose(s, slice(s, x, 1, 1 + c.registers, to_the_end), {0, 2, 1});
      x = reshape(s, x, {keep, keep, height, width});
    }
    features.maps.push_back(x);
  }
  return features;
}

namespace {

Value model(const Scope& s, const Dinov2Config& c, const ImageInputs& in) {
  return layer_norm(s["layernorm"], dinov2_layers(s, c, in.pixel_values).back(), c.layer_norm_eps);
}

Outputs hidden_states(const Scope& root, const Dinov2Config& c, const ImageInputs& in) { return {model(root, c, in)}; }

Outputs image_classifier(const Scope& root, const Dinov2Config& c, const ImageInputs& in) {
  const Value x = model(root(c.prefix, c.name("Model")), c, in);
  const Value mean = reduce_mean(root, slice(root, x, 1, 1 + c.registers, to_the_end), {1}, false);
  const Value pooled = concat(root, {take(root, x, 1, 0), mean}, 1);
  return {c.num_labels > 0 ? linear(root["classifier"], pooled, c.num_labels) : pooled};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const Dinov2Config c = Dinov2Config::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = c.image_size});
}

Family family_of(std::string_view model_type, std::string_view stem) {
  return {
      .model_type = model_type,
      .stem = stem,
      .prefix = model_type,
      .inputs = {"pixel_values"},
      .default_inputs = default_inputs,
      .heads =
          {
              {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
              {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>},
          },
  };
}

}  // namespace

const Family dinov2 = family_of("dinov2", "Dinov2");
const Family dinov2_with_registers = family_of("dinov2_with_registers", "Dinov2WithRegisters");

}  // namespace mk::models
