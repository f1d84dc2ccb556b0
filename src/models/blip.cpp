#include "models/blip.h"

#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "models/seq2seq.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

BlipVisionConfig BlipVisionConfig::read(const Family&, ConfigReader& fields) {
  ConfigReader own = fields.section("vision_config");
  BlipVisionConfig c;
  c.hidden_size = 768, c.intermediate_size = 3072, c.num_hidden_layers = 12, c.num_attention_heads = 12;
  c.hidden_act = "gelu", c.layer_norm_eps = 1e-5;
  c.read_tower("Blip", own);
  c.image_size = own.size("image_size", c.image_size);
  c.patch_size = own.size("patch_size", c.patch_size);
  return c;
}

BlipTextConfig BlipTextConfig::read(const Family& family, ConfigReader& fields) {
  ConfigReader own = fields.section("text_config");
  BlipTextConfig c;
  const auto size = [&](std::string_view key, std::int64_t& field) { field = own.size(key, field); };
  size("vocab_size", c.vocab_size);
  size("hidden_size", c.hidden_size);
  size("intermediate_size", c.intermediate_size);
  c.num_hidden_layers = own.count("num_hidden_layers", c.num_hidden_layers);
  size("num_attention_heads", c.num_attention_heads);
  size("max_position_embeddings", c.max_position_embeddings);
  c.hidden_act = own.string("hidden_act", c.hidden_act);
  c.layer_norm_eps = own.number("layer_norm_eps", c.layer_norm_eps);
  c.tie_word_embeddings = own.boolean("tie_word_embeddings", c.tie_word_embeddings);
  c.encoder_hidden_size = BlipVisionConfig::read(family, fields).hidden_size;
  const std::string positions = own.string("position_embedding_type", "absolute");
  c.absolute_positions = positions == "absolute";
  if (c.hidden_size % c.num_attention_heads != 0)
    own.fail(ErrorCode::malformed,
             fmt::format("hidden_size {} of the text_config is not a multiple of num_attention_heads {}", c.hidden_size,
                         c.num_attention_heads));
  if (positions.starts_with("relative_key"))
    own.fail(ErrorCode::unsupported,
             fmt::format("position_embedding_type \"{}\" has no meaning between tokens and an image", positions));
  if (!own.boolean("is_decoder", true))
    own.fail(ErrorCode::unsupported, "a text_config with is_decoder false attends to no image");
  if (own.has("pruned_heads") && !own.pruned_heads(c.num_attention_heads).empty())
    own.fail(ErrorCode::unsupported, "pruned_heads of a text_config are not supported");
  return c;
}

namespace {

Value vision_attention(const Scope& s, const BlipVisionConfig& c, Value x) {
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const Value all = linear(s["qkv"], x, 3 * width);
  const auto part = [&](std::int64_t index) { return slice(s, all, 2, index * width, (index + 1) * width); };
  const Value scores = matmul(s, split_heads(s, part(0), heads), split_keys(s, part(1), heads));
  const Value scaled = mul(s, scores, 1 / std::sqrt(static_cast<double>(width / heads)));
  return linear(s["projection"], attend(s, scaled, {}, split_heads(s, part(2), heads)), width);
}

}  // namespace

Value blip_vision_model(const Scope& parent, const BlipVisionConfig& c, const ImageInputs& in) {
  const Scope s = parent("vision_model", "BlipVisionModel");
  expect_image(s, in.pixel_values, c.limits());
  const Scope e = s("embeddings", "BlipVisionEmbeddings");
  const Value patches = tower_patches(e, in.pixel_values, c.hidden_size, c.patch_size, true);
  const Value token = expand_batch(e, e.weight("class_embedding", {1, 1, c.hidden_size}), patches);
  const Value positions = e.weight("position_embedding", {1, c.side() * c.side() + 1, c.hidden_size});
  Value x = add(e, concat(e, {token, patches}, 1), positions);

  const Scope encoder = s("encoder", "BlipEncoder");
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = encoder("layers", i, "BlipEncoderLayer");
    const Value normal = layer_norm(layer["layer_norm1"], x, c.layer_norm_eps);
    x = add(layer, vision_attention(layer("self_attn", "BlipAttention"), c, normal), x);
    const Value more = layer_norm(layer["layer_norm2"], x, c.layer_norm_eps);
    x = add(layer, tower_mlp(layer("mlp", "BlipMLP"), c, more), x);
  }
  return layer_norm(s["post_layernorm"], x, c.layer_norm_eps);
}

namespace {

Value embeddings(const Scope& s, const BlipTextConfig& c, const BlipTokens& in) {
  Value x = embedding(s["word_embeddings"], in.input_ids, c.vocab_size, c.hidden_size);
  const Scope table = s["position_embeddings"];
  const auto positions = [&] {
    return in.position_ids ? embedding(table, in.position_ids, c.max_position_embeddings, c.hidden_size)
                           : first_rows(table, in.input_ids, c.max_position_embeddings, c.hidden_size);
  };
  if (c.absolute_positions) x = add(s, x, positions());
  return layer_norm(s["LayerNorm"], x, c.layer_norm_eps);
}

// To `from`, which is x itself or the image; through the cache where there is one.
Value attention(const Scope& s, const BlipTextConfig& c, Value x, Value from, Value mask, StepCache* cache,
                std::int64_t layer) {
  const Scope self = s("self", "BlipTextSelfAttention"), output = s("output", "BlipTextSelfOutput");
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  const Value query = mul(self, linear(self["query"], x, width), scale);
  const Value key = linear(self["key"], from, width), value = linear(self["value"], from, width);
  Value y;
  if (cache)
    y = attend_step(self, *cache, static_cast<std::size_t>(layer), heads, query, key, value);
  else
    y = attend(self, matmul(self, split_heads(self, query, heads), split_keys(self, key, heads)), mask,
               split_heads(self, value, heads));
  y = linear(output["dense"], y, width);
  return layer_norm(output["LayerNorm"], add(output, y, x), c.layer_norm_eps);
}

Value language_head(const Scope& parent, const BlipTextConfig& c, Value x) {
  const Scope s = parent("cls", "BlipTextOnlyMLMHead")("predictions", "BlipTextLMPredictionHead");
  const Scope transform = s("transform", "BlipTextPredictionHeadTransform");
  x = activation(transform, "transform_act_fn", c.hidden_act, linear(transform["dense"], x, c.hidden_size));
  return linear(s["decoder"], layer_norm(transform["LayerNorm"], x, c.layer_norm_eps), c.vocab_size);
}

}  // namespace

Value blip_text_decoder(const Scope& root, const BlipTextConfig& c, const BlipTokens& in) {
  const Scope s = root("text_decoder", "BlipTextLMHeadModel"), model = s("bert", "BlipTextModel");
  if (c.tie_word_embeddings)
    root.tie("text_decoder.cls.predictions.decoder.weight", "text_decoder.bert.embeddings.word_embeddings.weight");
  root.tie("text_decoder.cls.predictions.decoder.bias", "text_decoder.cls.predictions.bias");
  Value x = embeddings(model("embeddings", "BlipTextEmbeddings"), c, in);
  const Scope encoder = model("encoder", "BlipTextEncoder");
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = encoder("layer", i, "BlipTextLayer");
    x = attention(layer("attention", "BlipTextAttention"), c, x, x, in.mask, in.cache, i);
    x = attention(layer("crossattention", "BlipTextAttention"), c, x, in.image, {}, nullptr, i);
    const Scope up = layer("intermediate", "BlipTextIntermediate"), down = layer("output", "BlipTextOutput");
    Value y = activation(up, "intermediate_act_fn", c.hidden_act, linear(up["dense"], x, c.intermediate_size));
    y = linear(down["dense"], y, c.hidden_size);
    x = layer_norm(down["LayerNorm"], add(down, y, x), c.layer_norm_eps);
  }
  return language_head(s, c, x);
}

namespace {

Outputs captioning(const Scope& root, const BlipConfig& c, const ImageAndTextInputs& in) {
  const Value image = blip_vision_model(root, c.vision, in.image);
  const Scope s = root("text_decoder", "BlipTextLMHeadModel")("bert", "BlipTextModel");
  Value mask = causal_mask(s, in.text.input_ids);
  if (in.text.attention_mask) mask = add(s, mask, additive_mask(s, in.text.attention_mask));
  return {blip_text_decoder(root, c.text, {.input_ids = in.text.input_ids, .mask = mask, .image = image})};
}

Outputs image_states(const Scope& root, const BlipConfig& c, const ImageInputs& in) {
  return {blip_vision_model(root, c.vision, in)};
}

Outputs decoder_step(const Scope& root, const BlipConfig& c, const StepInputs& in) {
  if (!in.needs_position(root)) return {};
  const Scope s = root("text_decoder", "BlipTextLMHeadModel")("bert", "BlipTextModel");
  const BlipTextConfig& t = c.text;
  StepCache cache = in.cache(s, t.num_hidden_layers, t.num_attention_heads, t.hidden_size / t.num_attention_heads);
  if (!root.builder().ok()) return {};
  return step_outputs(blip_text_decoder(root, t,
                                        {.input_ids = in.input_ids,
                                         .position_ids = in.position,
                                         .mask = {},
                                         .image = in.encoder_states,
                                         .cache = &cache}),
                      cache);
}

Result<std::vector<InputSpec>> image_inputs(InputRequest& request) {
  return image_input_specs(request, BlipVisionConfig::read(request.family, request.config).limits());
}

Result<std::vector<InputSpec>> step_inputs(InputRequest& request) {
  const BlipConfig c = BlipConfig::read(request.family, request.config);
  return step_input_specs(request, {.vocabulary = c.text.vocab_size,
                                    .layers = c.text.num_hidden_layers,
                                    .heads = c.text.num_attention_heads,
                                    .size = c.text.hidden_size / c.text.num_attention_heads,
                                    .capacity = c.text.max_position_embeddings,
                                    .states = c.vision.side() * c.vision.side() + 1,
                                    .states_width = c.vision.hidden_size,
                                    .encoder_mask = false});
}

std::int64_t decoder_layers(ConfigReader& fields) {
  return fields.section("text_config").count("num_hidden_layers", BlipTextConfig{}.num_hidden_layers);
}

Result<std::vector<InputSpec>> captioning_inputs(InputRequest& request) {
  const BlipConfig c = BlipConfig::read(request.family, request.config);
  MK_TRY(std::vector<InputSpec> inputs, image_input_specs(request, c.vision.limits()));
  MK_TRY(const std::vector<InputSpec> text,
         text_input_specs(request, {c.text.vocab_size, c.text.max_position_embeddings, 0}));
  inputs.insert(inputs.end(), text.begin(), text.end());
  return inputs;
}

}  // namespace

const Family blip{
    .model_type = "blip",
    .stem = "Blip",
    .prefix = "blip",
    .inputs = {"pixel_values", "input_ids", "attention_mask", "decoder_input_ids", "encoder_hidden_states",
               "decoder_attention_mask", "cache_position", "past_{}_key", "past_{}_value"},
    .default_inputs = captioning_inputs,
    .heads =
        {
            {"image-text-to-text", "ForConditionalGeneration", {"logits"}, head<captioning>},
            {"image-to-text", "ForConditionalGeneration", {"logits"}, head<captioning>},
            {"image-feature-extraction",
             "ForConditionalGeneration",
             {"encoder_hidden_states"},
             head<image_states>,
             image_inputs},
            {decoder_task, "ForConditionalGeneration", step_output_names(), head<decoder_step>, step_inputs},
        },
    .composites = pair_of({"image-to-text"}, "ForConditionalGeneration", "image-feature-extraction"),
    .cached_layers = decoder_layers,
};

}  // namespace mk::models
