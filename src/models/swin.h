#pragma once
// The Swin Transformer (Liu et al. 2021) and its second version (Liu et al. 2022) as transformers' SwinModel and
// Swinv2Model, and the blocks that Swin2SR shares with them.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/backbone.h"
#include "models/family.h"
#include "models/image.h"
#include "nn/windows.h"

namespace mk::models {

struct SwinConfig {
  std::string stem;     // of class names: "Swin", "Swinv2", "Swin2SR"
  bool second = false;  // norms after the blocks, cosine attention, biases from an MLP
  std::array<std::int64_t, 2> image_size{224, 224};
  std::array<std::int64_t, 2> patch_size{4, 4};
  std::int64_t num_channels = 3;
  std::int64_t embed_dim = 96;
  std::vector<std::int64_t> depths{2, 2, 6, 2};
  std::vector<std::int64_t> num_heads{3, 6, 12, 24};
  std::int64_t window_size = 7;
  std::vector<std::int64_t> pretrained_window_sizes;
  double mlp_ratio = 4;
  bool qkv_bias = true;
  std::string hidden_act = "gelu";
  bool use_absolute_embeddings = false;
  double layer_norm_eps = 1e-5;
  std::int64_t num_labels = 2;
  std::vector<std::int64_t> stages;  // that a backbone gives the maps of

  // A configuration, or the section of one that describes a backbone; `stem` as above.
  static SwinConfig read(ConfigReader& fields, std::string_view stem);
  static SwinConfig read(const Family& family, ConfigReader& fields) { return read(fields, family.stem); }
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
  nn::Grid patch_grid() const { return {image_size[0] / patch_size[0], image_size[1] / patch_size[1]}; }
};

// One block on tokens [batch, height * width, width of the stage]. `planned` is the grid that the configuration gives
// the stage, `grid` the one at hand.
struct SwinBlock {
  std::int64_t heads = 1;
  std::int64_t shift = 0;
  std::int64_t pretrained_window = 0;
  nn::Grid planned{}, grid{};
  bool whole_windows = false;
};
Value swin_block(const Scope& s, const SwinConfig& c, const SwinBlock& block, Value x);

// What each stage gives before it is made smaller, as tokens, with its grid; the last one is the encoder's result.
// The stem's are the tokens of the patches.
struct SwinStages {
  Value stem;
  std::vector<Value> tokens;
  std::vector<nn::Grid> grids;
};
// With `whole_windows` grids smaller than a window are padded to it, as a backbone of the first version does.
SwinStages swin_encoder(const Scope& s, const SwinConfig& c, Value pixels, bool whole_windows = false);

// The maps of c.stages. `s` is the backbone.
FeatureMaps swin_backbone(const Scope& s, const SwinConfig& c, Value pixels);

}  // namespace mk::models
