// Minderer et al. 2022, "Simple Open-Vocabulary Object Detection with Vision Transformers", and its successor OWLv2
// (2023): CLIP's towers, and heads that score each patch against each text and place a box at it.

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "models/clip.h"
#include "models/families.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr std::int64_t largest_id_ends = 2;  // as ClipTextConfig's eos_token_id says it

struct OwlConfig {
  std::string_view stem, prefix;
  ClipTextConfig text;
  ClipVisionConfig vision;
  std::int64_t projection_dim = 512;

  static OwlConfig read(const Family& family, ConfigReader& fields) {
    OwlConfig c{.stem = family.stem, .prefix = family.prefix, .text = {}, .vision = {}};
    ConfigReader text = fields.section("text_config"), vision = fields.section("vision_config");
    c.text.hidden_size = 512, c.text.intermediate_size = 2048, c.text.num_hidden_layers = 12;
    c.text.num_attention_heads = 8, c.text.hidden_act = "quick_gelu", c.text.layer_norm_eps = 1e-5;
    c.text.read_tower(c.stem, text);
    c.text.vocab_size = text.size("vocab_size", c.text.vocab_size);
    c.text.max_position_embeddings = text.size("max_position_embeddings", 16);
    c.text.eos_token_id = largest_id_ends;
    c.vision.hidden_size = 768, c.vision.intermediate_size = 3072, c.vision.num_hidden_layers = 12;
    c.vision.num_attention_heads = 12, c.vision.hidden_act = "quick_gelu", c.vision.layer_norm_eps = 1e-5;
    c.vision.read_tower(c.stem, vision);
    c.vision.num_channels = vision.size("num_channels", c.vision.num_channels);
    c.vision.image_size = vision.size("image_size", 768);
    c.vision.patch_size = vision.size("patch_size", c.stem == "OwlViT" ? 32 : 16);
    c.vision.pre_norm = "pre_layernorm";
    c.projection_dim = fields.size("projection_dim", c.projection_dim);
    return c;
  }
  std::string name(std::string_view suffix) const { return std::string(stem) + std::string(suffix); }
};

Value text_embeds(const Scope& model, const OwlConfig& c, const TextInputs& in) {
  return linear(model["text_projection"], clip_text_tower(model, c.text, in).pooled, c.projection_dim, false);
}

// What boxes are before anything is learned: a patch each. [patches, 4], as logits of centre and size. In float32, in
// which the logit of 1 is what rounding leaves of it.
Value box_bias(const Scope& root, const OwlConfig& c) {
  Builder& b = root.builder();
  const std::int64_t side = c.vision.side(), patches = side * side;
  const auto positions = b.weights().dims(std::string(c.prefix) + ".vision_model.embeddings.position_embedding.weight");
  if (!positions || positions->empty() || positions->front() != patches + 1) return {};  // told of as misshapen
  const auto logit = [](float x) { return std::log(x + 1e-4F) - std::log1p(-x + 1e-4F); };
  const auto share = [&](std::int64_t part) { return static_cast<float>(part) / static_cast<float>(side); };
  std::vector<float> values;
  for (std::int64_t row = 0; row < side; ++row)
    for (std::int64_t column = 0; column < side; ++column)
      values.insert(values.end(), {logit(share(column + 1)), logit(share(row + 1)), logit(share(1)), logit(share(1))});
  return b.initializer(
      {"box_bias", b.float_type(), {patches, 4}, cast(owned_values(values), DataType::float32, b.float_type())});
}

Value boxes(const Scope& s, const OwlConfig& c, Value x) {
  const std::int64_t width = c.vision.hidden_size;
  x = activate(s["gelu"], "gelu", linear(s["dense0"], x, width));
  x = activate(s["gelu"], "gelu", linear(s["dense1"], x, width));
  return linear(s["dense2"], x, 4);
}

// Of nearly length 1, and finite where it has none.
Value nearly_normalized(const Scope& s, Value x) {
  return div(s, x, add(s, reduce(s, "ReduceL2", x, {-1}, true), 1e-6));
}

// Scores of patches [batch, patches, width] against queries [batch, queries, projection_dim].
Value scores(const Scope& s, const OwlConfig& c, Value patches, Value queries) {
  const Value classes = nearly_normalized(s, linear(s["dense0"], patches, c.text.hidden_size));
  const Value x = matmul(s, classes, transpose(s, nearly_normalized(s, queries), {0, 2, 1}));
  const Value shift = linear(s["logit_shift"], patches, 1);
  const Value scale = linear(s["logit_scale"], patches, 1);
  return mul(s, add(s, x, shift), add(s, unary(s["elu"], "Elu", scale), 1));
}

// [batch * n, ...] -> [batch, n, ...] with the batch of `like`.
Value in_batches(const Scope& s, Value x, Value like) {
  if (!x || !like) return {};
  std::vector<std::int64_t> sizes{like.dim(0).value, rest};
  Shape shape{like.dim(0), Dim{}};
  for (int axis = 1; axis < x.rank(); ++axis) {
    sizes.push_back(x.dim(axis).value);
    shape.push_back(x.dim(axis));
  }
  if (like.dim(0).is_known()) return reshape(s, x, std::move(sizes));
  sizes.erase(sizes.begin());
  const Value target = concat(s, {size(s, like, 0), s.builder().integers(std::move(sizes))}, 0);
  return Op(s, "Reshape", {x, target}).out(x.type(), std::move(shape));
}

Outputs detection(const Scope& root, const OwlConfig& c, const ImageAndTextInputs& in) {
  Builder& b = root.builder();
  const Scope model = root(c.prefix, c.name("Model"));
  const Scope vision = model("vision_model", c.name("VisionTransformer"));
  const Value states =
      layer_norm(vision["post_layernorm"], clip_vision_states(model, c.vision, in.image), c.vision.layer_norm_eps);
  Value image = mul(root, slice(root, states, 1, 1, to_the_end), slice(root, states, 1, 0, 1));
  image = layer_norm(root["layer_norm"], image, c.vision.layer_norm_eps);
  const Value text = in_batches(root, normalized(model, text_embeds(model, c, in.text)), image);

  const Value classes = scores(root("class_head", c.name("ClassPredictionHead")), c, image, text);
  // A text that begins with 0 is padding.
  const Value first = in_batches(root, take(root, in.text.input_ids, 1, 0), image);
  const Value zero = first ? b.scalar(first.type(), 0) : Value();
  const Value there = unsqueeze(root, zero ? greater(root, first, zero) : Value(), 1);
  const Value lowest = b.scalar(b.float_type(), b.mask_value());
  const Value logits = where(root, there, classes, lowest);

  const Value bias = box_bias(root, c);
  const Value placed = boxes(root("box_head", c.name("BoxPredictionHead")), c, image);
  const Value pred_boxes = unary(root["sigmoid"], "Sigmoid", add(root, placed, bias));
  const std::int64_t side = c.vision.side();
  return {logits, pred_boxes, text, reshape(root, image, {keep, side, side, c.vision.hidden_size})};
}

Outputs similarity(const Scope& root, const OwlConfig& c, const ImageAndTextInputs& in) {
  const Value image = clip_vision_tower(root, c.vision, in.image).pooled;
  return contrast(root, linear(root["visual_projection"], image, c.projection_dim, false),
                  text_embeds(root, c, in.text), false);
}

Result<std::vector<InputSpec>> inputs(InputRequest& request) {
  const OwlConfig c = OwlConfig::read(request.family, request.config);
  MK_TRY(std::vector<InputSpec> all, text_input_specs(request, c.text.limits()));
  MK_TRY(const std::vector<InputSpec> image, image_input_specs(request, c.vision.limits()));
  all.insert(all.begin() + 1, image.front());
  return all;
}

std::vector<Head> heads() {
  return {
      {"zero-shot-object-detection",
       "ForObjectDetection",
       {"logits", "pred_boxes", "text_embeds", "image_embeds"},
       head<detection>},
      {"feature-extraction",
       "Model",
       {"logits_per_image", "logits_per_text", "text_embeds", "image_embeds"},
       head<similarity>},
  };
}

}  // namespace

const Family owlvit{
    .model_type = "owlvit",
    .stem = "OwlViT",
    .prefix = "owlvit",
    .inputs = {"input_ids", "pixel_values", "attention_mask"},
    .default_inputs = inputs,
    .heads = heads(),
};

const Family owlv2{
    .model_type = "owlv2",
    .stem = "Owlv2",
    .prefix = "owlv2",
    .inputs = {"input_ids", "pixel_values", "attention_mask"},
    .default_inputs = inputs,
    .heads = heads(),
};

}  // namespace mk::models
