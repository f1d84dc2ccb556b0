#pragma once
// RT-DETR (Zhao et al. 2023) and RT-DETRv2 (Lv et al. 2024) as transformers' RTDetrForObjectDetection and
// RTDetrV2ForObjectDetection.

#include <cstdint>
#include <string>
#include <vector>

#include "models/family.h"
#include "models/resnet.h"

namespace mk::models {

struct RtDetrConfig {
  std::string stem;  // of class names
  bool second = false;
  ResNetConfig backbone;
  double layer_norm_eps = 1e-5, batch_norm_eps = 1e-5;
  std::int64_t num_labels = 2;

  std::int64_t encoder_hidden_dim = 256, encoder_ffn_dim = 1024, encoder_attention_heads = 8, encoder_layers = 1;
  std::vector<std::int64_t> encode_proj_layers{2};
  std::int64_t levels = 3;  // of the feature maps
  std::vector<std::int64_t> feat_strides{8, 16, 32};
  double positional_encoding_temperature = 10000;
  bool normalize_before = false;
  std::string encoder_activation_function = "gelu", activation_function = "silu";
  std::int64_t csp_width = 256;

  std::int64_t d_model = 256, num_queries = 300, decoder_ffn_dim = 1024, decoder_attention_heads = 8;
  std::int64_t decoder_layers = 6, decoder_n_points = 4;
  std::string decoder_activation_function = "relu";
  bool learn_initial_query = false;
  std::vector<std::int64_t> anchor_image_size;  // none: that of the image
  double offset_scale = 0.5;
  bool discrete = false;  // samples the nearest point instead of between four

  static RtDetrConfig read(const Family& family, ConfigReader& fields);
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
};

// The hybrid encoder: one map of encoder_hidden_dim channels per map given. `s` is the encoder.
std::vector<Value> rt_detr_encoder(const Scope& s, const RtDetrConfig& c, std::vector<Value> maps);

// Deformable attention of queries [batch, queries, d_model] at boxes [batch, queries, 4] (centre and size as shares of
// the image) to maps side by side, [batch, points, d_model], of the sizes given. unsupported below opset 16.
struct MapSize {
  std::int64_t height, width;
};
Value deformable_attention(const Scope& s, const RtDetrConfig& c, Value queries, Value boxes, Value memory,
                           const std::vector<MapSize>& sizes);

}  // namespace mk::models
