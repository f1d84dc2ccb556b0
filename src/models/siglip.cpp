// Zhai et al. 2023, "Sigmoid Loss for Language Image Pre-Training": CLIP's towers without a causal mask or class token.

#include <fmt/format.h>

#include <cmath>

#include "models/clip.h"
#include "models/families.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct SiglipTextConfig : TowerConfig {
  std::int64_t vocab_size = 32000, max_position_embeddings = 64, projection_size = 0;

  static SiglipTextConfig read(const Family&, ConfigReader& fields) {
    ConfigReader own = fields.has("text_config") ? fields.section("text_config") : fields;
    SiglipTextConfig c;
    c.hidden_size = 768, c.intermediate_size = 3072, c.num_hidden_layers = 12, c.num_attention_heads = 12;
    c.hidden_act = "gelu_pytorch_tanh", c.layer_norm_eps = 1e-6;
    c.read_tower("Siglip", own);
    c.vocab_size = own.size("vocab_size", c.vocab_size);
    c.max_position_embeddings = own.size("max_position_embeddings", c.max_position_embeddings);
    c.projection_size = own.size("projection_size", c.hidden_size);
    return c;
  }
};

struct SiglipVisionConfig : TowerConfig {
  std::int64_t num_channels = 3, image_size = 224, patch_size = 16, num_labels = 2;
  bool vision_use_head = true;

  static SiglipVisionConfig read(const Family&, ConfigReader& fields) {
    ConfigReader own = fields.has("vision_config") ? fields.section("vision_config") : fields;
    SiglipVisionConfig c;
    c.hidden_size = 768, c.intermediate_size = 3072, c.num_hidden_layers = 12, c.num_attention_heads = 12;
    c.hidden_act = "gelu_pytorch_tanh", c.layer_norm_eps = 1e-6;
    c.read_tower("Siglip", own);
    c.num_channels = own.size("num_channels", c.num_channels);
    c.image_size = own.size("image_size", c.image_size);
    c.patch_size = own.size("patch_size", c.patch_size);
    c.vision_use_head = own.boolean("vision_use_head", c.vision_use_head);
    c.num_labels = fields.num_labels();
    return c;
  }
  ImageLimits limits() const { return {num_channels, std::array{image_size, image_size}, true}; }
};

Pooled text_tower(const Scope& parent, const SiglipTextConfig& c, const TextInputs& in) {
  const Scope s = parent("text_model", "SiglipTextTransformer");
  const Value tokens = tower_tokens(s("embeddings", "SiglipTextEmbeddings"), in.input_ids, c.vocab_size,
                                    c.max_position_embeddings, c.hidden_size);
  const Value x = tower_encoder(s, c, tokens, additive_mask(s, in.attention_mask));
  const Value states = layer_norm(s["final_layer_norm"], x, c.layer_norm_eps);
  return {states, linear(s["head"], take(s, states, 1, -1), c.projection_size)};
}

// One learned query that attends to all states: [batch, length, hidden_size] -> [batch, hidden_size].
Value attention_pooling(const Scope& s, const SiglipVisionConfig& c, Value x) {
  const std::int64_t width = c.hidden_size, heads = c.num_attention_heads;
  Builder& b = s.builder();
  const Scope a = s["attention"];
  a.is_a("MultiheadAttention");
  const Parameter& weight = a.parameter("in_proj_weight", {3 * width, width});
  const Parameter& bias = a.parameter("in_proj_bias", {3 * width});
  const auto project = [&](Value y, std::int64_t part) {
    y = matmul(a, y, b.transposed_rows(weight, part * width, width));
    return add(a, y, b.rows(bias, part * width, width));
  };
  const Value probe = expand_batch(s, s.weight("probe", {1, 1, width}), x);
  const Value query = split_heads(a, project(probe, 0), heads);
  const Value key = split_keys(a, project(x, 1), heads), value = split_heads(a, project(x, 2), heads);
  const Value scores = mul(a, matmul(a, query, key), 1 / std::sqrt(static_cast<double>(width / heads)));
  const Value y = linear(a["out_proj"], attend(a, scores, {}, value), width);
  const Value normal = layer_norm(s["layernorm"], y, c.layer_norm_eps);
  return take(s, add(s, y, tower_mlp(s("mlp", "SiglipMLP"), c, normal)), 1, 0);
}

// `pooled` is empty where the model has no head.
Pooled vision_tower(const Scope& parent, const SiglipVisionConfig& c, const ImageInputs& in, bool pool) {
  const Scope s = parent("vision_model", "SiglipVisionTransformer");
  expect_image(s, in.pixel_values, c.limits());
  const Scope e = s("embeddings", "SiglipVisionEmbeddings");
  const std::int64_t side = c.image_size / c.patch_size;
  Value x = tower_patches(e, in.pixel_values, c.hidden_size, c.patch_size, true);
  x = add(e, x, first_rows(e["position_embedding"], x, side * side, c.hidden_size));
  const Value states = layer_norm(s["post_layernorm"], tower_encoder(s, c, x, {}), c.layer_norm_eps);
  if (!pool || !c.vision_use_head) return {states, {}};
  return {states, attention_pooling(s("head", "SiglipMultiheadAttentionPoolingHead"), c, states)};
}

Pooled pooled_vision_tower(const Scope& root, const SiglipVisionConfig& c, const ImageInputs& in) {
  const Pooled image = vision_tower(root, c, in, true);
  if (!c.vision_use_head)
    root.builder().fail({ErrorCode::unsupported, "a SigLIP vision tower without a head has no pooler_output",
                         "vision_use_head", "Export a checkpoint whose vision_use_head is true"});
  return image;
}

Outputs text_states(const Scope& root, const SiglipTextConfig& c, const TextInputs& in) {
  const Pooled text = text_tower(root, c, in);
  return {text.states, text.pooled};
}

Outputs image_states(const Scope& root, const SiglipVisionConfig& c, const ImageInputs& in) {
  const Pooled image = pooled_vision_tower(root, c, in);
  return {image.states, image.pooled};
}

Outputs image_classifier(const Scope& root, const SiglipVisionConfig& c, const ImageInputs& in) {
  const Value mean = reduce_mean(root, vision_tower(root, c, in, false).states, {1}, false);
  return {c.num_labels > 0 ? linear(root["classifier"], mean, c.num_labels) : mean};
}

struct SiglipConfig {
  SiglipTextConfig text;
  SiglipVisionConfig vision;
  static SiglipConfig read(const Family& family, ConfigReader& fields) {
    return {SiglipTextConfig::read(family, fields), SiglipVisionConfig::read(family, fields)};
  }
};

Outputs logits(const Scope& root, const SiglipConfig& c, const ImageAndTextInputs& in) {
  const Value image = pooled_vision_tower(root, c.vision, in.image).pooled;
  return contrast(root, image, text_tower(root, c.text, in.text).pooled, true);
}

// Trained on padding without a mask, which is no input unless it is asked for.
Result<std::vector<InputSpec>> text_inputs(InputRequest& request) {
  const SiglipTextConfig c = SiglipTextConfig::read(request.family, request.config);
  MK_TRY(std::vector<InputSpec> inputs, text_input_specs(request, {c.vocab_size, c.max_position_embeddings, 0}));
  inputs.resize(1);
  return inputs;
}

Result<std::vector<InputSpec>> vision_inputs(InputRequest& request) {
  return image_input_specs(request, SiglipVisionConfig::read(request.family, request.config).limits());
}

Result<std::vector<InputSpec>> inputs(InputRequest& request) {
  MK_TRY(std::vector<InputSpec> all, text_inputs(request));
  MK_TRY(const std::vector<InputSpec> image, vision_inputs(request));
  all.push_back(image.front());
  return all;
}

}  // namespace

const Family siglip{
    .model_type = "siglip",
    .stem = "Siglip",
    .prefix = "siglip",
    .inputs = {"input_ids", "pixel_values", "attention_mask"},
    .default_inputs = inputs,
    .heads =
        {
            {"zero-shot-image-classification",
             "Model",
             {"logits_per_image", "logits_per_text", "text_embeds", "image_embeds"},
             head<logits>},
            {"feature-extraction", "TextModel", {"last_hidden_state", "pooler_output"}, head<text_states>, text_inputs},
            {"image-feature-extraction",
             "VisionModel",
             {"last_hidden_state", "pooler_output"},
             head<image_states>,
             vision_inputs},
            {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>, vision_inputs},
        },
    .composites = {{{"zero-shot-image-classification"},
                    {{"image-encoder", "image-feature-extraction", "VisionModel"},
                     {"text-encoder", "feature-extraction", "TextModel"}}}},
};

const Family siglip_text_model{
    .model_type = "siglip_text_model",
    .stem = "SiglipText",
    .prefix = "siglip",
    .inputs = {"input_ids", "attention_mask"},
    .default_inputs = text_inputs,
    .heads = {{"feature-extraction", "Model", {"last_hidden_state", "pooler_output"}, head<text_states>}},
};

const Family siglip_vision_model{
    .model_type = "siglip_vision_model",
    .stem = "SiglipVision",
    .prefix = "siglip",
    .inputs = {"pixel_values"},
    .default_inputs = vision_inputs,
    .heads = {{"image-feature-extraction", "Model", {"last_hidden_state", "pooler_output"}, head<image_states>}},
};

}  // namespace mk::models
