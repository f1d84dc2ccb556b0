#pragma once
// BEiT (Bao et al. 2021) as transformers' BeitModel, and as a backbone.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/backbone.h"
#include "models/family.h"
#include "models/image.h"

namespace mk::models {

struct BeitConfig {
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-12;
  std::array<std::int64_t, 2> image_size{224, 224};
  std::array<std::int64_t, 2> patch_size{16, 16};
  std::int64_t num_channels = 3;
  bool use_absolute_position_embeddings = false;
  bool use_relative_position_bias = false;
  bool use_shared_relative_position_bias = false;
  double layer_scale_init_value = 0.1;
  bool use_mean_pooling = true;
  std::int64_t num_labels = 2;
  std::map<std::int64_t, std::int64_t> pruned_heads;  // layer -> how many

  std::vector<std::int64_t> stages;  // that a backbone gives the maps of
  bool reshape_hidden_states = true;
  bool add_fpn = false;
  double batch_norm_eps = 1e-5;

  // A configuration, or the section of one that describes a backbone.
  static BeitConfig read(ConfigReader& fields);
  static BeitConfig read(const Family&, ConfigReader& fields) { return read(fields); }
  std::array<std::int64_t, 2> patch_grid() const {
    return {image_size[0] / patch_size[0], image_size[1] / patch_size[1]};
  }
};

// Tokens [batch, 1 + patches, hidden_size] after each layer, the embeddings first, without the last norm.
// `s` is the base model or a backbone.
std::vector<Value> beit_layers(const Scope& s, const BeitConfig& c, Value pixels);

// The maps of c.stages; [batch, 1 + patches, hidden_size] where reshape_hidden_states is off. `s` is the backbone.
FeatureMaps beit_backbone(const Scope& s, const BeitConfig& c, Value pixels);

}  // namespace mk::models
