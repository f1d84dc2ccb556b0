#pragma once
// Ranftl et al. 2021, "Vision Transformers for Dense Prediction": a neck that makes one image-like map of the tokens of
// several layers. DPT and Depth Anything (Yang et al. 2024) have it.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "models/config_reader.h"
#include "nn/builder.h"

namespace mk::models {

struct DptNeck {
  std::string stem;  // of class names
  std::vector<double> factors{4, 2, 1, 0.5};
  std::vector<std::int64_t> hidden_sizes;
  std::int64_t fusion_hidden_size = 256;
  std::int64_t head_in_index = -1;
  bool batch_norm = false, bias = true;
  bool project = false, add = false;  // what becomes of the first token
  std::string hidden_act = "gelu";
  bool to_next = false;    // maps grow to the next one's size instead of twice theirs
  bool reassemble = true;  // the maps are tokens

  // What both have in common.
  void read(ConfigReader& fields);
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
};

// Tokens [batch, 1 + patches, width] of layers, or maps where nothing is to be reassembled -> the fused map that the
// head takes, [batch, fusion_hidden_size, height, width]. `s` is the model.
nn::Value dpt_neck(const nn::Scope& s, const DptNeck& c, std::vector<nn::Value> states,
                   std::array<std::int64_t, 2> grid);

// Bilinear, with aligned corners.
nn::Value resize_aligned(const nn::Scope& s, nn::Value x, std::array<std::int64_t, 2> size);

}  // namespace mk::models
