#pragma once
// SAM 2's image encoder: a Hiera whose stages become features of one width.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/sam.h"

namespace mk::models {

struct Sam2VisionConfig {
  // Of the backbone.
  std::int64_t hidden_size = 96, num_channels = 3, num_query_pool_stages = 3;
  std::array<std::int64_t, 2> image_size{}, patch_kernel_size{}, patch_stride{}, patch_padding{}, query_stride{};
  std::array<std::int64_t, 2> background_size{};
  std::vector<std::int64_t> blocks_per_stage, embed_dim_per_stage, num_attention_heads_per_stage, window_size_per_stage;
  std::vector<std::int64_t> global_attention_blocks;
  double mlp_ratio = 4, layer_norm_eps = 1e-6;
  std::string hidden_act = "gelu";
  // Of the pyramid.
  std::vector<std::int64_t> backbone_channel_list, fpn_top_down_levels;
  std::int64_t fpn_hidden_size = 256, fpn_kernel_size = 1, fpn_stride = 1, fpn_padding = 0;

  // The section `vision_config`, or the fields themselves where they are that.
  static Sam2VisionConfig read(const Family& family, ConfigReader& fields);
  ImageLimits limits() const { return {num_channels, image_size, false}; }
};

// [batch, fpn_hidden_size, height, width] of a quarter, an eighth and a sixteenth of the image's size.
struct Sam2Features {
  Value fine, middle, coarse;
};
// `s` is a Sam2VisionModel. usage where the image has no fixed size, or one that windows do not divide.
Sam2Features sam2_vision(const Scope& s, const Sam2VisionConfig& c, const ImageInputs& in);

}  // namespace mk::models
