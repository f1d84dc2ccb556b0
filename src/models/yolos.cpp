// YOLOS (Fang et al. 2021) as transformers' YolosModel: ViT with detection tokens.

#include <fmt/format.h>

#include "models/families.h"
#include "models/vit.h"
#include "nn/layers.h"
#include "nn/ops.h"
#include "nn/resample.h"

namespace mk::models {

using namespace nn;

namespace {

struct YolosConfig : ViTConfig {
  std::int64_t num_detection_tokens = 100;
  bool use_mid_position_embeddings = true;

  static YolosConfig read(const Family& family, ConfigReader& fields) {
    YolosConfig c{ViTConfig::read(family, fields)};
    if (!fields.has("image_size")) c.image_size = {512, 864};
    c.num_detection_tokens = fields.size("num_detection_tokens", c.num_detection_tokens);
    c.use_mid_position_embeddings = fields.boolean("use_mid_position_embeddings", c.use_mid_position_embeddings);
    if (c.image_size[0] < c.patch_size[0] || c.image_size[1] < c.patch_size[1])
      fields.fail(ErrorCode::malformed, "image_size is below patch_size");
    return c;
  }
  std::array<std::int64_t, 2> grid() const { return {image_size[0] / patch_size[0], image_size[1] / patch_size[1]}; }
};

// [1, 1 + patches + detection tokens, width] with the patches resampled to the grid at hand.
Value resampled(const Scope& s, const YolosConfig& c, Value table, std::array<std::int64_t, 2> grid) {
  const auto learned = c.grid();
  if (learned == grid) return table;
  const std::int64_t patches = learned[0] * learned[1];
  const Value middle = reshape(s, slice(s, table, 1, 1, 1 + patches), {patches, c.hidden_size});
  return concat(s,
                {slice(s, table, 1, 0, 1), unsqueeze(s, resample(s, middle, learned, grid, Resampling::bicubic), 0),
                 slice(s, table, 1, 1 + patches, to_the_end)},
                1);
}

Value model(const Scope& s, const YolosConfig& c, const ImageInputs& in) {
  const Value pixels = in.pixel_values;
  expect_image(s, pixels, {.channels = c.num_channels});
  if (!expect_fixed_size(s, pixels, "positions")) return {};
  const auto learned = c.grid();
  const std::int64_t tokens = 1 + learned[0] * learned[1] + c.num_detection_tokens;
  const Scope e = s("embeddings", "YolosEmbeddings"), patches = e("patch_embeddings", "YolosPatchEmbeddings");
  Value x = conv2d(patches["projection"], pixels,
                   {.channels = c.hidden_size, .kernel = c.patch_size, .stride = c.patch_size});
  if (!x) return {};
  const std::array grid{x.dim(2).value, x.dim(3).value};
  x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
  const auto rows = [&](const char* name, std::int64_t count) {
    return expand_batch(e, e.weight(name, {1, count, c.hidden_size}), pixels);
  };
  x = concat(e, {rows("cls_token", 1), x, rows("detection_tokens", c.num_detection_tokens)}, 1);
  x = add(e, x, resampled(e, c, e.weight("position_embeddings", {1, tokens, c.hidden_size}), grid));
  const Scope encoder = s("encoder", "YolosEncoder");
  Value mid;
  if (c.use_mid_position_embeddings && c.num_hidden_layers > 1)
    mid = encoder.weight("mid_position_embeddings", {c.num_hidden_layers - 1, 1, tokens, c.hidden_size});
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    x = vit_layer(encoder("layer", i, "YolosLayer"), c, i, x);
    if (mid && i + 1 < c.num_hidden_layers) x = add(encoder, x, resampled(encoder, c, take(encoder, mid, 0, i), grid));
  }
  return layer_norm(s["layernorm"], x, c.layer_norm_eps);
}

Outputs hidden_states(const Scope& root, const YolosConfig& c, const ImageInputs& in) { return {model(root, c, in)}; }

Value predict(const Scope& s, const YolosConfig& c, Value x, std::int64_t width) {
  for (std::int64_t i = 0; i < 2; ++i) x = unary(s, "Relu", linear(s[fmt::format("layers.{}", i)], x, c.hidden_size));
  return linear(s["layers.2"], x, width);
}

Outputs object_detection(const Scope& root, const YolosConfig& c, const ImageInputs& in) {
  const Value x = model(root("vit", "YolosModel"), c, in);
  const Value detections = slice(root, x, 1, -c.num_detection_tokens, to_the_end);
  const Value logits =
      predict(root("class_labels_classifier", "YolosMLPPredictionHead"), c, detections, c.num_labels + 1);
  const Value boxes = predict(root("bbox_predictor", "YolosMLPPredictionHead"), c, detections, 4);
  return {logits, unary(root, "Sigmoid", boxes)};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const YolosConfig c = YolosConfig::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = c.image_size});
}

}  // namespace

const Family yolos{
    .model_type = "yolos",
    .stem = "Yolos",
    .prefix = "vit",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"object-detection", "ForObjectDetection", {"logits", "pred_boxes"}, head<object_detection>},
        },
};

}  // namespace mk::models
