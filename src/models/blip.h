#pragma once
// Li et al. 2022, "BLIP": a ViT whose states a text decoder attends to.

#include <cstdint>
#include <functional>
#include <string>

#include "models/clip.h"

namespace mk::models {

struct BlipVisionConfig : TowerConfig {
  std::int64_t image_size = 384, patch_size = 16;

  static BlipVisionConfig read(const Family& family, ConfigReader& fields);
  std::int64_t side() const { return image_size / patch_size; }  // in patches
  ImageLimits limits() const { return {3, std::array{image_size, image_size}, true}; }
};

struct BlipTextConfig {
  std::int64_t vocab_size = 30524, hidden_size = 768, encoder_hidden_size = 768, intermediate_size = 3072;
  std::int64_t num_hidden_layers = 12, num_attention_heads = 8, max_position_embeddings = 512;
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-12;
  bool tie_word_embeddings = true, absolute_positions = true;

  static BlipTextConfig read(const Family& family, ConfigReader& fields);
};

struct BlipConfig {
  BlipVisionConfig vision;
  BlipTextConfig text;
  static BlipConfig read(const Family& family, ConfigReader& fields) {
    return {BlipVisionConfig::read(family, fields), BlipTextConfig::read(family, fields)};
  }
};

// The child `vision_model` of s: [batch, patches + 1, hidden_size].
Value blip_vision_model(const Scope& s, const BlipVisionConfig& c, const ImageInputs& in);

// What the text decoder attends to in a layer: keys and values [batch, heads, length, size] of the tokens given, which
// a cache may put behind those of earlier ones.
struct KeysAndValues {
  Value keys, values;
};
using Remember = std::function<KeysAndValues(std::int64_t layer, KeysAndValues of_tokens)>;

struct BlipTokens {
  Value input_ids;         // [batch, length]
  Value position_ids;      // the same; 0, 1, 2 ... where empty
  Value mask;              // added to the scores; may be empty
  Value image;             // states that are attended to
  Remember remember = {};  // no cache where empty
};
// The child `text_decoder` of the root: logits [batch, length, vocab_size].
Value blip_text_decoder(const Scope& root, const BlipTextConfig& c, const BlipTokens& in);

}  // namespace mk::models
