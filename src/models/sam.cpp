#include "models/sam.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct SamVisionConfig {
  std::int64_t hidden_size = 768, output_channels = 256, num_hidden_layers = 12, num_attention_heads = 12;
  std::int64_t num_channels = 3, window_size = 14, mlp_dim = 0;
  std::array<std::int64_t, 2> image_size{}, patch_size{};
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-6;
  bool qkv_bias = true, use_abs_pos = true, use_rel_pos = true;
  std::vector<std::int64_t> global_attn_indexes;

  static SamVisionConfig read(const Family&, ConfigReader& all) {
    const bool is_part = all.has("vision_config") || all.has("prompt_encoder_config");
    ConfigReader fields = is_part || all.config().model_type() == "sam" ? all.section("vision_config") : all;
    SamVisionConfig c;
    c.hidden_size = fields.size("hidden_size", c.hidden_size);
    c.output_channels = fields.size("output_channels", c.output_channels);
    c.num_hidden_layers = fields.count("num_hidden_layers", c.num_hidden_layers);
    c.num_attention_heads = fields.size("num_attention_heads", c.num_attention_heads);
    c.num_channels = fields.size("num_channels", c.num_channels);
    c.image_size = fields.pair("image_size", 1024);
    c.patch_size = fields.pair("patch_size", 16);
    c.hidden_act = fields.string("hidden_act", c.hidden_act);
    c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
    c.qkv_bias = fields.boolean("qkv_bias", c.qkv_bias);
    c.use_abs_pos = fields.boolean("use_abs_pos", c.use_abs_pos);
    c.use_rel_pos = fields.boolean("use_rel_pos", c.use_rel_pos);
    c.window_size = fields.count("window_size", c.window_size);
    c.global_attn_indexes = fields.indices("global_attn_indexes", {2, 5, 8, 11});
    const double ratio = fields.number("mlp_ratio", 4);
    c.mlp_dim = fields.size(
        "mlp_dim", std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(c.hidden_size) * ratio)));
    if (c.hidden_size % c.num_attention_heads != 0)
      fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                    c.hidden_size, c.num_attention_heads));
    return c;
  }
  std::int64_t rows() const { return image_size[0] / patch_size[0]; }
  std::int64_t columns() const { return image_size[1] / patch_size[1]; }
  ImageLimits limits() const { return {num_channels, image_size, true}; }
};

// The table of relative positions along one side, spread out: [size, width, size], the row i, column j of which is the
// embedding of the distance i - j. Laid out when it is written.
Value relative_table(const Scope& s, const char* name, std::int64_t size, std::int64_t width) {
  const Parameter& table = s.parameter(name, {2 * size - 1, width});
  Parameter spread{table.name + ".spread", table.type, {size, width, size}, nullptr};
  if (table.data) {
    // Row i has the distances i ... i - size + 1: the table's rows from i on, backwards.
    std::vector<Bytes> rows;
    const auto element = static_cast<std::uint64_t>(bits_of(table.type)) / 8;
    const std::uint64_t row = static_cast<std::uint64_t>(width) * element;
    for (std::int64_t i = 0; i < size; ++i)
      for (std::int64_t j = 0; j < size; ++j)
        rows.push_back(sliced(table.data, static_cast<std::uint64_t>(i - j + size - 1) * row, row));
    const auto count = static_cast<std::uint64_t>(size);
    spread.data = transposed(concatenated(std::move(rows)), count, count, static_cast<std::uint64_t>(width), element);
  }
  return s.builder().initializer(spread);
}

// Scores of the distances of rows and columns (Li et al. 2022, "MViTv2"): [batch * heads, pixels, pixels].
Value distance_scores(const Scope& s, const SamVisionConfig& c, Value query, std::int64_t rows, std::int64_t columns) {
  const std::int64_t width = c.hidden_size / c.num_attention_heads, pixels = rows * columns;
  const Value q = reshape(s, query, {rest, rows, columns, width});
  const Value by_row = matmul(s, q, relative_table(s, "rel_pos_h", rows, width));
  Value by_column = matmul(s, transpose(s, q, {0, 2, 1, 3}), relative_table(s, "rel_pos_w", columns, width));
  by_column = transpose(s, by_column, {0, 2, 1, 3});
  const Value scores =
      add(s, reshape(s, by_row, {keep, pixels, rows, 1}), reshape(s, by_column, {keep, pixels, 1, columns}));
  return reshape(s, scores, {rest, c.num_attention_heads, pixels, pixels});
}

// x [batch, rows, columns, hidden_size]
Value attention(const Scope& s, const SamVisionConfig& c, Value x) {
  if (!x) return {};
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const std::int64_t rows = x.dim(1).value, columns = x.dim(2).value;
  const Value all = reshape(s, linear(s["qkv"], x, 3 * width, c.qkv_bias), {keep, rows * columns, 3 * width});
  const auto part = [&](std::int64_t index) { return slice(s, all, 2, index * width, (index + 1) * width); };
  const Value query = split_heads(s, part(0), heads);
  const double scale = 1 / std::sqrt(static_cast<double>(width / heads));
  Value scores = matmul(s, mul(s, query, scale), split_keys(s, part(1), heads));
  if (c.use_rel_pos) scores = add(s, scores, distance_scores(s, c, query, rows, columns));
  const Value y = attend(s, scores, {}, split_heads(s, part(2), heads));
  return linear(s["proj"], reshape(s, y, {keep, rows, columns, width}), width);
}

Value vision_layer(const Scope& s, const SamVisionConfig& c, std::int64_t index, Value x) {
  const auto& global = c.global_attn_indexes;
  const bool everywhere = c.window_size == 0 || std::find(global.begin(), global.end(), index) != global.end();
  Value y = layer_norm(s["layer_norm1"], x, c.layer_norm_eps);
  if (!everywhere) y = window_partition(s, y, c.window_size);
  y = attention(s("attn", "SamVisionAttention"), c, y);
  if (!everywhere) y = window_merge(s, y, c.window_size, c.rows(), c.columns());
  x = add(s, x, y);
  const Scope mlp = s("mlp", "SamMLPBlock");
  y = linear(mlp["lin1"], layer_norm(s["layer_norm2"], x, c.layer_norm_eps), c.mlp_dim);
  return add(s, x, linear(mlp["lin2"], activation(mlp, "act", c.hidden_act, y), c.hidden_size));
}

// The child `vision_encoder` of the root: [batch, output_channels, rows, columns].
Value vision_encoder(const Scope& root, const SamVisionConfig& c, const ImageInputs& in) {
  expect_image(root, in.pixel_values, c.limits());
  const Scope s = root("vision_encoder", "SamVisionEncoder"), patches = s("patch_embed", "SamPatchEmbeddings");
  Value x = conv2d(patches["projection"], in.pixel_values,
                   {.channels = c.hidden_size, .kernel = c.patch_size, .stride = c.patch_size});
  x = transpose(patches, x, {0, 2, 3, 1});
  if (c.use_abs_pos) x = add(s, x, s.weight("pos_embed", {1, c.rows(), c.columns(), c.hidden_size}));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) x = vision_layer(s("layers", i, "SamVisionLayer"), c, i, x);

  const Scope neck = s("neck", "SamVisionNeck");
  const std::int64_t to = c.output_channels;
  x = conv2d(neck["conv1"], transpose(neck, x, {0, 3, 1, 2}), {.channels = to, .kernel = {1, 1}, .bias = false});
  x = channels_layer_norm(neck("layer_norm1", "SamLayerNorm"), x, 1e-6);
  x = conv2d(neck["conv2"], x, {.channels = to, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  return channels_layer_norm(neck("layer_norm2", "SamLayerNorm"), x, 1e-6);
}

struct SamConfig {
  SamVisionConfig vision;
  SamMaskConfig masks;
  static SamConfig read(const Family& family, ConfigReader& fields) {
    SamConfig c{SamVisionConfig::read(family, fields), SamMaskConfig::read(family.stem, false, fields)};
    const std::int64_t side = c.masks.prompt.side();
    if (c.vision.output_channels != c.masks.prompt.hidden_size || c.vision.rows() != side || c.vision.columns() != side)
      fields.fail(
          ErrorCode::malformed,
          fmt::format("the image encoder gives {} channels of {} x {}, and the prompt encoder takes {} of {} x {}",
                      c.vision.output_channels, c.vision.rows(), c.vision.columns(), c.masks.prompt.hidden_size, side,
                      side));
    return c;
  }
};

struct WholeInputs {
  ImageInputs image;
  SamPrompts prompts;
  static WholeInputs read(const Scope& root, HeadContext& context) {
    return {ImageInputs::read(root, context), read_sam_prompts(root, context)};
  }
};

struct DecoderInputs {
  Value image;
  SamPrompts prompts;
  static DecoderInputs read(const Scope& root, HeadContext& context) {
    return {context.input("image_embeddings"), read_sam_prompts(root, context)};
  }
};

Outputs whole(const Scope& root, const SamConfig& c, const WholeInputs& in) {
  const Value image = vision_encoder(root, c.vision, in.image);
  const SamMasks masks = sam_masks(root, c.masks, {.embedding = image, .half = {}, .quarter = {}}, in.prompts);
  return {masks.masks, masks.scores};
}

Outputs image_encoder(const Scope& root, const SamVisionConfig& c, const ImageInputs& in) {
  return {vision_encoder(root, c, in)};
}

Outputs mask_decoder(const Scope& root, const SamConfig& c, const DecoderInputs& in) {
  const std::int64_t side = c.masks.prompt.side();
  expect_sam_features(root, in.image, "image_embeddings", c.masks.prompt.hidden_size, side);
  const SamMasks masks = sam_masks(root, c.masks, {.embedding = in.image, .half = {}, .quarter = {}}, in.prompts);
  return {sam_full_size(root, c.masks.prompt, masks.masks), masks.scores, masks.masks};
}

Result<std::vector<InputSpec>> encoder_inputs(InputRequest& request) {
  return image_input_specs(request, SamVisionConfig::read(request.family, request.config).limits());
}

Result<std::vector<InputSpec>> whole_inputs(InputRequest& request) {
  const SamConfig c = SamConfig::read(request.family, request.config);
  MK_TRY(std::vector<InputSpec> inputs, image_input_specs(request, c.vision.limits()));
  MK_TRY(const std::vector<InputSpec> points, sam_point_specs(request, c.masks.prompt));
  inputs.insert(inputs.end(), points.begin(), points.end());
  return inputs;
}

Result<std::vector<InputSpec>> decoder_inputs(InputRequest& request) {
  const SamConfig c = SamConfig::read(request.family, request.config);
  MK_TRY(std::vector<InputSpec> inputs, sam_point_specs(request, c.masks.prompt));
  const std::int64_t side = c.masks.prompt.side();
  inputs.push_back(sam_feature_spec(request, "image_embeddings", c.masks.prompt.hidden_size, side));
  const std::vector<InputSpec> mask = sam_mask_specs(request, c.masks.prompt);
  inputs.insert(inputs.end(), mask.begin(), mask.end());
  return inputs;
}

}  // namespace

const Family sam{
    .model_type = "sam",
    .stem = "Sam",
    .prefix = "sam",
    .inputs = {"pixel_values", "input_points", "input_labels", "image_embeddings", "mask_input", "use_mask_input"},
    .default_inputs = whole_inputs,
    .heads =
        {
            {"mask-generation", "Model", {"masks", "iou_scores", "low_res_masks"}, head<mask_decoder>, decoder_inputs},
            {"image-segmentation", "Model", {"pred_masks", "iou_scores"}, head<whole>},
            {"feature-extraction", "Model", {"image_embeddings"}, head<image_encoder>, encoder_inputs},
        },
};

const Family sam_vision_model{
    .model_type = "sam_vision_model",
    .stem = "SamVision",
    .prefix = "",
    .inputs = {"pixel_values"},
    .default_inputs = encoder_inputs,
    .heads = {{"image-feature-extraction", "Model", {"last_hidden_state"}, head<image_encoder>}},
};

}  // namespace mk::models
