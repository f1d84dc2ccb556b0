#include "models/rt_detr.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/detection.h"
#include "models/families.h"
#include "models/image.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

void read_backbone(RtDetrConfig& c, ConfigReader& fields) {
  const bool given = fields.has("backbone_config");
  ConfigReader backbone = fields.section("backbone_config");
  const std::string type = backbone.config().model_type();
  if (given && !type.empty() && type != "rt_detr_resnet" && type != "resnet")
    fields.fail(ErrorCode::unsupported,
                fmt::format("backbone_config has the model type \"{}\", expected rt_detr_resnet or resnet", type));
  if (fields.boolean("use_timm_backbone", false) || (!given && fields.has("backbone")))
    fields.fail(ErrorCode::unsupported, "use_timm_backbone and backbone are not supported; give a backbone_config");
  c.backbone = ResNetConfig::read(backbone);
  if (type.empty()) c.backbone.deep = true, c.backbone.stem = "RTDetrResNet";
  if (!given) c.backbone.stages = {2, 3, 4};
  if (fields.boolean("freeze_backbone_batch_norms", true)) c.backbone.norm_class = c.name("FrozenBatchNorm2d");
}

void read_decoder(RtDetrConfig& c, ConfigReader& fields) {
  c.d_model = fields.size("d_model", fields.size("hidden_size", c.d_model));
  c.num_queries = fields.size("num_queries", c.num_queries);
  c.decoder_ffn_dim = fields.size("decoder_ffn_dim", c.decoder_ffn_dim);
  c.decoder_attention_heads = fields.size("decoder_attention_heads", c.decoder_attention_heads);
  c.decoder_layers = fields.count("decoder_layers", c.decoder_layers);
  c.decoder_n_points = fields.count("decoder_n_points", c.decoder_n_points);
  c.decoder_activation_function = fields.string("decoder_activation_function", c.decoder_activation_function);
  c.learn_initial_query = fields.boolean("learn_initial_query", c.learn_initial_query);
  if (fields.has("anchor_image_size")) c.anchor_image_size = fields.sizes("anchor_image_size", {});
  if (!c.anchor_image_size.empty() && c.anchor_image_size.size() != 2)
    fields.fail(ErrorCode::malformed, "anchor_image_size is not a height and a width");
  const std::int64_t levels = fields.count("num_feature_levels", 3);
  const auto inputs = static_cast<std::int64_t>(fields.sizes("decoder_in_channels", {256, 256, 256}).size());
  if (levels != c.levels || inputs != c.levels)
    fields.fail(ErrorCode::unsupported, fmt::format("num_feature_levels is {} and decoder_in_channels has {} of them, "
                                                    "and the backbone gives {} maps",
                                                    levels, inputs, c.levels));
  if (c.second) {
    c.offset_scale = fields.number("decoder_offset_scale", c.offset_scale);
    const std::string method = fields.string("decoder_method", "default");
    c.discrete = method == "discrete";
    if (!c.discrete && method != "default")
      fields.fail(ErrorCode::malformed, fmt::format("decoder_method is \"{}\", expected default or discrete", method));
    if (fields.count("decoder_n_levels", 3) != levels)
      fields.fail(ErrorCode::malformed, "decoder_n_levels and num_feature_levels are not the same");
  }
  if (c.decoder_layers == 0 || c.decoder_n_points == 0)
    fields.fail(ErrorCode::malformed, "decoder_layers and decoder_n_points are 1 or more");
  if (c.d_model % c.decoder_attention_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("d_model {} is not a multiple of decoder_attention_heads {}",
                                                  c.d_model, c.decoder_attention_heads));
}

}  // namespace

RtDetrConfig RtDetrConfig::read(const Family& family, ConfigReader& fields) {
  RtDetrConfig c;
  c.stem = family.stem;
  c.second = family.model_type == "rt_detr_v2";
  read_backbone(c, fields);
  c.levels = static_cast<std::int64_t>(c.backbone.stages.size());
  c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
  c.batch_norm_eps = fields.number("batch_norm_eps", c.batch_norm_eps);
  c.num_labels = fields.num_labels();
  c.encoder_hidden_dim = fields.size("encoder_hidden_dim", c.encoder_hidden_dim);
  c.encoder_ffn_dim = fields.size("encoder_ffn_dim", c.encoder_ffn_dim);
  c.encoder_attention_heads =
      fields.size("encoder_attention_heads", fields.size("num_attention_heads", c.encoder_attention_heads));
  c.encoder_layers = fields.count("encoder_layers", c.encoder_layers);
  c.encode_proj_layers = fields.indices("encode_proj_layers", c.encode_proj_layers);
  c.feat_strides = fields.sizes("feat_strides", c.feat_strides);
  c.positional_encoding_temperature =
      fields.number("positional_encoding_temperature", c.positional_encoding_temperature);
  c.normalize_before = fields.boolean("normalize_before", c.normalize_before);
  c.encoder_activation_function = fields.string("encoder_activation_function", c.encoder_activation_function);
  c.activation_function = fields.mentions("activation_function") && !fields.has("activation_function")
                              ? ""
                              : fields.string("activation_function", c.activation_function);
  const double expansion = fields.number("hidden_expansion", 1);
  if (expansion > 0 && expansion < 1e4)
    c.csp_width = static_cast<std::int64_t>(static_cast<double>(c.encoder_hidden_dim) * expansion);
  else
    fields.fail(ErrorCode::malformed, fmt::format("hidden_expansion is {}, expected 0 to 10000", expansion));
  if (fields.has("eval_size") && c.encoder_layers > 0)
    fields.fail(ErrorCode::unsupported, "eval_size is not supported: the encoder has no positions with it",
                "Set it to null");
  const std::size_t maps = fields.sizes("encoder_in_channels", {512, 1024, 2048}).size();
  if (maps != c.backbone.stages.size())
    fields.fail(ErrorCode::malformed, fmt::format("encoder_in_channels has {} values, and the backbone gives {} maps",
                                                  maps, c.backbone.stages.size()));
  for (const std::int64_t map : c.encode_proj_layers)
    if (map >= c.levels) fields.fail(ErrorCode::malformed, fmt::format("encode_proj_layers has {}", map));
  if (c.encoder_hidden_dim % c.encoder_attention_heads != 0 || c.encoder_hidden_dim % 4 != 0)
    fields.fail(ErrorCode::malformed, fmt::format("encoder_hidden_dim {} is not a multiple of 4 and of {} heads",
                                                  c.encoder_hidden_dim, c.encoder_attention_heads));
  read_decoder(c, fields);
  return c;
}

namespace {

double largest(DataType type) {
  return type == DataType::float16    ? 65504.0
         : type == DataType::bfloat16 ? 3.3895313892515355e38
                                      : static_cast<double>(std::numeric_limits<float>::max());
}

// What boxes are before anything is learned, [1, points, 4] as logits, and where they are of use, [1, points, 1].
struct Anchors {
  Value boxes, valid;
};
Anchors anchors(const Scope& s, const std::vector<MapSize>& sizes) {
  const auto none = static_cast<float>(largest(s.builder().float_type()));
  std::vector<float> boxes, valid;
  bool all = true;
  float extent = 0.05F;
  for (const MapSize& size : sizes) {
    for (std::int64_t y = 0; y < size.height; ++y)
      for (std::int64_t x = 0; x < size.width; ++x) {
        const std::array box{(static_cast<float>(x) + 0.5F) / static_cast<float>(size.width),
                             (static_cast<float>(y) + 0.5F) / static_cast<float>(size.height), extent, extent};
        const bool inside = std::all_of(box.begin(), box.end(), [](float at) { return at > 1e-2F && at < 1 - 1e-2F; });
        all = all && inside;
        valid.push_back(inside ? 1 : 0);
        for (const float at : box) boxes.push_back(inside ? std::log(at / (1 - at)) : none);
      }
    extent *= 2;
  }
  const auto points = static_cast<std::int64_t>(valid.size());
  return {float_constant(s, "anchors", {1, points, 4}, boxes),
          all ? Value() : float_constant(s, "valid_mask", {1, points, 1}, valid)};
}

Value logit(const Scope& s, Value x) {
  constexpr double least = 1e-5;
  return unary(s, "Log", div(s, nn::clip(s, x, least, 1), nn::clip(s, sub(s, 1, x), least, 1)));
}

Value feed_forward(const Scope& s, const RtDetrConfig& c, Value x) {
  x = activation(s, "activation_fn", c.decoder_activation_function, linear(s["fc1"], x, c.decoder_ffn_dim));
  return linear(s["fc2"], x, c.d_model);
}

Value decoder_layer(const Scope& s, const RtDetrConfig& c, Value x, Value places, Value boxes, Value memory,
                    const std::vector<MapSize>& sizes) {
  const auto norm = [&](const char* name, Value y) { return layer_norm(s[name], y, c.layer_norm_eps); };
  const Scope self = s("self_attn", c.name("MultiheadAttention"));
  const Value query = add(self, x, places);
  x = norm("self_attn_layer_norm", add(s, x, detection_attention(self, c.decoder_attention_heads, query, query, x)));
  const Scope cross = s("encoder_attn", c.name("MultiscaleDeformableAttention"));
  const Value y = deformable_attention(cross, c, add(cross, x, places), boxes, memory, sizes);
  x = norm("encoder_attn_layer_norm", add(s, x, y));
  return norm("final_layer_norm", add(s, x, feed_forward(s, c, x)));
}

Value projection(const Scope& s, const std::string& path, Value map, std::int64_t channels, double eps) {
  map = conv2d(s[path + ".0"], map, {.channels = channels, .kernel = {1, 1}, .bias = false});
  return batch_norm(s[path + ".1"], map, eps);
}

// The points of all maps, [batch, points, d_model].
Value flat_memory(const Scope& s, const RtDetrConfig& c, const std::vector<Value>& maps, std::vector<MapSize>& sizes) {
  std::vector<Value> parts;
  std::int64_t points = 0;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const Value map = projection(s, fmt::format("decoder_input_proj.{}", i), maps[i], c.d_model, c.batch_norm_eps);
    if (!map) return {};
    sizes.push_back({map.dim(2).value, map.dim(3).value});
    points += sizes.back().height * sizes.back().width;
    parts.push_back(transpose(s, reshape(s, map, {keep, keep, rest}), {0, 2, 1}));
  }
  if (parts.empty()) return {};
  return Op(s, "Concat", parts)
      .with("axis", 1)
      .out(parts[0].type(), {parts[0].dim(0), Dim::known(points), Dim::known(c.d_model)});
}

bool fits(const Scope& s, const RtDetrConfig& c, const std::vector<MapSize>& sizes) {
  std::int64_t points = 0;
  bool same = true;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    points += sizes[i].height * sizes[i].width;
    if (c.anchor_image_size.empty()) continue;
    const std::int64_t stride = i < c.feat_strides.size() ? c.feat_strides[i] : 1;
    same =
        same && sizes[i].height == c.anchor_image_size[0] / stride && sizes[i].width == c.anchor_image_size[1] / stride;
  }
  if (!same)
    s.builder().fail({ErrorCode::usage,
                      fmt::format("the model's anchor_image_size takes images of {} x {} only (height x width)",
                                  c.anchor_image_size[0], c.anchor_image_size[1]),
                      "", "Resize images to it"});
  else if (points < c.num_queries)
    s.builder().fail({ErrorCode::usage,
                      fmt::format("the image has {} points, fewer than num_queries {}", points, c.num_queries), "",
                      "Ask for a larger height and width"});
  return same && points >= c.num_queries;
}

// x [batch, points, width] at index [batch, queries, 1] -> [batch, queries, width].
Value points_of(const Scope& s, Value x, Value index) {
  if (!x || !index) return {};
  return Op(s, "GatherND", {x, index}).with("batch_dims", 1).out(x.type(), {x.dim(0), index.dim(1), x.dim(2)});
}

// The points that score highest, [batch, queries, 1].
Value best_points(const Scope& s, const RtDetrConfig& c, Value scores) {
  const Value best = reduce(s, "ReduceMax", scores, {-1}, false);
  if (!best) return {};
  const Shape shape{best.dim(0), Dim::known(c.num_queries)};
  Op top(s, "TopK", std::vector{best, s.builder().integers({c.num_queries})}, 2);
  top.with("axis", -1).out(best.type(), shape);
  return unsqueeze(s, top.out(DataType::int64, shape, 1), 2);
}

Outputs detection(const Scope& root, const RtDetrConfig& c, const ImageInputs& in) {
  const Scope s = root("model", c.name("Model"));
  if (!patch_grid(s, in.pixel_values, {1, 1})) return {{}, {}};
  const Scope backbone = s("backbone", c.name("ConvEncoder"));
  FeatureMaps maps = resnet_backbone(backbone("model", c.backbone.name("Backbone")), c.backbone, in.pixel_values);
  for (std::size_t i = 0; i < maps.maps.size(); ++i)
    maps.maps[i] = projection(s, fmt::format("encoder_input_proj.{}", i), maps.maps[i], c.encoder_hidden_dim, 1e-5);
  std::vector<MapSize> sizes;
  const Value memory =
      flat_memory(s, c, rt_detr_encoder(s("encoder", c.name("HybridEncoder")), c, std::move(maps.maps)), sizes);
  if (!memory || !fits(s, c, sizes)) return {{}, {}};

  const Anchors anchor = anchors(s, sizes);
  const std::string mlp = c.name("MLPPredictionHead");
  const Value useful = anchor.valid ? mul(s, memory, anchor.valid) : memory;
  const Value states = layer_norm(s["enc_output.1"], linear(s["enc_output.0"], useful, c.d_model), c.layer_norm_eps);
  const Value index = best_points(s, c, linear(s["enc_score_head"], states, c.num_labels));
  const Value placed = add(s, detection_mlp(s("enc_bbox_head", mlp), states, c.d_model, 4, 3), anchor.boxes);
  Value boxes = unary(s, "Sigmoid", points_of(s, placed, index));
  Value x;
  if (c.learn_initial_query) {
    const Scope table = s["weight_embedding"];
    table.is_a("Embedding");
    x = expand_batch(s, unsqueeze(s, table.weight("weight", {c.num_queries, c.d_model}), 0), memory);
  } else {
    x = points_of(s, states, index);
  }

  const Scope decoder = s("decoder", c.name("Decoder"));
  for (std::int64_t i = 0; i < c.decoder_layers; ++i) {
    const Value places = detection_mlp(decoder("query_pos_head", mlp), boxes, 2 * c.d_model, c.d_model, 2);
    x = decoder_layer(decoder("layers", i, c.name("DecoderLayer")), c, x, places, boxes, memory, sizes);
    const Value moved = detection_mlp(decoder("bbox_embed", i, mlp), x, c.d_model, 4, 3);
    boxes = unary(decoder, "Sigmoid", add(decoder, moved, logit(decoder, boxes)));
  }
  const Value logits = linear(decoder[fmt::format("class_embed.{}", c.decoder_layers - 1)], x, c.num_labels);
  return {logits, boxes};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const RtDetrConfig c = RtDetrConfig::read(request.family, request.config);
  ImageLimits limits{
      .channels = c.backbone.num_channels, .size = std::array<std::int64_t, 2>{640, 640}, .fixed = false};
  if (c.anchor_image_size.size() == 2) limits.size = std::array{c.anchor_image_size[0], c.anchor_image_size[1]};
  return image_input_specs(request, limits);
}

}  // namespace

const Family rt_detr{
    .model_type = "rt_detr",
    .stem = "RTDetr",
    .prefix = "model",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads = {{"object-detection", "ForObjectDetection", {"logits", "pred_boxes"}, head<detection>}},
};

const Family rt_detr_v2{
    .model_type = "rt_detr_v2",
    .stem = "RTDetrV2",
    .prefix = "model",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads = {{"object-detection", "ForObjectDetection", {"logits", "pred_boxes"}, head<detection>}},
};

}  // namespace mk::models
