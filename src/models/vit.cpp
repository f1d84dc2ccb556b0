#include "models/vit.h"

#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

ViTConfig ViTConfig::read(const Family& family, ConfigReader& fields) {
  ViTConfig c;
  c.stem = family.stem;
  c.prefix = family.prefix;
  c.hidden_size = fields.size("hidden_size", c.hidden_size);
  c.num_hidden_layers = fields.count("num_hidden_layers", c.num_hidden_layers);
  c.num_attention_heads = fields.size("num_attention_heads", c.num_attention_heads);
  c.intermediate_size = fields.size("intermediate_size", c.intermediate_size);
  c.image_size = fields.pair("image_size", 224);
  c.patch_size = fields.pair("patch_size", 16);
  c.num_channels = fields.size("num_channels", c.num_channels);
  c.num_labels = fields.num_labels();
  c.hidden_act = fields.string("hidden_act", c.hidden_act);
  c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
  c.qkv_bias = fields.boolean("qkv_bias", c.qkv_bias);
  c.pruned_heads = fields.pruned_heads(c.num_attention_heads);
  if (c.hidden_size % c.num_attention_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                  c.hidden_size, c.num_attention_heads));
  return c;
}

namespace {

// [batch, channels, height, width] -> [batch, patches, hidden_size]
Value patch_embeddings(const Scope& s, const ViTConfig& c, Value pixels) {
  const Value patches =
      conv2d(s["projection"], pixels, {.channels = c.hidden_size, .kernel = c.patch_size, .stride = c.patch_size});
  return transpose(s, reshape(s, patches, {keep, keep, rest}), {0, 2, 1});
}

Value embeddings(const Scope& s, const ViTConfig& c, Value pixels) {
  const Value patches = patch_embeddings(s("patch_embeddings", c.name("PatchEmbeddings")), c, pixels);
  const auto token = [&](const char* name) { return expand_batch(s, s.weight(name, {1, 1, c.hidden_size}), pixels); };
  const Value x = c.distillation_token ? concat(s, {token("cls_token"), token("distillation_token"), patches}, 1)
                                       : concat(s, {token("cls_token"), patches}, 1);
  return add(s, x, s.weight("position_embeddings", {1, x.dim(1).value, c.hidden_size}));
}

Value self_attention(const Scope& s, const ViTConfig& c, std::int64_t heads, Value x) {
  const std::int64_t head_size = c.hidden_size / c.num_attention_heads, width = heads * head_size;
  const Value query = split_heads(s, linear(s["query"], x, width, c.qkv_bias), heads);
  const Value key = split_keys(s, linear(s["key"], x, width, c.qkv_bias), heads);
  const Value value = split_heads(s, linear(s["value"], x, width, c.qkv_bias), heads);
  const Value scores = mul(s, matmul(s, query, key), 1 / std::sqrt(static_cast<double>(head_size)));
  return attend(s, scores, {}, value);
}

}  // namespace

Value vit_attention(const Scope& s, const ViTConfig& c, std::int64_t index, Value x) {
  const std::string self = c.self_attention.empty() ? c.name("SelfAttention") : c.self_attention;
  x = self_attention(s("attention", self), c, heads_of(index, c.num_attention_heads, c.pruned_heads), x);
  return linear(s("output", c.name("SelfOutput"))["dense"], x, c.hidden_size);
}

Value vit_layer(const Scope& s, const ViTConfig& c, std::int64_t index, Value x) {
  Value y = layer_norm(s["layernorm_before"], x, c.layer_norm_eps);
  x = add(s, vit_attention(s("attention", c.name("Attention")), c, index, y), x);

  const Scope up = s("intermediate", c.name("Intermediate")), down = s("output", c.name("Output"));
  y = linear(up["dense"], layer_norm(s["layernorm_after"], x, c.layer_norm_eps), c.intermediate_size);
  y = activation(up, "intermediate_act_fn", c.hidden_act, y);
  return add(down, linear(down["dense"], y, c.hidden_size), x);
}

Value vit_encoder(const Scope& s, const ViTConfig& c, Value x) {
  const Scope encoder = s("encoder", c.name("Encoder"));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) x = vit_layer(encoder("layer", i, c.name("Layer")), c, i, x);
  return x;
}

Value vit_model(const Scope& s, const ViTConfig& c, const ImageInputs& in) {
  expect_image(s, in.pixel_values, c.limits());
  const Value x = vit_encoder(s, c, embeddings(s("embeddings", c.name("Embeddings")), c, in.pixel_values));
  return layer_norm(s["layernorm"], x, c.layer_norm_eps);
}

Scope vit_base(const Scope& root, const ViTConfig& c) { return root(c.prefix, c.name("Model")); }

Value vit_classifier(const Scope& s, Value x, std::int64_t labels) { return labels > 0 ? linear(s, x, labels) : x; }

Outputs vit_hidden_states(const Scope& root, const ViTConfig& c, const ImageInputs& in) {
  return {vit_model(root, c, in)};
}

Outputs vit_image_classifier(const Scope& root, const ViTConfig& c, const ImageInputs& in) {
  const Value x = vit_model(vit_base(root, c), c, in);
  return {vit_classifier(root["classifier"], take(root, x, 1, 0), c.num_labels)};
}

Result<std::vector<InputSpec>> vit_inputs(InputRequest& request) {
  const ViTConfig c = ViTConfig::read(request.family, request.config);
  return image_input_specs(request, c.limits());
}

const Family vit{
    .model_type = "vit",
    .stem = "ViT",
    .prefix = "vit",
    .inputs = {"pixel_values"},
    .default_inputs = vit_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<vit_hidden_states>},
            {"image-classification", "ForImageClassification", {"logits"}, head<vit_image_classifier>},
        },
};

}  // namespace mk::models
