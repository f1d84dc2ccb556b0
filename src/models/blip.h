#pragma once
// Li et al. 2022, "BLIP": a ViT whose states a text decoder attends to.

#include <cstdint>
#include <string>

#include "models/clip.h"
#include "nn/step.h"

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

struct BlipTokens {
  Value input_ids;                 // [batch, length]; one token where there is a cache
  Value position_ids;              // the same or [1]; 0, 1, 2 ... where empty
  Value mask;                      // added to the scores; may be empty
  Value image;                     // states that are attended to
  nn::StepCache* cache = nullptr;  // of earlier tokens, instead of the mask
};
// The child `text_decoder` of the root: logits [batch, length, vocab_size].
Value blip_text_decoder(const Scope& root, const BlipTextConfig& c, const BlipTokens& in);

}  // namespace mk::models
