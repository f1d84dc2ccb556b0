// SegFormer (Xie et al. 2021) as transformers' SegformerModel.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "models/families.h"
#include "models/image.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr double norm_eps = 1e-5;  // layer_norm_eps is not read by the model

struct SegformerConfig {
  std::int64_t num_channels = 3;
  std::vector<std::int64_t> depths{2, 2, 2, 2}, sr_ratios{8, 4, 2, 1}, hidden_sizes{32, 64, 160, 256},
      patch_sizes{7, 3, 3, 3}, strides{4, 2, 2, 2}, num_attention_heads{1, 2, 5, 8}, mlp_ratios{4, 4, 4, 4};
  std::string hidden_act = "gelu";
  std::int64_t decoder_hidden_size = 256;
  bool reshape_last_stage = true;
  std::int64_t num_labels = 2;

  static SegformerConfig read(const Family&, ConfigReader& fields) {
    SegformerConfig c;
    const auto stages = static_cast<std::size_t>(fields.count("num_encoder_blocks", 4));
    c.num_channels = fields.size("num_channels", c.num_channels);
    c.depths = fields.depths("depths", c.depths);
    c.sr_ratios = fields.sizes("sr_ratios", c.sr_ratios);
    c.hidden_sizes = fields.sizes("hidden_sizes", c.hidden_sizes);
    c.patch_sizes = fields.sizes("patch_sizes", c.patch_sizes);
    c.strides = fields.sizes("strides", c.strides);
    c.num_attention_heads = fields.sizes("num_attention_heads", c.num_attention_heads);
    c.mlp_ratios = fields.sizes("mlp_ratios", c.mlp_ratios);
    c.hidden_act = fields.string("hidden_act", c.hidden_act);
    c.decoder_hidden_size = fields.size("decoder_hidden_size", c.decoder_hidden_size);
    c.reshape_last_stage = fields.boolean("reshape_last_stage", c.reshape_last_stage);
    c.num_labels = fields.num_labels();
    for (auto* list : {&c.depths, &c.sr_ratios, &c.hidden_sizes, &c.patch_sizes, &c.strides, &c.num_attention_heads,
                       &c.mlp_ratios}) {
      if (list->size() < stages || stages == 0)
        fields.fail(ErrorCode::malformed,
                    fmt::format("num_encoder_blocks is {}, and a list of the stages has {}", stages, list->size()));
      list->resize(std::max<std::size_t>(stages, 1), 1);
    }
    for (std::size_t i = 0; i < c.hidden_sizes.size(); ++i)
      if (c.hidden_sizes[i] % c.num_attention_heads[i] != 0)
        fields.fail(ErrorCode::malformed, fmt::format("the hidden size {} is not a multiple of its {} heads",
                                                      c.hidden_sizes[i], c.num_attention_heads[i]));
    return c;
  }
};

struct Stage {
  std::int64_t width, heads, reduction, inner, rows, columns;
};

Value as_image(const Scope& s, Value tokens, std::int64_t rows, std::int64_t columns) {
  if (!tokens) return {};
  return reshape(s, transpose(s, tokens, {0, 2, 1}), {keep, keep, rows, columns});
}
Value as_tokens(const Scope& s, Value image) { return transpose(s, reshape(s, image, {keep, keep, rest}), {0, 2, 1}); }

Value self_attention(const Scope& s, const Stage& stage, Value x) {
  const Value query = split_heads(s, linear(s["query"], x, stage.width), stage.heads);
  if (stage.reduction > 1) {
    const std::array side{stage.reduction, stage.reduction};
    x = conv2d(s["sr"], as_image(s, x, stage.rows, stage.columns),
               {.channels = stage.width, .kernel = side, .stride = side});
    x = layer_norm(s["layer_norm"], as_tokens(s, x), norm_eps);
  }
  const Value key = split_keys(s, linear(s["key"], x, stage.width), stage.heads);
  const Value value = split_heads(s, linear(s["value"], x, stage.width), stage.heads);
  const std::int64_t head_size = stage.width / stage.heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_size));
  return attend(s, mul(s, matmul(s, query, key), scale), {}, value);
}

Value layer(const Scope& s, const SegformerConfig& c, const Stage& stage, Value x) {
  const Scope attention = s("attention", "SegformerAttention");
  Value y = self_attention(attention("self", "SegformerEfficientSelfAttention"), stage,
                           layer_norm(s["layer_norm_1"], x, norm_eps));
  x = add(s, linear(attention("output", "SegformerSelfOutput")["dense"], y, stage.width), x);
  const Scope mlp = s("mlp", "SegformerMixFFN"), depthwise = mlp("dwconv", "SegformerDWConv");
  y = linear(mlp["dense1"], layer_norm(s["layer_norm_2"], x, norm_eps), stage.inner);
  y = conv2d(depthwise["dwconv"], as_image(depthwise, y, stage.rows, stage.columns),
             {.channels = stage.inner, .kernel = {3, 3}, .padding = {1, 1}, .groups = stage.inner});
  y = activation(mlp, "intermediate_act_fn", c.hidden_act, as_tokens(depthwise, y));
  return add(s, linear(mlp["dense2"], y, stage.width), x);
}

// What each stage gives, as images.
std::vector<Value> stages(const Scope& s, const SegformerConfig& c, Value pixels) {
  expect_image(s, pixels, {.channels = c.num_channels});
  if (!expect_fixed_size(s, pixels, "stages")) return {Value()};
  const Scope encoder = s("encoder", "SegformerEncoder");
  std::vector<Value> images;
  Value x = pixels;
  for (std::size_t i = 0; i < c.hidden_sizes.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const Scope patches = encoder("patch_embeddings", index, "SegformerOverlapPatchEmbeddings");
    const std::int64_t kernel = c.patch_sizes[i], stride = c.strides[i], width = c.hidden_sizes[i];
    x = conv2d(patches["proj"], x,
               {.channels = width,
                .kernel = {kernel, kernel},
                .stride = {stride, stride},
                .padding = {kernel / 2, kernel / 2}});
    if (!x) return {Value()};
    const Stage stage{width,         c.num_attention_heads[i], c.sr_ratios[i], width * c.mlp_ratios[i], x.dim(2).value,
                      x.dim(3).value};
    x = layer_norm(patches["layer_norm"], as_tokens(patches, x), norm_eps);
    for (std::int64_t j = 0; j < c.depths[i]; ++j)
      x = layer(encoder(fmt::format("block.{}", i), j, "SegformerLayer"), c, stage, x);
    x = layer_norm(encoder[fmt::format("layer_norm.{}", i)], x, norm_eps);
    x = as_image(encoder, x, stage.rows, stage.columns);
    images.push_back(x);
  }
  return images;
}

Outputs hidden_states(const Scope& root, const SegformerConfig& c, const ImageInputs& in) {
  const Value x = stages(root, c, in.pixel_values).back();
  return {c.reshape_last_stage ? x : as_tokens(root, x)};
}

Outputs image_classifier(const Scope& root, const SegformerConfig& c, const ImageInputs& in) {
  const Value x = stages(root("segformer", "SegformerModel"), c, in.pixel_values).back();
  return {linear(root["classifier"], reduce_mean(root, x, {2, 3}, false), c.num_labels)};
}

Outputs segmentation(const Scope& root, const SegformerConfig& c, const ImageInputs& in) {
  const std::vector<Value> images = stages(root("segformer", "SegformerModel"), c, in.pixel_values);
  const Scope head = root("decode_head", "SegformerDecodeHead");
  if (!images.front()) return {Value()};
  const std::array size{images.front().dim(2).value, images.front().dim(3).value};
  std::vector<Value> parts;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Scope mlp = head("linear_c", static_cast<std::int64_t>(i), "SegformerMLP");
    const Value image = images[i];
    if (!image) return {Value()};
    Value x = linear(mlp["proj"], as_tokens(mlp, image), c.decoder_hidden_size);
    x = as_image(head, x, image.dim(2).value, image.dim(3).value);
    parts.insert(parts.begin(), resize(head, x, size, Interpolation::bilinear));
  }
  Value x = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) x = concat(head, {x, parts[i]}, 1);
  x = conv2d(head["linear_fuse"], x, {.channels = c.decoder_hidden_size, .kernel = {1, 1}, .bias = false});
  x = activation(head, "activation", "relu", batch_norm(head["batch_norm"], x));
  return {conv2d(head["classifier"], x, {.channels = c.num_labels, .kernel = {1, 1}})};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const SegformerConfig c = SegformerConfig::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = std::array<std::int64_t, 2>{512, 512}});
}

}  // namespace

const Family segformer{
    .model_type = "segformer",
    .stem = "Segformer",
    .prefix = "segformer",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>},
            {"image-segmentation", "ForSemanticSegmentation", {"logits"}, head<segmentation>},
            {"semantic-segmentation", "ForSemanticSegmentation", {"logits"}, head<segmentation>},
        },
};

}  // namespace mk::models
