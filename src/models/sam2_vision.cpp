#include "models/sam2_vision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

Sam2VisionConfig Sam2VisionConfig::read(const Family&, ConfigReader& fields) {
  ConfigReader own =
      fields.has("vision_config") || fields.has("prompt_encoder_config") ? fields.section("vision_config") : fields;
  ConfigReader backbone = own.section("backbone_config");
  Sam2VisionConfig c;
  const std::string kind = backbone.string("model_type", "sam2_hiera_det_model");
  if (kind != "sam2_hiera_det_model")
    backbone.fail(ErrorCode::unsupported, fmt::format("backbone_config of type \"{}\" is not supported", kind),
                  "That of SAM 2 is sam2_hiera_det_model");
  c.hidden_size = backbone.size("hidden_size", c.hidden_size);
  c.num_channels = backbone.size("num_channels", c.num_channels);
  c.num_query_pool_stages = backbone.count("num_query_pool_stages", c.num_query_pool_stages);
  c.image_size = backbone.pair("image_size", 1024);
  c.patch_kernel_size = backbone.pair("patch_kernel_size", 7);
  c.patch_stride = backbone.pair("patch_stride", 4);
  const std::vector<std::int64_t> padding = backbone.indices("patch_padding", {3, 3});
  if (padding.size() != 2)
    backbone.fail(ErrorCode::malformed, "patch_padding is not a pair of numbers");
  else
    c.patch_padding = {padding[0], padding[1]};
  c.query_stride = backbone.pair("query_stride", 2);
  c.background_size = backbone.pair("window_positional_embedding_background_size", 7);
  c.blocks_per_stage = backbone.depths("blocks_per_stage", {1, 2, 7, 2});
  c.embed_dim_per_stage = backbone.sizes("embed_dim_per_stage", {96, 192, 384, 768});
  c.num_attention_heads_per_stage = backbone.sizes("num_attention_heads_per_stage", {1, 2, 4, 8});
  c.window_size_per_stage = backbone.indices("window_size_per_stage", {8, 4, 14, 7});
  c.global_attention_blocks = backbone.indices("global_attention_blocks", {5, 7, 9});
  c.mlp_ratio = backbone.number("mlp_ratio", c.mlp_ratio);
  c.layer_norm_eps = backbone.number("layer_norm_eps", c.layer_norm_eps);
  c.hidden_act = backbone.string("hidden_act", c.hidden_act);

  c.backbone_channel_list = own.sizes("backbone_channel_list", {768, 384, 192, 96});
  c.fpn_top_down_levels = own.indices("fpn_top_down_levels", {2, 3});
  c.fpn_hidden_size = own.size("fpn_hidden_size", c.fpn_hidden_size);
  c.fpn_kernel_size = own.size("fpn_kernel_size", c.fpn_kernel_size);
  c.fpn_stride = own.size("fpn_stride", c.fpn_stride);
  c.fpn_padding = own.count("fpn_padding", c.fpn_padding);
  if (const std::int64_t levels = own.size("num_feature_levels", 3); levels != 3)
    own.fail(ErrorCode::unsupported, fmt::format("num_feature_levels {} is not supported, only 3 is", levels));

  constexpr std::size_t most_stages = 16;
  const std::size_t stages = c.blocks_per_stage.size();
  if (c.embed_dim_per_stage.size() != stages || c.num_attention_heads_per_stage.size() != stages ||
      c.window_size_per_stage.size() != stages || c.backbone_channel_list.size() != stages || stages < 3 ||
      stages > most_stages) {
    backbone.fail(ErrorCode::malformed,
                  "blocks_per_stage, embed_dim_per_stage, num_attention_heads_per_stage, window_size_per_stage and "
                  "backbone_channel_list need one value for each of 3 to 16 stages");
    return c;
  }
  for (std::size_t i = 0; i < stages; ++i)
    if (c.embed_dim_per_stage[i] % c.num_attention_heads_per_stage[i] != 0)
      backbone.fail(ErrorCode::malformed, fmt::format("embed_dim_per_stage {} is not a multiple of its {} heads",
                                                      c.embed_dim_per_stage[i], c.num_attention_heads_per_stage[i]));
  if (c.window_size_per_stage.front() < 1) backbone.fail(ErrorCode::malformed, "the first window_size_per_stage is 0");
  if (c.query_stride[0] != c.query_stride[1])
    backbone.fail(ErrorCode::unsupported, "query_stride is supported where it is the same in both directions");
  if (!(c.mlp_ratio > 0 && c.mlp_ratio < 1e6))
    backbone.fail(ErrorCode::malformed, fmt::format("mlp_ratio is {}", c.mlp_ratio));
  return c;
}

namespace {

// A block of the Hiera: attention within windows, which may halve rows and columns on the way.
struct Block {
  std::int64_t from = 0, to = 0, heads = 0, window = 0;  // of no windows where 0
  bool pools = false;
};

std::vector<Block> blocks_of(const Sam2VisionConfig& c) {
  std::vector<Block> blocks;
  for (std::size_t stage = 0; stage < c.blocks_per_stage.size(); ++stage) {
    for (std::int64_t i = 0; i < c.blocks_per_stage[stage]; ++i) {
      const bool enters = stage > 0 && i == 0;  // and is still as the stage before in what it takes
      const auto& global = c.global_attention_blocks;
      const bool everywhere =
          std::find(global.begin(), global.end(), static_cast<std::int64_t>(blocks.size())) != global.end();
      const std::size_t before = enters ? stage - 1 : stage;
      blocks.push_back({.from = c.embed_dim_per_stage[before],
                        .to = c.embed_dim_per_stage[stage],
                        .heads = c.num_attention_heads_per_stage[stage],
                        .window = everywhere ? 0 : c.window_size_per_stage[before],
                        .pools = enters && static_cast<std::int64_t>(stage) <= c.num_query_pool_stages});
    }
  }
  return blocks;
}

Value pooled(const Scope& s, const Sam2VisionConfig& c, Value x) {
  const std::int64_t stride = c.query_stride[0];
  return transpose(s, max_pool2d(s, transpose(s, x, {0, 3, 1, 2}), stride, stride, 0), {0, 2, 3, 1});
}

// x [batch, rows, columns, channels]
Value attention(const Scope& s, const Sam2VisionConfig& c, const Block& block, Value x) {
  if (!x) return {};
  const std::int64_t width = block.to;
  std::int64_t rows = x.dim(1).value, columns = x.dim(2).value;
  const Value all = reshape(s, linear(s["qkv"], x, 3 * width), {keep, rows * columns, 3 * width});
  const auto part = [&](std::int64_t index) { return slice(s, all, 2, index * width, (index + 1) * width); };
  Value query = part(0);
  if (block.pools) {
    query = pooled(s, c, reshape(s, query, {keep, rows, columns, width}));
    if (!query) return {};
    rows = query.dim(1).value, columns = query.dim(2).value;
    query = reshape(s, query, {keep, rows * columns, width});
  }
  const double scale = 1 / std::sqrt(static_cast<double>(width / block.heads));
  const Value scores =
      mul(s, matmul(s, split_heads(s, query, block.heads), split_keys(s, part(1), block.heads)), scale);
  const Value y = attend(s, scores, {}, split_heads(s, part(2), block.heads));
  return linear(s["proj"], reshape(s, y, {keep, rows, columns, width}), width);
}

Value multi_scale_block(const Scope& s, const Sam2VisionConfig& c, const Block& block, Value x) {
  Value y = layer_norm(s["layer_norm1"], x, c.layer_norm_eps);
  if (block.from != block.to) {
    x = linear(s["proj"], y, block.to);
    if (block.pools) x = pooled(s, c, x);
  }
  if (!x) return {};
  if (block.window > 0) y = window_partition(s, y, block.window);
  y = attention(s("attn", "Sam2MultiScaleAttention"), c, block, y);
  const std::int64_t window = block.pools ? block.window / c.query_stride[0] : block.window;
  if (block.window > 0 && window == 0) {
    s.builder().fail({ErrorCode::malformed, fmt::format("windows of {} cannot be pooled", block.window),
                      s.module().path, "Check window_size_per_stage"});
    return {};
  }
  if (window > 0) y = window_merge(s, y, window, x.dim(1).value, x.dim(2).value);
  x = add(s, x, y);
  const Scope mlp = s("mlp", "Sam2FeedForward");
  const auto inner = static_cast<std::int64_t>(static_cast<double>(block.to) * c.mlp_ratio);
  y = linear(mlp["proj_in"], layer_norm(s["layer_norm2"], x, c.layer_norm_eps), inner);
  return add(s, x, linear(mlp["proj_out"], activation(mlp, "activation", c.hidden_act, y), block.to));
}

// A small table stretched over the image, and one that is repeated for each window.
Value position_embeddings(const Scope& s, const Sam2VisionConfig& c, Value x) {
  const std::int64_t window = c.window_size_per_stage.front(), rows = x.dim(1).value, columns = x.dim(2).value;
  const auto [height, width] = c.background_size;
  const Value background =
      resize(s, s.weight("pos_embed", {1, c.hidden_size, height, width}), {rows, columns}, Interpolation::bicubic);
  const Value one = s.weight("pos_embed_window", {1, c.hidden_size, window, window});
  const Value repeated = Op(s, "Tile", {one, s.builder().integers({1, 1, rows / window, columns / window})})
                             .out(one.type(), static_shape({1, c.hidden_size, rows, columns}));
  return transpose(s, add(s, background, repeated), {0, 2, 3, 1});
}

// The output of each stage, [batch, height, width, channels].
std::vector<Value> hiera(const Scope& s, const Sam2VisionConfig& c, Value pixels) {
  const Scope patches = s("patch_embed", "Sam2PatchEmbeddings");
  Value x = conv2d(
      patches["projection"], pixels,
      {.channels = c.hidden_size, .kernel = c.patch_kernel_size, .stride = c.patch_stride, .padding = c.patch_padding});
  x = transpose(patches, x, {0, 2, 3, 1});
  if (!x) return {};
  const std::int64_t window = c.window_size_per_stage.front();
  if (x.dim(1).value % window != 0 || x.dim(2).value % window != 0) {
    s.builder().fail({ErrorCode::usage,
                      fmt::format("an image of {} x {} patches does not divide into windows of {}", x.dim(1).value,
                                  x.dim(2).value, window),
                      "pixel_values", "Ask for the model's own image_size"});
    return {};
  }
  x = add(s, x, position_embeddings(s, c, x));
  std::vector<Value> stages;
  const std::vector<Block> blocks = blocks_of(c);
  std::int64_t left = c.blocks_per_stage.front();
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    x = multi_scale_block(s("blocks", static_cast<std::int64_t>(i), "Sam2MultiScaleBlock"), c, blocks[i], x);
    if (--left > 0) continue;
    stages.push_back(x);
    if (stages.size() < c.blocks_per_stage.size()) left = c.blocks_per_stage[stages.size()];
  }
  return stages;
}

}  // namespace

Sam2Features sam2_vision(const Scope& s, const Sam2VisionConfig& c, const ImageInputs& in) {
  Builder& b = s.builder();
  expect_image(s, in.pixel_values, c.limits());
  if (!in.pixel_values.dim(2).is_known() || !in.pixel_values.dim(3).is_known())
    b.fail({ErrorCode::usage, "pixel_values needs a fixed height and width", "", "Its positions depend on them"});
  if (!b.ok()) return {};
  const std::vector<Value> stages = hiera(s("backbone", "Sam2HieraDetModel"), c, in.pixel_values);
  if (stages.empty()) return {};

  // Lin et al. 2017, "Feature Pyramid Networks": each level with what is above it, where the configuration says so.
  const Scope neck = s("neck", "Sam2VisionNeck");
  const auto last = static_cast<std::int64_t>(stages.size()) - 1;
  const std::int64_t kernel = c.fpn_kernel_size, stride = c.fpn_stride, padding = c.fpn_padding;
  const Convolution convolution{.channels = c.fpn_hidden_size,
                                .kernel = {kernel, kernel},
                                .stride = {stride, stride},
                                .padding = {padding, padding}};
  std::vector<Value> levels(stages.size());
  const std::function<Value(std::int64_t)> level = [&](std::int64_t i) -> Value {
    Value& known = levels[static_cast<std::size_t>(i)];
    if (known) return known;
    const Value stage = transpose(neck, stages[static_cast<std::size_t>(i)], {0, 3, 1, 2});
    Value x = conv2d(neck[fmt::format("convs.{}", last - i)], stage, convolution);
    const auto& from_above = c.fpn_top_down_levels;
    if (i != last && std::find(from_above.begin(), from_above.end(), i) != from_above.end()) {
      const Value above = level(i + 1);
      if (!above) return {};
      const std::array twice{2 * above.dim(2).value, 2 * above.dim(3).value};
      x = add(neck, x, resize(neck, above, twice, Interpolation::nearest));
    }
    return known = x;
  };
  const Value coarse = level(2), middle = level(1), fine = level(0);
  return {fine, middle, coarse};
}

}  // namespace mk::models
