#include "models/clip.h"

#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

void TowerConfig::read_tower(std::string_view class_stem, ConfigReader& fields) {
  stem = class_stem;
  hidden_size = fields.size("hidden_size", hidden_size);
  intermediate_size = fields.size("intermediate_size", intermediate_size);
  num_hidden_layers = fields.count("num_hidden_layers", num_hidden_layers);
  num_attention_heads = fields.size("num_attention_heads", num_attention_heads);
  hidden_act = fields.string("hidden_act", hidden_act);
  layer_norm_eps = fields.number("layer_norm_eps", layer_norm_eps);
  if (hidden_size % num_attention_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                  hidden_size, num_attention_heads));
}

ConfigReader tower_section(ConfigReader& fields, const std::string& key) {
  // Older files have what the towers were made from beside them, and it wins.
  const std::string original = key + "_dict";
  if (fields.has(original)) return fields.section(original);
  return fields.has(key) ? fields.section(key) : fields;
}

ClipTextConfig ClipTextConfig::read(const Family&, ConfigReader& fields) {
  ConfigReader own = tower_section(fields, "text_config");
  ClipTextConfig c;
  c.hidden_size = 512, c.intermediate_size = 2048, c.num_hidden_layers = 12, c.num_attention_heads = 8;
  c.hidden_act = "quick_gelu", c.layer_norm_eps = 1e-5;
  c.read_tower("CLIP", own);
  c.vocab_size = own.size("vocab_size", c.vocab_size);
  c.max_position_embeddings = own.size("max_position_embeddings", c.max_position_embeddings);
  c.eos_token_id = own.id("eos_token_id", c.eos_token_id);
  c.projection_dim = fields.size("projection_dim", c.projection_dim);
  return c;
}

ClipVisionConfig ClipVisionConfig::read(const Family&, ConfigReader& fields) {
  ConfigReader own = tower_section(fields, "vision_config");
  ClipVisionConfig c;
  c.hidden_size = 768, c.intermediate_size = 3072, c.num_hidden_layers = 12, c.num_attention_heads = 12;
  c.hidden_act = "quick_gelu", c.layer_norm_eps = 1e-5;
  c.read_tower("CLIP", own);
  c.num_channels = own.size("num_channels", c.num_channels);
  c.image_size = own.size("image_size", c.image_size);
  c.patch_size = own.size("patch_size", c.patch_size);
  c.projection_dim = fields.size("projection_dim", c.projection_dim);
  c.num_labels = fields.num_labels();
  return c;
}

namespace {

Value attention(const Scope& s, const TowerConfig& c, Value x, Value mask, Value causal) {
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const Value key = split_keys(s, linear(s["k_proj"], x, width), heads);
  const Value value = split_heads(s, linear(s["v_proj"], x, width), heads);
  const Value query = split_heads(s, linear(s["q_proj"], x, width), heads);
  Value scores = mul(s, matmul(s, query, key), 1 / std::sqrt(static_cast<double>(width / heads)));
  if (causal) scores = add(s, scores, causal);
  return linear(s["out_proj"], attend(s, scores, mask, value), width);
}

}  // namespace

Value tower_mlp(const Scope& s, const TowerConfig& c, Value x) {
  x = activation(s, "activation_fn", c.hidden_act, linear(s["fc1"], x, c.intermediate_size));
  return linear(s["fc2"], x, c.hidden_size);
}

Value tower_encoder(const Scope& s, const TowerConfig& c, Value x, Value mask, Value causal) {
  const Scope encoder = s("encoder", c.name("Encoder"));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = encoder("layers", i, c.name("EncoderLayer"));
    const Value normal = layer_norm(layer["layer_norm1"], x, c.layer_norm_eps);
    x = add(layer, x, attention(layer("self_attn", c.name("Attention")), c, normal, mask, causal));
    const Value more = layer_norm(layer["layer_norm2"], x, c.layer_norm_eps);
    x = add(layer, x, tower_mlp(layer("mlp", c.name("MLP")), c, more));
  }
  return x;
}

Value tower_patches(const Scope& s, Value pixels, std::int64_t width, std::int64_t patch_size, bool bias) {
  const Value patches =
      conv2d(s["patch_embedding"], pixels,
             {.channels = width, .kernel = {patch_size, patch_size}, .stride = {patch_size, patch_size}, .bias = bias});
  return transpose(s, reshape(s, patches, {keep, keep, rest}), {0, 2, 1});
}

Value tower_tokens(const Scope& s, Value input_ids, std::int64_t vocabulary, std::int64_t positions,
                   std::int64_t width) {
  const Value tokens = embedding(s["token_embedding"], input_ids, vocabulary, width);
  return add(s, tokens, first_rows(s["position_embedding"], input_ids, positions, width));
}

Pooled clip_text_tower(const Scope& parent, const ClipTextConfig& c, const TextInputs& in) {
  const Scope s = parent("text_model", c.name("TextTransformer"));
  const Value tokens = tower_tokens(s("embeddings", c.name("TextEmbeddings")), in.input_ids, c.vocab_size,
                                    c.max_position_embeddings, c.hidden_size);
  const Value x = tower_encoder(s, c, tokens, additive_mask(s, in.attention_mask), causal_mask(s, in.input_ids));
  const Value states = layer_norm(s["final_layer_norm"], x, c.layer_norm_eps);

  // The first end token; in models from before it could be chosen, which have 2 here, the largest id.
  constexpr std::int64_t not_chosen = 2;
  Value ends = in.input_ids;
  if (c.eos_token_id != not_chosen) {
    const Value end = s.builder().scalar(ends.type(), static_cast<double>(c.eos_token_id));
    ends = cast(s, equal(s, ends, end), DataType::int32);
  }
  return {states, pick(s, states, first_largest(s, ends, -1, true))};
}

Value clip_vision_states(const Scope& parent, const ClipVisionConfig& c, const ImageInputs& in) {
  const Scope s = parent("vision_model", c.name("VisionTransformer"));
  expect_image(s, in.pixel_values, c.limits());
  const Scope e = s("embeddings", c.name("VisionEmbeddings"));
  const Value patches = tower_patches(e, in.pixel_values, c.hidden_size, c.patch_size, false);
  const Value token = reshape(e, e.weight("class_embedding", {c.hidden_size}), {1, 1, c.hidden_size});
  Value x = concat(e, {expand_batch(e, token, patches), patches}, 1);
  x = add(e, x, first_rows(e["position_embedding"], x, c.side() * c.side() + 1, c.hidden_size));
  return tower_encoder(s, c, layer_norm(s[c.pre_norm], x, c.layer_norm_eps), {});
}

Pooled clip_vision_tower(const Scope& parent, const ClipVisionConfig& c, const ImageInputs& in) {
  const Value states = clip_vision_states(parent, c, in);
  const Scope s = parent("vision_model", c.name("VisionTransformer"));
  return {states, layer_norm(s["post_layernorm"], take(s, states, 1, 0), c.layer_norm_eps)};
}

Value normalized(const Scope& s, Value x) { return div(s, x, reduce(s, "ReduceL2", x, {-1}, true)); }

Outputs contrast(const Scope& s, Value image_embeds, Value text_embeds, bool bias) {
  const Value image = normalized(s, image_embeds), text = normalized(s, text_embeds);
  Value logits = matmul(s, text, transpose(s, image, {1, 0}));
  logits =
      mul(s, logits,
          unary(s, "Exp", s.weight("logit_scale", bias ? std::vector<std::int64_t>{1} : std::vector<std::int64_t>{})));
  if (bias) logits = add(s, logits, s.weight("logit_bias", {1}));
  return {transpose(s, logits, {1, 0}), logits, text, image};
}

ImageAndTextInputs ImageAndTextInputs::read(const Scope& root, HeadContext& context) {
  return {ImageInputs::read(root, context), TextInputs::read(root, context)};
}

namespace {

Value project(const Scope& s, Value x, std::int64_t width) { return linear(s, x, width, false); }

Outputs clip_text_embeds(const Scope& root, const ClipTextConfig& c, const TextInputs& in) {
  const Pooled text = clip_text_tower(root, c, in);
  return {project(root["text_projection"], text.pooled, c.projection_dim), text.states};
}

Outputs clip_text_states(const Scope& root, const ClipTextConfig& c, const TextInputs& in) {
  const Pooled text = clip_text_tower(root, c, in);
  return {text.states, text.pooled};
}

Outputs clip_image_embeds(const Scope& root, const ClipVisionConfig& c, const ImageInputs& in) {
  const Pooled image = clip_vision_tower(root, c, in);
  return {project(root["visual_projection"], image.pooled, c.projection_dim), image.states};
}

Outputs clip_image_states(const Scope& root, const ClipVisionConfig& c, const ImageInputs& in) {
  const Pooled image = clip_vision_tower(root, c, in);
  return {image.states, image.pooled};
}

Outputs clip_image_classifier(const Scope& root, const ClipVisionConfig& c, const ImageInputs& in) {
  const Value states = clip_vision_tower(root, c, in).states;
  const Value mean = reduce_mean(root, slice(root, states, 1, 1, to_the_end), {1}, false);
  return {c.num_labels > 0 ? linear(root["classifier"], mean, c.num_labels) : mean};
}

struct ClipConfig {
  ClipTextConfig text;
  ClipVisionConfig vision;
  static ClipConfig read(const Family& family, ConfigReader& fields) {
    return {ClipTextConfig::read(family, fields), ClipVisionConfig::read(family, fields)};
  }
};

Outputs clip_logits(const Scope& root, const ClipConfig& c, const ImageAndTextInputs& in) {
  const Value image = clip_vision_tower(root, c.vision, in.image).pooled;
  const Value text = clip_text_tower(root, c.text, in.text).pooled;
  return contrast(root, project(root["visual_projection"], image, c.vision.projection_dim),
                  project(root["text_projection"], text, c.text.projection_dim), false);
}

Result<std::vector<InputSpec>> clip_text_inputs(InputRequest& request) {
  const ClipTextConfig c = ClipTextConfig::read(request.family, request.config);
  return text_input_specs(request, c.limits());
}

Result<std::vector<InputSpec>> clip_vision_inputs(InputRequest& request) {
  const ClipVisionConfig c = ClipVisionConfig::read(request.family, request.config);
  return image_input_specs(request, c.limits());
}

Result<std::vector<InputSpec>> clip_inputs(InputRequest& request) {
  MK_TRY(std::vector<InputSpec> inputs, clip_text_inputs(request));
  MK_TRY(const std::vector<InputSpec> image, clip_vision_inputs(request));
  inputs.insert(inputs.begin() + 1, image.front());
  return inputs;
}

}  // namespace

const Family clip{
    .model_type = "clip",
    .stem = "CLIP",
    .prefix = "clip",
    .inputs = {"input_ids", "pixel_values", "attention_mask"},
    .default_inputs = clip_inputs,
    .heads =
        {
            {"zero-shot-image-classification",
             "Model",
             {"logits_per_image", "logits_per_text", "text_embeds", "image_embeds"},
             head<clip_logits>},
            {"feature-extraction",
             "TextModelWithProjection",
             {"text_embeds", "last_hidden_state"},
             head<clip_text_embeds>,
             clip_text_inputs},
            {"image-feature-extraction",
             "VisionModelWithProjection",
             {"image_embeds", "last_hidden_state"},
             head<clip_image_embeds>,
             clip_vision_inputs},
            {"image-classification",
             "ForImageClassification",
             {"logits"},
             head<clip_image_classifier>,
             clip_vision_inputs},
        },
    .composites = {{{"zero-shot-image-classification"},
                    {{"image-encoder", "image-feature-extraction", "VisionModelWithProjection"},
                     {"text-encoder", "feature-extraction", "TextModelWithProjection"}}}},
};

const Family clip_text_model{
    .model_type = "clip_text_model",
    .stem = "CLIPText",
    .prefix = "clip",
    .inputs = {"input_ids", "attention_mask"},
    .default_inputs = clip_text_inputs,
    .heads =
        {
            {"feature-extraction", "ModelWithProjection", {"text_embeds", "last_hidden_state"}, head<clip_text_embeds>},
            {"feature-extraction", "Model", {"last_hidden_state", "pooler_output"}, head<clip_text_states>},
        },
};

const Family clip_vision_model{
    .model_type = "clip_vision_model",
    .stem = "CLIPVision",
    .prefix = "clip",
    .inputs = {"pixel_values"},
    .default_inputs = clip_vision_inputs,
    .heads =
        {
            {"image-feature-extraction",
             "ModelWithProjection",
             {"image_embeds", "last_hidden_state"},
             head<clip_image_embeds>},
            {"image-feature-extraction", "Model", {"last_hidden_state", "pooler_output"}, head<clip_image_states>},
        },
};

}  // namespace mk::models
