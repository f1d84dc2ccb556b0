// DETR (Carion et al. 2020) as transformers' DetrForObjectDetection, and Table Transformer (Smock et al. 2021), which
// normalizes before its layers. The whole image counts: there is no pixel_mask.

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "models/detection.h"
#include "models/families.h"
#include "models/image.h"
#include "models/resnet.h"
#include "models/timm_resnet.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct DetrConfig {
  std::string stem;
  bool norm_first = false;
  std::int64_t num_channels = 3;
  std::int64_t num_queries = 100;
  std::int64_t d_model = 256;
  std::int64_t encoder_layers = 6, encoder_ffn_dim = 2048, encoder_attention_heads = 8;
  std::int64_t decoder_layers = 6, decoder_ffn_dim = 2048, decoder_attention_heads = 8;
  std::string activation_function = "relu";
  bool auxiliary_loss = false;
  bool learned_positions = false;
  std::int64_t num_labels = 2;
  std::optional<TimmResNet> timm;
  ResNetConfig resnet;

  static DetrConfig read(const Family& family, ConfigReader& fields) {
    DetrConfig c;
    c.stem = family.stem;
    c.norm_first = family.model_type == "table-transformer";
    c.num_channels = fields.size("num_channels", c.num_channels);
    c.num_queries = fields.size("num_queries", c.num_queries);
    c.d_model = fields.size("d_model", fields.size("hidden_size", c.d_model));
    c.encoder_layers = fields.count("encoder_layers", c.encoder_layers);
    c.encoder_ffn_dim = fields.size("encoder_ffn_dim", c.encoder_ffn_dim);
    c.encoder_attention_heads = fields.size("encoder_attention_heads", c.encoder_attention_heads);
    c.decoder_layers = fields.count("decoder_layers", c.decoder_layers);
    c.decoder_ffn_dim = fields.size("decoder_ffn_dim", c.decoder_ffn_dim);
    c.decoder_attention_heads = fields.size("decoder_attention_heads", c.decoder_attention_heads);
    c.activation_function = fields.string("activation_function", c.activation_function);
    c.auxiliary_loss = fields.boolean("auxiliary_loss", c.auxiliary_loss);
    c.num_labels = fields.num_labels();
    for (const std::int64_t heads : {c.encoder_attention_heads, c.decoder_attention_heads})
      if (c.d_model % heads != 0)
        fields.fail(ErrorCode::malformed, fmt::format("d_model {} is not a multiple of {} heads", c.d_model, heads));
    const std::string positions = fields.string("position_embedding_type", "sine");
    c.learned_positions = positions == "learned";
    if (!c.learned_positions && positions != "sine")
      fields.fail(ErrorCode::malformed,
                  fmt::format("position_embedding_type is \"{}\", expected sine or learned", positions));
    if (c.d_model % 4 != 0)
      fields.fail(ErrorCode::malformed, fmt::format("d_model {} is not a multiple of 4", c.d_model));
    if (fields.boolean("use_timm_backbone", true)) {
      c.timm = TimmResNet::read(fields, c.num_channels);
      return c;
    }
    ConfigReader backbone = fields.section("backbone_config");
    const std::string type = backbone.config().model_type();
    if (fields.has("backbone_config") && type != "resnet")
      fields.fail(ErrorCode::unsupported,
                  fmt::format("backbone_config has the model type \"{}\", expected resnet", type));
    if (!fields.has("backbone_config") && fields.has("backbone") && fields.string("backbone", "") != "resnet50")
      fields.fail(ErrorCode::unsupported, "backbone is not supported without use_timm_backbone or a backbone_config");
    c.resnet = ResNetConfig::read(backbone);
    c.resnet.norm_class = c.name("FrozenBatchNorm2d");
    return c;
  }
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
};

// [1, height * width, d_model]: sines and cosines of the row, then of the column, both as shares of 2 pi.
Value sine_positions(const Scope& s, const DetrConfig& c, std::int64_t height, std::int64_t width) {
  if (!expect_affordable(s, height * width, c.d_model)) return {};
  const std::int64_t half = c.d_model / 2;
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(height * width * c.d_model));
  const auto put = [&](std::int64_t at, std::int64_t length) {
    const float share =
        static_cast<float>(at + 1) / (static_cast<float>(length) + 1e-6F) * static_cast<float>(2 * std::numbers::pi);
    for (std::int64_t i = 0; i < half; ++i) {
      const float angle = share / std::pow(10000.0F, static_cast<float>(i / 2 * 2) / static_cast<float>(half));
      values.push_back(i % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  };
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      put(y, height);
      put(x, width);
    }
  return float_constant(s, "position_embedding", {1, height * width, c.d_model}, values);
}

// The same shape: the column's learned vector, then the row's.
Value learned_positions(const Scope& s, const DetrConfig& c, std::int64_t height, std::int64_t width) {
  constexpr std::int64_t most = 50;
  Builder& b = s.builder();
  if (height > most || width > most) {
    b.fail({ErrorCode::usage,
            fmt::format("a feature map of {} x {} is beyond the model's {} learned positions", height, width, most), "",
            "Ask for a smaller height and width"});
    return {};
  }
  const std::int64_t half = c.d_model / 2;
  const auto spread = [&](const char* name, std::int64_t count, int axis) {
    const Value rows = b.rows(s[name].parameter("weight", {most, half}), 0, count);
    return Op(s, "Expand", {unsqueeze(s, rows, axis), b.integers({height, width, half})})
        .out(rows.type(), static_shape({height, width, half}));
  };
  const Value x = spread("column_embeddings", width, 0), y = spread("row_embeddings", height, 1);
  return reshape(s, concat(s, {x, y}, -1), {1, height * width, c.d_model});
}

Value feed_forward(const Scope& s, const DetrConfig& c, std::int64_t width, Value x) {
  x = activation(s, "activation_fn", c.activation_function, linear(s["fc1"], x, width));
  return linear(s["fc2"], x, c.d_model);
}

constexpr double norm_eps = 1e-5;

// x + block(norm(x)), or norm(x + block(x)).
template <typename Block>
Value residual(const Scope& s, const DetrConfig& c, const char* norm, Value x, Block block) {
  if (c.norm_first) return add(s, x, block(layer_norm(s[norm], x, norm_eps)));
  return layer_norm(s[norm], add(s, x, block(x)), norm_eps);
}

Value encode(const Scope& s, const DetrConfig& c, Value x, Value positions) {
  for (std::int64_t i = 0; i < c.encoder_layers; ++i) {
    const Scope layer = s("layers", i, c.name("EncoderLayer"));
    x = residual(layer, c, "self_attn_layer_norm", x, [&](Value y) {
      const Scope attention = layer("self_attn", c.name("Attention"));
      const Value query = add(attention, y, positions);
      return detection_attention(attention, c.encoder_attention_heads, query, query, y);
    });
    x = residual(layer, c, "final_layer_norm", x,
                 [&](Value y) { return feed_forward(layer, c, c.encoder_ffn_dim, y); });
  }
  return c.norm_first ? layer_norm(s["layernorm"], x, norm_eps) : x;
}

// Queries that begin as zeros, [1 or batch, queries, d_model].
Value decode(const Scope& s, const DetrConfig& c, Value queries, Value memory, Value positions) {
  if (!queries || !memory || !expect_affordable(s, c.num_queries, c.d_model)) return {};
  const std::vector<float> zeros(static_cast<std::size_t>(c.num_queries * c.d_model));
  Value x = float_constant(s, "queries", {1, c.num_queries, c.d_model}, zeros);
  const Value keys = add(s, memory, positions);
  for (std::int64_t i = 0; i < c.decoder_layers; ++i) {
    const Scope layer = s("layers", i, c.name("DecoderLayer"));
    x = residual(layer, c, "self_attn_layer_norm", x, [&](Value y) {
      const Scope attention = layer("self_attn", c.name("Attention"));
      const Value query = add(attention, y, queries);
      return detection_attention(attention, c.decoder_attention_heads, query, query, y);
    });
    x = residual(layer, c, "encoder_attn_layer_norm", x, [&](Value y) {
      const Scope attention = layer("encoder_attn", c.name("Attention"));
      return detection_attention(attention, c.decoder_attention_heads, add(attention, y, queries), keys, memory);
    });
    x = residual(layer, c, "final_layer_norm", x,
                 [&](Value y) { return feed_forward(layer, c, c.decoder_ffn_dim, y); });
    // What the auxiliary losses look at is normalized, and goes on to the next layer as it is.
    if (c.auxiliary_loss) x = layer_norm(s["layernorm"], x, norm_eps);
  }
  return layer_norm(s["layernorm"], x, norm_eps);
}

struct Decoded {
  Value queries, memory;
};
Decoded detr_model(const Scope& s, const DetrConfig& c, Value pixels) {
  expect_image(s, pixels, {.channels = c.num_channels});
  if (!patch_grid(s, pixels, {1, 1})) return {};
  const Scope backbone = s("backbone", c.name("ConvModel"));
  const Scope encoder = backbone("conv_encoder", c.name("ConvEncoder"));
  Value map;
  if (c.timm) {
    map = c.timm->last_map(encoder("model", "FeatureListNet"), c.name("FrozenBatchNorm2d"), pixels);
  } else {
    const FeatureMaps maps = resnet_backbone(encoder("model", "ResNetBackbone"), c.resnet, pixels);
    if (!maps.maps.empty()) map = maps.maps.back();
  }
  if (!map) return {};
  const Scope position = backbone("position_embedding",
                                  c.name(c.learned_positions ? "LearnedPositionEmbedding" : "SinePositionEmbedding"));
  const std::int64_t height = map.dim(2).value, width = map.dim(3).value;
  const Value positions =
      c.learned_positions ? learned_positions(position, c, height, width) : sine_positions(position, c, height, width);
  const Value projected = conv2d(s["input_projection"], map, {.channels = c.d_model, .kernel = {1, 1}});
  const Value x = transpose(s, reshape(s, projected, {keep, keep, rest}), {0, 2, 1});
  const Value memory = encode(s("encoder", c.name("Encoder")), c, x, positions);
  const Scope table = s["query_position_embeddings"];
  table.is_a("Embedding");
  const Value queries = unsqueeze(s, table.weight("weight", {c.num_queries, c.d_model}), 0);
  return {decode(s("decoder", c.name("Decoder")), c, queries, memory, positions), memory};
}

Outputs hidden_states(const Scope& root, const DetrConfig& c, const ImageInputs& in) {
  const Decoded x = detr_model(root, c, in.pixel_values);
  return {x.queries, x.memory};
}

Outputs detection(const Scope& root, const DetrConfig& c, const ImageInputs& in) {
  const Decoded x = detr_model(root("model", c.name("Model")), c, in.pixel_values);
  const Value logits = linear(root["class_labels_classifier"], x.queries, c.num_labels + 1);
  const Value boxes = detection_mlp(root("bbox_predictor", c.name("MLPPredictionHead")), x.queries, c.d_model, 4, 3);
  return {logits, unary(root, "Sigmoid", boxes), x.queries, x.memory};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const DetrConfig c = DetrConfig::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels});
}

std::vector<Head> heads() {
  return {
      {"object-detection",
       "ForObjectDetection",
       {"logits", "pred_boxes", "last_hidden_state", "encoder_last_hidden_state"},
       head<detection>},
      {"image-feature-extraction", "Model", {"last_hidden_state", "encoder_last_hidden_state"}, head<hidden_states>}};
}

}  // namespace

const Family detr{
    .model_type = "detr",
    .stem = "Detr",
    .prefix = "model",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads = heads(),
};

const Family table_transformer{
    .model_type = "table-transformer",
    .stem = "TableTransformer",
    .prefix = "model",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads = heads(),
};

}  // namespace mk::models
