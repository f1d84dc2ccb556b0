#include "models/beit.h"

#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"
#include "nn/resample.h"

namespace mk::models {

using namespace nn;

BeitConfig BeitConfig::read(ConfigReader& fields) {
  BeitConfig c;
  c.hidden_size = fields.size("hidden_size", c.hidden_size);
  c.num_hidden_layers = fields.count("num_hidden_layers", c.num_hidden_layers);
  c.num_attention_heads = fields.size("num_attention_heads", c.num_attention_heads);
  c.intermediate_size = fields.size("intermediate_size", c.intermediate_size);
  c.hidden_act = fields.string("hidden_act", c.hidden_act);
  c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
  c.image_size = fields.pair("image_size", 224);
  c.patch_size = fields.pair("patch_size", 16);
  c.num_channels = fields.size("num_channels", c.num_channels);
  c.use_absolute_position_embeddings = fields.boolean("use_absolute_position_embeddings", false);
  c.use_relative_position_bias = fields.boolean("use_relative_position_bias", false);
  c.use_shared_relative_position_bias = fields.boolean("use_shared_relative_position_bias", false);
  c.layer_scale_init_value = fields.number("layer_scale_init_value", c.layer_scale_init_value);
  c.use_mean_pooling = fields.boolean("use_mean_pooling", c.use_mean_pooling);
  c.num_labels = fields.num_labels();
  c.pruned_heads = fields.pruned_heads(c.num_attention_heads);
  c.stages = backbone_stages(fields, c.num_hidden_layers);
  c.reshape_hidden_states = fields.boolean("reshape_hidden_states", c.reshape_hidden_states);
  c.add_fpn = fields.boolean("add_fpn", c.add_fpn);
  c.batch_norm_eps = fields.number("batch_norm_eps", c.batch_norm_eps);
  if (!c.pruned_heads.empty() && (c.use_relative_position_bias || c.use_shared_relative_position_bias))
    fields.fail(ErrorCode::unsupported,
                "pruned_heads together with relative position biases, which fit all heads only");
  if (c.hidden_size % c.num_attention_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                  c.hidden_size, c.num_attention_heads));
  if (c.patch_grid()[0] < 1 || c.patch_grid()[1] < 1)
    fields.fail(ErrorCode::malformed, "image_size is below patch_size");
  return c;
}

namespace {

using Grid = std::array<std::int64_t, 2>;

// Which row of the bias table each pair of tokens takes; the last three are those of the class token.
Value pair_index(const Scope& s, Grid grid) {
  const auto [rows, columns] = grid;
  const std::int64_t tokens = rows * columns + 1, distances = (2 * rows - 1) * (2 * columns - 1);
  std::vector<std::int64_t> index;
  index.reserve(static_cast<std::size_t>(tokens * tokens));
  for (std::int64_t from = -1; from < tokens - 1; ++from)
    for (std::int64_t to = -1; to < tokens - 1; ++to) {
      if (from < 0 || to < 0)
        index.push_back(distances + (from >= 0 ? 1 : to >= 0 ? 0 : 2));
      else
        index.push_back((from / columns - to / columns + rows - 1) * (2 * columns - 1) + from % columns - to % columns +
                        columns - 1);
    }
  return s.builder().constant(fmt::format("constant/token_pairs/{}x{}", rows, columns), DataType::int64,
                              {tokens * tokens}, owned_values(index));
}

// [heads, tokens, tokens]; the table is made for the configuration's grid, and resampled to the one at hand.
Value relative_bias(const Scope& s, const BeitConfig& c, Grid grid) {
  const Grid learned = c.patch_grid();
  const std::int64_t height = 2 * learned[0] - 1, width = 2 * learned[1] - 1, heads = c.num_attention_heads;
  const Value table = s.weight("relative_position_bias_table", {height * width + 3, heads});
  // transformers reads the table as width x height.
  const Grid from{width, height}, to{2 * grid[0] - 1, 2 * grid[1] - 1};
  Value biases = table;
  if (from != to) {
    const Value distances = resample(s, slice(s, table, 0, 0, height * width), from, to, Resampling::bilinear);
    biases = concat(s, {distances, slice(s, table, 0, height * width, to_the_end)}, 0);
  }
  const std::int64_t tokens = grid[0] * grid[1] + 1;
  return transpose(s, reshape(s, gather(s, biases, pair_index(s, grid)), {tokens, tokens, heads}), {2, 0, 1});
}

Value positions(const Scope& s, const BeitConfig& c, Grid grid, bool same_size) {
  const Grid learned = c.patch_grid();
  const std::int64_t patches = learned[0] * learned[1];
  const Value table = s.weight("position_embeddings", {1, patches + 1, c.hidden_size});
  if (same_size && grid[0] * grid[1] == patches) return table;
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(patches)));
  if (side * side != patches) {
    s.builder().fail({ErrorCode::unsupported,
                      fmt::format("the {} positions are no square, which transformers cannot resample", patches), "",
                      ""});
    return {};
  }
  const Value learned_grid = reshape(s, slice(s, table, 1, 1, to_the_end), {patches, c.hidden_size});
  return concat(
      s,
      {slice(s, table, 1, 0, 1), unsqueeze(s, resample(s, learned_grid, {side, side}, grid, Resampling::bicubic), 0)},
      1);
}

Value self_attention(const Scope& s, const BeitConfig& c, std::int64_t heads, Grid grid, Value shared_bias, Value x) {
  const std::int64_t head_size = c.hidden_size / c.num_attention_heads, width = heads * head_size;
  const Value query = split_heads(s, linear(s["query"], x, width), heads);
  const Value key = split_keys(s, linear(s["key"], x, width, false), heads);
  const Value value = split_heads(s, linear(s["value"], x, width), heads);
  Value scores = mul(s, matmul(s, query, key), 1 / std::sqrt(static_cast<double>(head_size)));
  if (c.use_relative_position_bias)
    scores = add(s, scores, relative_bias(s("relative_position_bias", "BeitRelativePositionBias"), c, grid));
  if (shared_bias) scores = add(s, scores, shared_bias);
  return attend(s, scores, {}, value);
}

Value layer(const Scope& s, const BeitConfig& c, std::int64_t index, Grid grid, Value shared_bias, Value x) {
  const auto scaled = [&](const char* name, Value y) {
    return c.layer_scale_init_value > 0 ? mul(s, s.weight(name, {c.hidden_size}), y) : y;
  };
  const Scope attention = s("attention", "BeitAttention");
  Value y = self_attention(attention("attention", "BeitSelfAttention"), c,
                           heads_of(index, c.num_attention_heads, c.pruned_heads), grid, shared_bias,
                           layer_norm(s["layernorm_before"], x, c.layer_norm_eps));
  y = linear(attention("output", "BeitSelfOutput")["dense"], y, c.hidden_size);
  x = add(s, scaled("lambda_1", y), x);
  const Scope up = s("intermediate", "BeitIntermediate"), down = s("output", "BeitOutput");
  y = linear(up["dense"], layer_norm(s["layernorm_after"], x, c.layer_norm_eps), c.intermediate_size);
  y = linear(down["dense"], activation(up, "intermediate_act_fn", c.hidden_act, y), c.hidden_size);
  return add(s, scaled("lambda_2", y), x);
}

}  // namespace

std::vector<Value> beit_layers(const Scope& s, const BeitConfig& c, Value pixels) {
  expect_image(s, pixels, {.channels = c.num_channels});
  if (!expect_fixed_size(s, pixels, "positions")) return {Value()};
  const Scope embeddings = s("embeddings", "BeitEmbeddings");
  const Scope patches = embeddings("patch_embeddings", "BeitPatchEmbeddings");
  Value x = conv2d(patches["projection"], pixels,
                   {.channels = c.hidden_size, .kernel = c.patch_size, .stride = c.patch_size});
  if (!x) return {Value()};
  const Grid grid{x.dim(2).value, x.dim(3).value};
  x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
  x = concat(embeddings, {expand_batch(embeddings, embeddings.weight("cls_token", {1, 1, c.hidden_size}), pixels), x},
             1);
  if (c.use_absolute_position_embeddings)
    x = add(embeddings, x, positions(embeddings, c, grid, pixels.dim(2).value == pixels.dim(3).value));

  const Scope encoder = s("encoder", "BeitEncoder");
  Value shared_bias;
  if (c.use_shared_relative_position_bias)
    shared_bias = relative_bias(encoder("relative_position_bias", "BeitRelativePositionBias"), c, grid);
  std::vector<Value> tokens{x};
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i)
    tokens.push_back(layer(encoder("layer", i, "BeitLayer"), c, i, grid, shared_bias, tokens.back()));
  return tokens;
}

namespace {

Value model(const Scope& s, const BeitConfig& c, const ImageInputs& in) {
  const Value x = beit_layers(s, c, in.pixel_values).back();
  return c.use_mean_pooling ? x : layer_norm(s["layernorm"], x, c.layer_norm_eps);
}

Outputs hidden_states(const Scope& root, const BeitConfig& c, const ImageInputs& in) { return {model(root, c, in)}; }

Outputs image_classifier(const Scope& root, const BeitConfig& c, const ImageInputs& in) {
  const Scope base = root("beit", "BeitModel"), pooler = base("pooler", "BeitPooler");
  const Value x = model(base, c, in);
  const Value pooled =
      c.use_mean_pooling
          ? layer_norm(pooler["layernorm"], reduce_mean(pooler, slice(pooler, x, 1, 1, to_the_end), {1}, false),
                       c.layer_norm_eps)
          : take(pooler, x, 1, 0);
  return {c.num_labels > 0 ? linear(root["classifier"], pooled, c.num_labels) : pooled};
}

// From one resolution to four: that of the patches times four, times two, the same and half of it.
void pyramid(const Scope& s, const BeitConfig& c, std::vector<Value>& maps) {
  Value x = upscaling_conv2d(s["fpn1.0"], maps[0], c.hidden_size, 2);
  x = activate(s, "gelu", batch_norm(s["fpn1.1"], x, c.batch_norm_eps));
  maps[0] = upscaling_conv2d(s["fpn1.3"], x, c.hidden_size, 2);
  maps[1] = upscaling_conv2d(s["fpn2.0"], maps[1], c.hidden_size, 2);
  maps[3] = max_pool2d(s["fpn4"], maps[3], 2, 2, 0);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const BeitConfig c = BeitConfig::read(request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = c.image_size});
}

}  // namespace

FeatureMaps beit_backbone(const Scope& s, const BeitConfig& c, Value pixels) {
  const std::vector<Value> tokens = beit_layers(s, c, pixels);
  if (!tokens.back()) return {};
  const std::int64_t height = pixels.dim(2).value / c.patch_size[0], width = pixels.dim(3).value / c.patch_size[1];
  FeatureMaps features{{}, c.stages};
  for (const std::int64_t stage : c.stages) {
    Value x = tokens[static_cast<std::size_t>(stage)];
    if (c.reshape_hidden_states) {
      x = transpose(s, slice(s, x, 1, 1, to_the_end), {0, 2, 1});
      x = reshape(s, x, {keep, keep, height, width});
    }
    features.maps.push_back(x);
  }
  if (c.add_fpn && features.maps.size() == 4)
    pyramid(s, c, features.maps);
  else if (c.add_fpn)
    s.builder().fail({ErrorCode::malformed,
                      fmt::format("add_fpn needs four stages, and out_indices names {}", features.maps.size()), "",
                      ""});
  return features;
}

const Family beit{
    .model_type = "beit",
    .stem = "Beit",
    .prefix = "beit",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>},
        },
};

}  // namespace mk::models
