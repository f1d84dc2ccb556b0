#pragma once
// DINOv2 (Oquab et al. 2023), and with registers (Darcet et al. 2023), as transformers' Dinov2Model, and as
// a backbone.

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/backbone.h"
#include "models/family.h"
#include "models/image.h"

namespace mk::models {

struct Dinov2Config {
  std::string stem;  // of class names: "Dinov2", "Dinov2WithRegisters"
  std::string prefix;
  std::int64_t registers = 0;
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  double mlp_ratio = 4;
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-6;
  std::array<std::int64_t, 2> image_size{224, 224};
  std::array<std::int64_t, 2> patch_size{14, 14};
  std::int64_t num_channels = 3;
  bool qkv_bias = true;
  bool use_swiglu_ffn = false;
  std::int64_t num_labels = 2;
  std::map<std::int64_t, std::int64_t> pruned_heads;  // layer -> how many

  std::vector<std::int64_t> stages;  // that a backbone gives the maps of
  bool apply_layernorm = true;
  bool reshape_hidden_states = true;

  // A configuration, or the section of one that describes a backbone.
  static Dinov2Config read(ConfigReader& fields, bool with_registers);
  static Dinov2Config read(const Family& family, ConfigReader& fields);
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
};

// Tokens [batch, 1 + registers + patches, hidden_size] after each layer, the embeddings first, without the last norm.
// `s` is the base model or a backbone.
std::vector<Value> dinov2_layers(const Scope& s, const Dinov2Config& c, Value pixels);

// The maps of c.stages; [batch, 1 + registers + patches, hidden_size] where reshape_hidden_states is off. `s` is the
// backbone.
FeatureMaps dinov2_backbone(const Scope& s, const Dinov2Config& c, Value pixels);

}  // namespace mk::models
