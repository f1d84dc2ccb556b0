// SAM's prompt encoder and mask decoder.

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "models/sam.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

SamMaskConfig SamMaskConfig::read(std::string_view stem, bool second, ConfigReader& fields) {
  SamMaskConfig c;
  c.stem = stem;
  c.second = second;
  ConfigReader prompt = fields.section("prompt_encoder_config"), decoder = fields.section("mask_decoder_config");
  const auto size = [](ConfigReader& from, std::string_view key, std::int64_t& field) {
    field = from.size(key, field);
  };
  SamPromptConfig& p = c.prompt;
  size(prompt, "hidden_size", p.hidden_size);
  size(prompt, "image_size", p.image_size);
  size(prompt, "patch_size", p.patch_size);
  size(prompt, "mask_input_channels", p.mask_input_channels);
  size(prompt, "num_point_embeddings", p.num_point_embeddings);
  p.hidden_act = prompt.string("hidden_act", p.hidden_act);
  p.layer_norm_eps = prompt.number("layer_norm_eps", p.layer_norm_eps);
  p.num_pos_feats = second ? p.hidden_size / 2 : fields.section("vision_config").size("num_pos_feats", p.num_pos_feats);

  SamDecoderConfig& d = c.decoder;
  size(decoder, "hidden_size", d.hidden_size);
  size(decoder, "mlp_dim", d.mlp_dim);
  d.num_hidden_layers = decoder.count("num_hidden_layers", d.num_hidden_layers);
  size(decoder, "num_attention_heads", d.num_attention_heads);
  size(decoder, "attention_downsample_rate", d.attention_downsample_rate);
  if (second) d.block_downsample_rate = d.attention_downsample_rate;
  size(decoder, "num_multimask_outputs", d.num_multimask_outputs);
  d.iou_head_depth = decoder.count("iou_head_depth", d.iou_head_depth);
  size(decoder, "iou_head_hidden_dim", d.iou_head_hidden_dim);
  d.hidden_act = second ? "relu" : decoder.string("hidden_act", d.hidden_act);
  d.layer_norm_eps = second ? 1e-5 : decoder.number("layer_norm_eps", d.layer_norm_eps);

  for (const std::int64_t rate : {std::int64_t{1}, d.attention_downsample_rate, d.block_downsample_rate})
    if (d.hidden_size / rate < 1 || (d.hidden_size / rate) % d.num_attention_heads != 0)
      decoder.fail(ErrorCode::malformed, fmt::format("hidden_size {} / {} is not a multiple of num_attention_heads {}",
                                                     d.hidden_size, rate, d.num_attention_heads));
  if (d.hidden_size < 8 || p.hidden_size != d.hidden_size || 2 * p.num_pos_feats != p.hidden_size)
    decoder.fail(ErrorCode::malformed,
                 fmt::format("the widths of prompt encoder, mask decoder and positions do not fit together: {}, {} and "
                             "twice {}",
                             p.hidden_size, d.hidden_size, p.num_pos_feats));
  if (p.mask_input_channels < 4 || p.side() < 1 || p.num_point_embeddings < 2)
    prompt.fail(ErrorCode::malformed, "mask_input_channels, image_size or num_point_embeddings is too small");
  constexpr std::int64_t most_masks = 1000;
  if (d.num_multimask_outputs > most_masks)
    decoder.fail(ErrorCode::malformed, fmt::format("num_multimask_outputs is {}", d.num_multimask_outputs));
  return c;
}

Value channels_layer_norm(const Scope& s, Value x, double epsilon) {
  return transpose(s, layer_norm(s, transpose(s, x, {0, 2, 3, 1}), epsilon), {0, 3, 1, 2});
}

namespace {

// Sines and cosines of x [..., 2] in [0, 1], by random frequencies (Tancik et al. 2020): [..., 2 * num_pos_feats].
Value fourier_features(const Scope& s, const SamPromptConfig& c, Value x) {
  Value angles = matmul(s, sub(s, mul(s, x, 2), 1), s.weight("positional_embedding", {2, c.num_pos_feats}));
  angles = mul(s, angles, 2 * std::numbers::pi);
  return concat(s, {unary(s, "Sin", angles), unary(s, "Cos", angles)}, -1);
}

// Where the pixels of the embedding are, [side * side, hidden_size].
Value image_positions(const Scope& root, const SamMaskConfig& c) {
  const Scope s = root("shared_image_embedding", c.name("PositionalEmbedding"));
  const std::int64_t side = c.prompt.side();
  constexpr std::int64_t most = 4096;
  if (side > most) {
    root.builder().fail({ErrorCode::malformed, fmt::format("the image's embedding has {} rows", side),
                         "prompt_encoder_config", "Check its image_size and patch_size"});
    return {};
  }
  std::vector<float> places;
  for (std::int64_t row = 0; row < side; ++row)
    for (std::int64_t column = 0; column < side; ++column)
      for (const std::int64_t at : {column, row})
        places.push_back((static_cast<float>(at) + 0.5F) / static_cast<float>(side));
  const DataType type = root.builder().float_type();
  const Value grid = root.builder().initializer(
      {"image_places", type, {side * side, 2}, cast(owned_values(places), DataType::float32, type)});
  return fourier_features(s, c.prompt, grid);
}

// [batch * sets, points + 1, hidden_size]: after the points given comes one that is none.
Value embedded_points(const Scope& s, const SamMaskConfig& c, const SamPrompts& prompts) {
  const SamPromptConfig& p = c.prompt;
  const std::int64_t points = prompts.points.dim(2).value, width = p.hidden_size;
  const Value labels = reshape(s, prompts.labels, {rest, points, 1});
  Value x = reshape(s, prompts.points, {rest, points, 2});
  x = div(s, add(s, x, 0.5), static_cast<double>(p.image_size));
  x = fourier_features(s("shared_embedding", c.name("PositionalEmbedding")), p, x);
  if (!x || !labels) return {};

  // Ones and zeros instead of conditions.
  const auto number = [&](std::int64_t label) { return s.builder().scalar(labels.type(), static_cast<double>(label)); };
  const auto is = [&](std::int64_t label) { return cast(s, equal(s, labels, number(label)), x.type()); };
  const Value none = s["not_a_point_embed"].weight("weight", {1, width}), is_none = is(-1);
  x = mul(s, x, sub(s, 1, add(s, is_none, is(-10))));
  x = add(s, x, mul(s, none, is_none));
  if (c.second) {
    const Value kinds = s["point_embed"].weight("weight", {p.num_point_embeddings, width});
    const Value kind = Op(s, "Max", {labels, number(0)}).like(labels);
    const Value counts = cast(s, greater(s, labels, number(-1)), x.type());
    const Value looked_up = reshape(s, gather(s, kinds, kind), {rest, points, width});
    x = add(s, x, mul(s, looked_up, counts));
  } else {
    for (const std::int64_t label : {0, 1}) {
      const Value kind = s[fmt::format("point_embed.{}", label)].weight("weight", {1, width});
      x = add(s, x, mul(s, kind, is(label)));
    }
  }
  return concat(s, {x, expand_batch(s, unsqueeze(s, none, 0), x)}, 1);
}

Value embedded_mask(const Scope& s, const SamMaskConfig& c, Value mask) {
  const std::int64_t quarter = c.prompt.mask_input_channels / 4;
  const std::string norm = c.name("LayerNorm"), act = c.prompt.hidden_act;
  const double epsilon = c.prompt.layer_norm_eps;
  const auto step = [&](int index, Value x, std::int64_t channels) {
    const Convolution half{.channels = channels, .kernel = {2, 2}, .stride = {2, 2}};
    x = conv2d(s[fmt::format("conv{}", index)], x, half);
    x = channels_layer_norm(s(fmt::format("layer_norm{}", index), norm), x, epsilon);
    return activation(s, "activation", act, x);
  };
  const Value x = step(2, step(1, mask, quarter), c.prompt.mask_input_channels);
  return conv2d(s["conv3"], x, {.channels = c.prompt.hidden_size, .kernel = {1, 1}});
}

// What is added to the image's embedding: that of a mask, of none, or of both as use_mask says.
Value dense_prompt(const Scope& s, const SamMaskConfig& c, const SamPrompts& prompts) {
  const Value none = reshape(s, s["no_mask_embed"].weight("weight", {1, c.prompt.hidden_size}), {keep, rest, 1, 1});
  if (!prompts.mask) return none;
  const Value mask = embedded_mask(s("mask_embed", c.name("MaskEmbedding")), c, prompts.mask);
  if (!prompts.use_mask) return mask;
  const Value use = reshape(s, prompts.use_mask, {rest, 1, 1, 1});
  return add(s, mul(s, mask, use), mul(s, none, sub(s, 1, use)));
}

Value attention(const Scope& s, const SamMaskConfig& c, std::int64_t rate, Value query, Value key, Value value) {
  const SamDecoderConfig& d = c.decoder;
  const std::int64_t width = d.hidden_size / rate, heads = d.num_attention_heads;
  const Value q = split_heads(s, linear(s["q_proj"], query, width), heads);
  const Value k = split_keys(s, linear(s["k_proj"], key, width), heads);
  const Value v = split_heads(s, linear(s["v_proj"], value, width), heads);
  const Value scores = mul(s, matmul(s, q, k), 1 / std::sqrt(static_cast<double>(width / heads)));
  return linear(s[c.second ? "o_proj" : "out_proj"], attend(s, scores, {}, v), d.hidden_size);
}

// Layers of one width with ReLU between them.
Value feed_forward(const Scope& s, const SamMaskConfig& c, Value x, std::int64_t width, std::int64_t to,
                   std::int64_t layers) {
  const auto act = [&](Value y) {
    return c.second ? activation(s, "activation", "relu", y) : unary(s["activation"], "Relu", y);
  };
  x = act(linear(s["proj_in"], x, width));
  for (std::int64_t i = 0; i < layers - 2; ++i) x = act(linear(s[fmt::format("layers.{}", i)], x, width));
  return linear(s["proj_out"], x, to);
}

struct TokensAndImage {
  Value tokens, image;  // [batch, tokens, hidden_size], [batch, pixels, hidden_size]
};

TokensAndImage two_way_block(const Scope& s, const SamMaskConfig& c, TokensAndImage x, Value prompts, Value places,
                             bool first) {
  const SamDecoderConfig& d = c.decoder;
  const std::string class_name = c.name("Attention");
  const auto norm = [&](const char* name, Value y) { return layer_norm(s[name], y, d.layer_norm_eps); };
  const Scope self = s("self_attn", class_name);
  Value query = first ? x.tokens : add(s, x.tokens, prompts);
  const Value seen = attention(self, c, 1, query, query, x.tokens);
  x.tokens = norm("layer_norm1", first ? seen : add(s, x.tokens, seen));

  query = add(s, x.tokens, prompts);
  const Value key = add(s, x.image, places);
  const Value image_seen =
      attention(s("cross_attn_token_to_image", class_name), c, d.block_downsample_rate, query, key, x.image);
  x.tokens = norm("layer_norm2", add(s, x.tokens, image_seen));

  Value y;
  if (c.second) {
    y = feed_forward(s("mlp", c.name("FeedForward")), c, x.tokens, d.mlp_dim, d.hidden_size, d.num_hidden_layers);
  } else {
    const Scope mlp = s("mlp", c.name("MLPBlock"));
    y = activation(mlp, "act", d.hidden_act, linear(mlp["lin1"], x.tokens, d.mlp_dim));
    y = linear(mlp["lin2"], y, d.hidden_size);
  }
  x.tokens = norm("layer_norm3", add(s, x.tokens, y));

  query = add(s, x.tokens, prompts);
  const Value tokens_seen =
      attention(s("cross_attn_image_to_token", class_name), c, d.block_downsample_rate, key, query, x.tokens);
  x.image = norm("layer_norm4", add(s, x.image, tokens_seen));
  return x;
}

TokensAndImage two_way_transformer(const Scope& s, const SamMaskConfig& c, Value prompts, Value image, Value places) {
  const SamDecoderConfig& d = c.decoder;
  TokensAndImage x{prompts, image};
  for (std::int64_t i = 0; i < d.num_hidden_layers; ++i)
    x = two_way_block(s("layers", i, c.name("TwoWayAttentionBlock")), c, x, prompts, places, i == 0);
  const Value y = attention(s("final_attn_token_to_image", c.name("Attention")), c, d.attention_downsample_rate,
                            add(s, x.tokens, prompts), add(s, x.image, places), x.image);
  x.tokens = layer_norm(s["layer_norm_final_attn"], add(s, x.tokens, y), 1e-5);
  return x;
}

// [batch, ...] -> [batch * sets, ...], each as often as there are sets.
Value for_each_set(const Scope& s, Value x, std::int64_t sets) {
  if (!x || sets == 1) return x;
  std::vector<std::int64_t> times{1, sets}, sizes{rest};
  Shape shape{x.dim(0), Dim::known(sets)};
  for (int axis = 1; axis < x.rank(); ++axis) {
    times.push_back(1);
    sizes.push_back(x.dim(axis).value);
    shape.push_back(x.dim(axis));
  }
  const Value repeated =
      Op(s, "Expand", {unsqueeze(s, x, 1), s.builder().integers(std::move(times))}).out(x.type(), std::move(shape));
  return reshape(s, repeated, std::move(sizes));
}

// The image in eight times fewer channels and four times as many rows and columns.
Value upscaled(const Scope& s, const SamMaskConfig& c, Value x, Value quarter, Value half) {
  const std::int64_t width = c.decoder.hidden_size;
  x = upscaling_conv2d(s["upscale_conv1"], x, width / 4, 2);
  if (half) x = add(s, x, half);
  x = channels_layer_norm(s("upscale_layer_norm", c.name("LayerNorm")), x, 1e-6);
  x = upscaling_conv2d(s["upscale_conv2"], activate(s["activation"], "gelu", x), width / 8, 2);
  if (quarter) x = add(s, x, quarter);
  return activate(s["activation"], "gelu", x);
}

}  // namespace

SamMasks sam_masks(const Scope& root, const SamMaskConfig& c, const SamImage& image, const SamPrompts& prompts) {
  const SamDecoderConfig& d = c.decoder;
  if (!image.embedding || !prompts.points) return {};
  root.tie("prompt_encoder.shared_embedding.positional_embedding", "shared_image_embedding.positional_embedding");
  const std::int64_t sets = prompts.points.dim(1).value, width = d.hidden_size, side = c.prompt.side();
  const std::int64_t masks = d.num_multimask_outputs, first_mask = c.second ? 3 : 2;  // among the tokens
  const Scope encoder = root("prompt_encoder", c.name("PromptEncoder")),
              s = root("mask_decoder", c.name("MaskDecoder"));

  const Value sparse = embedded_points(encoder, c, prompts);
  const Value dense = add(encoder, image.embedding, dense_prompt(encoder, c, prompts));
  const Value pixels = transpose(s, reshape(s, dense, {keep, width, side * side}), {0, 2, 1});

  const Value iou = s["iou_token"].weight("weight", {1, width});
  const Value of_masks = s["mask_tokens"].weight("weight", {masks + 1, width});
  const Value own = c.second ? concat(s, {s["obj_score_token"].weight("weight", {1, width}), iou, of_masks}, 0)
                             : concat(s, {iou, of_masks}, 0);
  const Value tokens = concat(s, {expand_batch(s, unsqueeze(s, own, 0), sparse), sparse}, 1);
  const TokensAndImage x = two_way_transformer(s("transformer", c.name("TwoWayTransformer")), c, tokens,
                                               for_each_set(s, pixels, sets), image_positions(root, c));

  const Value fine = upscaled(s, c, reshape(s, transpose(s, x.image, {0, 2, 1}), {keep, width, side, side}),
                              for_each_set(s, image.quarter, sets), for_each_set(s, image.half, sets));
  if (!fine) return {};
  // A mask is the image's channels weighted as its token says.
  std::vector<Value> weights;
  for (std::int64_t i = 0; i < masks; ++i) {
    const Scope mlp = s("output_hypernetworks_mlps", i + 1, c.name("FeedForward"));
    const Value token = take(s, x.tokens, 1, first_mask + i);
    weights.push_back(unsqueeze(s, feed_forward(mlp, c, token, width, width / 8, 3), 1));
    if (!weights.back()) return {};
  }
  const Value all = Op(s, "Concat", weights)
                        .with("axis", 1)
                        .out(fine.type(), {fine.dim(0), Dim::known(masks), Dim::known(width / 8)});
  const std::int64_t height = fine.dim(2).value, columns = fine.dim(3).value;
  const Value drawn = matmul(s, all, reshape(s, fine, {keep, keep, rest}));

  const Scope iou_head = s("iou_prediction_head", c.name("FeedForward"));
  Value scores = feed_forward(iou_head, c, take(s, x.tokens, 1, first_mask - 2), d.iou_head_hidden_dim, masks + 1,
                              d.iou_head_depth);
  if (c.second) scores = unary(iou_head, "Sigmoid", scores);
  return {reshape(s, drawn, {rest, sets, masks, height, columns}),
          reshape(s, slice(s, scores, 1, 1, to_the_end), {rest, sets, masks})};
}

}  // namespace mk::models
