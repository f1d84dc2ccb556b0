#include "models/wav2vec2.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"
#include "nn/weight_norm.h"

namespace mk::models {

using namespace nn;

Wav2Vec2Config Wav2Vec2Config::read(const Family& family, ConfigReader& fields) {
  Wav2Vec2Config c;
  c.stem = family.stem;
  c.prefix = family.prefix;
  const auto size = [&](std::string_view key, std::int64_t& field) { field = fields.size(key, field); };
  const auto flag = [&](std::string_view key, bool& field) { field = fields.boolean(key, field); };
  size("vocab_size", c.vocab_size);
  size("hidden_size", c.hidden_size);
  c.num_hidden_layers = fields.count("num_hidden_layers", c.num_hidden_layers);
  size("num_attention_heads", c.num_attention_heads);
  size("intermediate_size", c.intermediate_size);
  size("classifier_proj_size", c.classifier_proj_size);
  c.num_labels = fields.num_labels();
  c.hidden_act = fields.string("hidden_act", c.hidden_act);
  c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
  c.feat_extract_norm = fields.string("feat_extract_norm", c.feat_extract_norm);
  c.feat_extract_activation = fields.string("feat_extract_activation", c.feat_extract_activation);
  c.conv_dim = fields.sizes("conv_dim", {512, 512, 512, 512, 512, 512, 512});
  c.conv_stride = fields.sizes("conv_stride", {5, 2, 2, 2, 2, 2, 2});
  c.conv_kernel = fields.sizes("conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  flag("conv_bias", c.conv_bias);
  flag("feat_proj_layer_norm", c.feat_proj_layer_norm);
  size("num_conv_pos_embeddings", c.num_conv_pos_embeddings);
  size("num_conv_pos_embedding_groups", c.num_conv_pos_embedding_groups);
  flag("conv_pos_batch_norm", c.conv_pos_batch_norm);
  flag("do_stable_layer_norm", c.do_stable_layer_norm);
  flag("use_weighted_layer_sum", c.use_weighted_layer_sum);
  if (fields.has("adapter_attn_dim")) size("adapter_attn_dim", c.adapter_attn_dim);
  flag("add_adapter", c.add_adapter);
  size("adapter_kernel_size", c.adapter_kernel_size);
  size("adapter_stride", c.adapter_stride);
  c.num_adapter_layers = fields.count("num_adapter_layers", c.num_adapter_layers);
  c.output_hidden_size = fields.integer("output_hidden_size", 0);
  if (c.output_hidden_size == 0) c.output_hidden_size = c.hidden_size;
  c.tdnn_dim = fields.sizes("tdnn_dim", {512, 512, 512, 512, 1500});
  c.tdnn_kernel = fields.sizes("tdnn_kernel", {5, 3, 3, 1, 1});
  c.tdnn_dilation = fields.sizes("tdnn_dilation", {1, 2, 3, 1, 1});
  size("xvector_output_dim", c.xvector_output_dim);
  c.pooling_mode = fields.string("pooling_mode", c.pooling_mode);

  if (c.hidden_size % c.num_attention_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                  c.hidden_size, c.num_attention_heads));
  if (c.conv_dim.size() != c.conv_stride.size() || c.conv_dim.size() != c.conv_kernel.size())
    fields.fail(ErrorCode::malformed,
                fmt::format("conv_dim, conv_stride and conv_kernel have {}, {} and {} values, expected as many of each",
                            c.conv_dim.size(), c.conv_stride.size(), c.conv_kernel.size()));
  if (c.feat_extract_norm != "group" && c.feat_extract_norm != "layer")
    fields.fail(ErrorCode::malformed,
                fmt::format("feat_extract_norm is \"{}\", expected group or layer", c.feat_extract_norm));
  if (c.output_hidden_size < 1 || c.output_hidden_size > INT32_MAX)
    fields.fail(ErrorCode::malformed, fmt::format("output_hidden_size is {}", c.output_hidden_size));
  return c;
}

WaveInputs WaveInputs::read(const Scope& root, HeadContext& context) {
  const Value wave = context.input("input_values");
  if (!wave || wave.rank() != 2 || !is_float(wave.type()))
    root.builder().fail(
        {ErrorCode::usage,
         fmt::format("{} needs input_values among its inputs, floats [batch, samples]", root.module().class_name), "",
         ""});
  return {wave};
}

Result<std::vector<InputSpec>> wave_inputs(InputRequest& request) {
  Wav2Vec2Config::read(request.family, request.config);
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  constexpr std::int64_t one_second = 16000;
  const auto asked = request.shapes.values.find("audio_sequence_length");
  const std::int64_t length = asked == request.shapes.values.end() ? one_second : asked->second;
  if (length < 1) return fail(ErrorCode::usage, fmt::format("audio_sequence_length is {}, expected 1 or more", length));
  return std::vector{InputSpec{"input_values", DataType::float32, static_shape({request.shapes.batch_size, length}),
                               ValueRange{-1, 1}}};
}

namespace {

Value swapped(const Scope& s, Value x) { return transpose(s, x, {0, 2, 1}); }

// [batch, samples] -> [batch, conv_dim, frames]
Value feature_encoder(const Scope& s, const Wav2Vec2Config& c, Value wave) {
  Value x = unsqueeze(s, wave, 1);
  for (std::size_t i = 0; i < c.conv_dim.size(); ++i) {
    const bool by_layer = c.feat_extract_norm == "layer", by_group = !by_layer && i == 0;
    const Scope layer = s("conv_layers", static_cast<std::int64_t>(i),
                          c.name(by_layer   ? "LayerNormConvLayer"
                                 : by_group ? "GroupNormConvLayer"
                                            : "NoLayerNormConvLayer"));
    x = conv1d(
        layer["conv"], x,
        {.channels = c.conv_dim[i], .kernel = c.conv_kernel[i], .stride = c.conv_stride[i], .bias = c.conv_bias});
    constexpr double epsilon = 1e-5;
    if (by_group) x = channel_norm(layer["layer_norm"], x, epsilon);
    if (by_layer) x = swapped(layer, layer_norm(layer["layer_norm"], swapped(layer, x), epsilon));
    x = activation(layer, "activation", c.feat_extract_activation, x);
  }
  return x;
}

// What a convolution over neighbouring frames says of their positions.
Value position_embeddings(const Scope& s, const Wav2Vec2Config& c, Value x) {
  const std::int64_t width = c.hidden_size, kernel = c.num_conv_pos_embeddings, before = kernel / 2;
  const std::int64_t after = kernel % 2 == 0 ? before - 1 : before;  // as many frames as there were
  const std::int64_t groups = c.num_conv_pos_embedding_groups;
  const Convolution1d convolution{.channels = width, .kernel = kernel, .groups = groups, .padding = {before, after}};
  Value y = swapped(s, x);
  if (c.conv_pos_batch_norm) {
    s["batch_norm"].is_a("BatchNorm1d");
    y = conv1d(s["conv"], batch_norm(s["batch_norm"], y), convolution);
  } else {
    y = conv1d(s["conv"], y, normed_weight(s["conv"], width, width / groups, kernel), convolution);
  }
  return swapped(s, activation(s, "activation", c.feat_extract_activation, y));
}

Value attention(const Scope& s, const Wav2Vec2Config& c, Value x) {
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const Value query = split_heads(s, linear(s["q_proj"], x, width), heads);
  const Value key = split_keys(s, linear(s["k_proj"], x, width), heads);
  const Value value = split_heads(s, linear(s["v_proj"], x, width), heads);
  const Value scores = mul(s, matmul(s, query, key), 1 / std::sqrt(static_cast<double>(width / heads)));
  return linear(s["out_proj"], attend(s, scores, {}, value), width);
}

Value feed_forward(const Scope& s, const Wav2Vec2Config& c, Value x) {
  x = activation(s, "intermediate_act_fn", c.hidden_act, linear(s["intermediate_dense"], x, c.intermediate_size));
  return linear(s["output_dense"], x, c.hidden_size);
}

Value attention_adapter(const Scope& s, const Wav2Vec2Config& c, Value x) {
  constexpr double epsilon = 1e-5;
  Value y = linear(s["linear_1"], layer_norm(s["norm"], x, epsilon), c.adapter_attn_dim);
  return linear(s["linear_2"], activation(s, "act_fn", "relu", y), c.hidden_size);
}

Value layer(const Scope& s, const Wav2Vec2Config& c, Value x) {
  const Scope first = s["layer_norm"], last = s["final_layer_norm"];
  const Scope attend_to = s("attention", c.name("Attention")), dense = s("feed_forward", c.name("FeedForward"));
  if (!c.do_stable_layer_norm) {
    x = layer_norm(first, add(s, x, attention(attend_to, c, x)), c.layer_norm_eps);
    return layer_norm(last, add(s, x, feed_forward(dense, c, x)), c.layer_norm_eps);
  }
  x = add(s, x, attention(attend_to, c, layer_norm(first, x, c.layer_norm_eps)));
  x = add(s, x, feed_forward(dense, c, layer_norm(last, x, c.layer_norm_eps)));
  if (c.adapter_attn_dim == 0) return x;
  return add(s, x, attention_adapter(s("adapter_layer", c.name("AttnAdapterLayer")), c, x));
}

Wav2Vec2States encoder(const Scope& s, const Wav2Vec2Config& c, Value x, bool all) {
  const bool stable = c.do_stable_layer_norm;
  x = add(s, x, position_embeddings(s("pos_conv_embed", c.name("PositionalConvEmbedding")), c, x));
  if (!stable) x = layer_norm(s["layer_norm"], x, c.layer_norm_eps);
  Wav2Vec2States states;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    if (all) states.all.push_back(x);
    x = layer(s("layers", i, c.name(stable ? "EncoderLayerStableLayerNorm" : "EncoderLayer")), c, x);
  }
  if (stable) x = layer_norm(s["layer_norm"], x, c.layer_norm_eps);
  if (all) states.all.push_back(x);
  states.last = x;
  return states;
}

// Fewer frames: strided convolutions, half of whose channels gate the other half.
Value adapter(const Scope& s, const Wav2Vec2Config& c, Value x) {
  const std::int64_t width = c.output_hidden_size;
  if (width != c.hidden_size) x = layer_norm(s["proj_layer_norm"], linear(s["proj"], x, width), 1e-5);
  x = swapped(s, x);
  for (std::int64_t i = 0; i < c.num_adapter_layers; ++i) {
    const Scope layer = s("layers", i, c.name("AdapterLayer"));
    const Value y =
        conv1d(layer["conv"], x,
               {.channels = 2 * width, .kernel = c.adapter_kernel_size, .stride = c.adapter_stride, .padding = {1, 1}});
    x = mul(layer, slice(layer, y, 1, 0, width), unary(layer, "Sigmoid", slice(layer, y, 1, width, 2 * width)));
  }
  return swapped(s, x);
}

}  // namespace

Wav2Vec2States wav2vec2_model(const Scope& s, const Wav2Vec2Config& c, const WaveInputs& in, bool all) {
  const Value features =
      swapped(s, feature_encoder(s("feature_extractor", c.name("FeatureEncoder")), c, in.input_values));
  const Scope projection = s("feature_projection", c.name("FeatureProjection"));
  Value x = c.feat_proj_layer_norm ? layer_norm(projection["layer_norm"], features, c.layer_norm_eps) : features;
  x = linear(projection["projection"], x, c.hidden_size);
  const std::string encoder_name = c.name(c.do_stable_layer_norm ? "EncoderStableLayerNorm" : "Encoder");
  Wav2Vec2States states = encoder(s("encoder", encoder_name), c, x, all);
  if (c.add_adapter) states.last = adapter(s("adapter", c.name("Adapter")), c, states.last);
  return states;
}

}  // namespace mk::models
