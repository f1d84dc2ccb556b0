#include "models/swin.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

SwinConfig SwinConfig::read(ConfigReader& fields, std::string_view stem) {
  SwinConfig c;
  c.stem = stem;
  c.second = stem != "Swin";
  c.image_size = fields.pair("image_size", 224);
  c.patch_size = fields.pair("patch_size", 4);
  c.num_channels = fields.size("num_channels", c.num_channels);
  c.embed_dim = fields.size("embed_dim", c.embed_dim);
  c.depths = fields.depths("depths", c.depths);
  c.num_heads = fields.sizes("num_heads", c.num_heads);
  c.window_size = fields.size("window_size", c.window_size);
  c.pretrained_window_sizes = fields.indices("pretrained_window_sizes", {});
  c.mlp_ratio = fields.number("mlp_ratio", c.mlp_ratio);
  c.qkv_bias = fields.boolean("qkv_bias", c.qkv_bias);
  c.hidden_act = fields.string("hidden_act", c.hidden_act);
  c.use_absolute_embeddings = fields.boolean("use_absolute_embeddings", c.use_absolute_embeddings);
  c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
  c.num_labels = fields.num_labels();
  c.stages = backbone_stages(fields, static_cast<std::int64_t>(c.depths.size()));
  if (!(c.mlp_ratio * static_cast<double>(c.embed_dim) >= 1 && c.mlp_ratio <= 1e4)) {
    fields.fail(ErrorCode::malformed, fmt::format("mlp_ratio is {}", c.mlp_ratio));
    c.mlp_ratio = 4;
  }
  c.pretrained_window_sizes.resize(c.depths.size(), 0);
  if (c.num_heads.size() != c.depths.size())
    fields.fail(ErrorCode::malformed,
                fmt::format("depths has {} stages and num_heads {}", c.depths.size(), c.num_heads.size()));
  else if (c.depths.size() > 16)
    fields.fail(ErrorCode::malformed, fmt::format("depths has {} stages", c.depths.size()));
  else
    for (std::size_t i = 0; i < c.num_heads.size(); ++i)
      if ((c.embed_dim << i) % c.num_heads[i] != 0)
        fields.fail(ErrorCode::malformed, fmt::format("the width {} of stage {} is not a multiple of its {} heads",
                                                      c.embed_dim << i, i, c.num_heads[i]));
  if (c.image_size[0] < c.patch_size[0] || c.image_size[1] < c.patch_size[1])
    fields.fail(ErrorCode::malformed, "image_size is below patch_size");
  return c;
}

namespace {

struct Window {
  std::int64_t size = 0, shift = 0;
};

// The first version looks at the grid at hand, the second at the one of the configuration.
Window window_of(const SwinConfig& c, const SwinBlock& block) {
  const Grid& grid = c.second ? block.planned : block.grid;
  if (block.whole_windows && !c.second) return {c.window_size, block.shift};
  if (!c.second) {
    const std::int64_t least = std::min(grid[0], grid[1]);
    return least <= c.window_size ? Window{least, 0} : Window{c.window_size, block.shift};
  }
  const std::int64_t size = std::min(grid[0], c.window_size);
  return {size, grid[0] <= size ? 0 : block.shift};
}

// Distances of the second version's window, [rows * columns, 2], on a logarithmic scale from -1 to 1 and beyond.
Value distance_table(const Scope& s, std::int64_t window, std::int64_t pretrained) {
  const double range =
      pretrained > 0 ? static_cast<double>(pretrained - 1) : static_cast<double>(window > 1 ? window - 1 : 1);
  const auto scaled = [&](std::int64_t distance) {
    const float x = static_cast<float>(distance) / static_cast<float>(range) * 8.0F;
    return std::copysign(std::log2(std::abs(x) + 1.0F), x) / 3.0F;
  };
  std::vector<float> table;
  for (std::int64_t row = 1 - window; row < window; ++row)
    for (std::int64_t column = 1 - window; column < window; ++column) {
      table.push_back(scaled(row));
      table.push_back(scaled(column));
    }
  Builder& b = s.builder();
  Bytes data = owned_values(table);
  if (b.float_type() != DataType::float32) data = cast(std::move(data), DataType::float32, b.float_type());
  return b.constant(fmt::format("constant/window_log_distances/{}/{}", window, pretrained), b.float_type(),
                    {static_cast<std::int64_t>(table.size()) / 2, 2}, std::move(data));
}

// [heads, tokens, tokens]
Value position_bias(const Scope& s, const SwinConfig& c, const SwinBlock& block, std::int64_t window) {
  const std::int64_t side = 2 * window - 1, tokens = window * window;
  Value table;
  if (c.second) {
    const Scope mlp = s["continuous_position_bias_mlp"];
    table = linear(mlp["0"], distance_table(s, window, block.pretrained_window), 512);
    table = linear(mlp["2"], unary(mlp, "Relu", table), block.heads, false);
    table = mul(s, unary(s, "Sigmoid", table), 16);
  } else {
    if (window != c.window_size) {
      s.builder().fail({ErrorCode::unsupported,
                        fmt::format("the grid of {} x {} is smaller than the window of {} x {}", block.grid[0],
                                    block.grid[1], c.window_size, c.window_size),
                        "", "Choose larger images: the model has positions for whole windows only"});
      return {};
    }
    table = s.weight("relative_position_bias_table", {side * side, block.heads});
  }
  const Value bias = gather(s, table, window_distances(s, {window, window}));
  return transpose(s, reshape(s, bias, {tokens, tokens, block.heads}), {2, 0, 1});
}

Value normalized(const Scope& s, Value x) {
  const Value norm = reduce(s, "ReduceL2", x, {-1}, true);
  return div(s, x, nn::clip(s, norm, 1e-12, std::numeric_limits<float>::max()));
}

// Tokens of windows [windows, tokens, width]; with a mask of one window each.
Value self_attention(const Scope& s, const SwinConfig& c, const SwinBlock& block, Value x, Value mask,
                     std::int64_t window) {
  if (!x) return {};
  const std::int64_t width = x.dim(2).value, tokens = window * window, head_size = width / block.heads;
  const auto project = [&](const char* name, bool bias) {
    return split_heads(s, linear(s[name], x, width, bias), block.heads);
  };
  Value query = project("query", c.qkv_bias), key = project("key", c.qkv_bias && !c.second);
  const Value value = project("value", c.qkv_bias);
  Value scores;
  if (c.second) {
    scores = matmul(s, normalized(s, query), transpose(s, normalized(s, key), {0, 1, 3, 2}));
    const Value scale = s.weight("logit_scale", {block.heads, 1, 1});
    scores = mul(s, scores, unary(s, "Exp", minimum(s, scale, s.builder().scalar(scale.type(), std::log(100.0)))));
  } else {
    scores = mul(s, matmul(s, query, transpose(s, key, {0, 1, 3, 2})), 1 / std::sqrt(static_cast<double>(head_size)));
  }
  scores = add(s, scores, position_bias(s, c, block, window));
  if (mask) {
    scores = reshape(s, scores, {rest, mask.dim(0).value, block.heads, tokens, tokens});
    scores = reshape(s, add(s, scores, mask), {rest, block.heads, tokens, tokens});
  }
  return attend(s, scores, {}, value);
}

Value windowed_attention(const Scope& s, const SwinConfig& c, const SwinBlock& block, Value x) {
  if (!x) return {};
  const auto [height, width] = block.grid;
  const std::int64_t channels = x.dim(2).value;
  const Window window = window_of(c, block);
  x = reshape(s, x, {rest, height, width, channels});
  const auto missing = [&](std::int64_t size) { return (window.size - size % window.size) % window.size; };
  x = pad_grid(s, x, missing(height), missing(width));
  const Grid padded{height + missing(height), width + missing(width)};
  if (window.shift > 0) x = roll_grid(s, x, window.shift);
  Value mask;
  // The second version adds its mask twice.
  if (window.shift > 0) mask = shifted_window_mask(s, padded, window.size, window.shift, c.second ? -200.0F : -100.0F);
  x = partition_windows(s, x, window.size);
  const Scope attention = s("attention", c.name("Attention"));
  x = self_attention(attention("self", c.name("SelfAttention")), c, block, x, mask, window.size);
  x = linear(attention("output", c.name("SelfOutput"))["dense"], x, channels);
  x = merge_windows(s, x, window.size, padded);
  if (window.shift > 0) x = roll_grid(s, x, -window.shift);
  return reshape(s, crop_grid(s, x, block.grid), {rest, height * width, channels});
}

Value feed_forward(const Scope& s, const SwinConfig& c, Value x) {
  if (!x) return {};
  const std::int64_t width = x.dim(2).value;
  const Scope up = s("intermediate", c.name("Intermediate")), down = s("output", c.name("Output"));
  x = linear(up["dense"], x, static_cast<std::int64_t>(c.mlp_ratio * static_cast<double>(width)));
  return linear(down["dense"], activation(up, "intermediate_act_fn", c.hidden_act, x), width);
}

Value patch_merging(const Scope& s, const SwinConfig& c, Value x, Grid grid) {
  if (!x) return {};
  const std::int64_t width = x.dim(2).value;
  x = pad_grid(s, reshape(s, x, {rest, grid[0], grid[1], width}), grid[0] % 2, grid[1] % 2);
  x = merge_neighbours(s, x);
  if (c.second) return layer_norm(s["norm"], linear(s["reduction"], x, 2 * width, false), 1e-5);
  return linear(s["reduction"], layer_norm(s["norm"], x, 1e-5), 2 * width, false);
}

Value embeddings(const Scope& s, const SwinConfig& c, Value pixels, Grid& grid) {
  if (!pixels) return {};
  const auto missing = [&](int axis) {
    const std::int64_t patch = c.patch_size[static_cast<std::size_t>(axis - 2)];
    return (patch - pixels.dim(axis).value % patch) % patch;
  };
  const Scope patches = s("patch_embeddings", c.name("PatchEmbeddings"));
  Builder& b = s.builder();
  if (const std::int64_t rows = missing(2), columns = missing(3); rows > 0 || columns > 0)
    pixels = Op(patches, "Pad", {pixels, b.integers({0, 0, 0, 0, 0, 0, rows, columns}), b.scalar(pixels.type(), 0)})
                 .out(pixels.type(), {pixels.dim(0), pixels.dim(1), Dim::known(pixels.dim(2).value + rows),
                                      Dim::known(pixels.dim(3).value + columns)});
  Value x =
      conv2d(patches["projection"], pixels, {.channels = c.embed_dim, .kernel = c.patch_size, .stride = c.patch_size});
  if (!x) return {};
  grid = {x.dim(2).value, x.dim(3).value};
  x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
  x = layer_norm(s["norm"], x, 1e-5);
  if (!c.use_absolute_embeddings) return x;
  // As long as the tokens and one more, so that transformers itself takes them only for a single window of one token.
  b.fail({ErrorCode::unsupported, "use_absolute_embeddings is true, which transformers cannot run either", "", ""});
  return x;
}

}  // namespace

Value swin_block(const Scope& s, const SwinConfig& c, const SwinBlock& block, Value x) {
  if (c.second) {
    const Value y = layer_norm(s["layernorm_before"], windowed_attention(s, c, block, x), c.layer_norm_eps);
    x = add(s, x, y);
    return add(s, x, layer_norm(s["layernorm_after"], feed_forward(s, c, x), c.layer_norm_eps));
  }
  x = add(s, x, windowed_attention(s, c, block, layer_norm(s["layernorm_before"], x, c.layer_norm_eps)));
  return add(s, x, feed_forward(s, c, layer_norm(s["layernorm_after"], x, c.layer_norm_eps)));
}

SwinStages swin_encoder(const Scope& s, const SwinConfig& c, Value pixels, bool whole_windows) {
  if (!expect_fixed_size(s, pixels, "windows")) return {};
  SwinStages stages;
  Grid grid{}, planned = c.patch_grid();
  Value x = embeddings(s("embeddings", c.name("Embeddings")), c, pixels, grid);
  stages.stem = x;
  const Scope encoder = s("encoder", c.name("Encoder"));
  for (std::size_t i = 0; i < c.depths.size() && x; ++i) {
    const Scope stage = encoder("layers", static_cast<std::int64_t>(i), c.name("Stage"));
    for (std::int64_t j = 0; j < c.depths[i]; ++j)
      x = swin_block(stage("blocks", j, c.name("Layer")), c,
                     {c.num_heads[i], j % 2 == 0 ? 0 : c.window_size / 2, c.pretrained_window_sizes[i], planned, grid,
                      whole_windows},
                     x);
    stages.tokens.push_back(x);
    stages.grids.push_back(grid);
    if (i + 1 == c.depths.size()) break;
    x = patch_merging(stage("downsample", c.name("PatchMerging")), c, x, grid);
    grid = {(grid[0] + 1) / 2, (grid[1] + 1) / 2};
    planned = {planned[0] / 2, planned[1] / 2};
  }
  return stages;
}

namespace {

Value swin_model(const Scope& s, const SwinConfig& c, const ImageInputs& in) {
  expect_image(s, in.pixel_values, {.channels = c.num_channels});
  const SwinStages stages = swin_encoder(s, c, in.pixel_values);
  return stages.tokens.empty() ? Value() : layer_norm(s["layernorm"], stages.tokens.back(), c.layer_norm_eps);
}

Outputs hidden_states(const Scope& root, const SwinConfig& c, const ImageInputs& in) {
  return {swin_model(root, c, in)};
}

Outputs image_classifier(const Scope& root, const SwinConfig& c, const ImageInputs& in) {
  const Scope base = root(c.second ? "swinv2" : "swin", c.name("Model"));
  const Value pooled = reduce_mean(base, swin_model(base, c, in), {1}, false);
  return {c.num_labels > 0 ? linear(root["classifier"], pooled, c.num_labels) : pooled};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const SwinConfig c = SwinConfig::read(request.family, request.config);
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

const Family swin = family_of("swin", "Swin");
const Family swinv2 = family_of("swinv2", "Swinv2");

}  // namespace mk::models
