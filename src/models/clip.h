#pragma once
// Radford et al. 2021, "Learning Transferable Visual Models From Natural Language Supervision", and the families whose
// towers are built as CLIP's: SigLIP and OWL-ViT.

#include <cstdint>
#include <string>
#include <string_view>

#include "models/image.h"
#include "models/text.h"

namespace mk::models {

// What the two towers have in common: pre-norm encoder layers.
struct TowerConfig {
  std::string_view stem;  // of class names
  std::int64_t hidden_size = 0, intermediate_size = 0, num_hidden_layers = 0, num_attention_heads = 0;
  std::string hidden_act;
  double layer_norm_eps = 0;

  std::string name(std::string_view suffix) const { return std::string(stem) + std::string(suffix); }
  // The fields above; what they hold are the defaults. malformed where hidden_size is not a multiple of the heads.
  void read_tower(std::string_view stem, ConfigReader& fields);
};

// The section `key` of a model of two towers, or the fields themselves where it is one tower's configuration.
ConfigReader tower_section(ConfigReader& fields, const std::string& key);

struct ClipTextConfig : TowerConfig {
  std::int64_t vocab_size = 49408, max_position_embeddings = 77, eos_token_id = 49407, projection_dim = 512;

  static ClipTextConfig read(const Family& family, ConfigReader& fields);
  TextLimits limits() const { return {vocab_size, max_position_embeddings, 0}; }
};

struct ClipVisionConfig : TowerConfig {
  std::int64_t num_channels = 3, image_size = 224, patch_size = 32, projection_dim = 512, num_labels = 2;
  std::string_view pre_norm = "pre_layrnorm";  // the name of the layer

  static ClipVisionConfig read(const Family& family, ConfigReader& fields);
  std::int64_t side() const { return image_size / patch_size; }  // in patches
  ImageLimits limits() const { return {num_channels, std::array{image_size, image_size}, true}; }
};

// The child `encoder` of s: its layers on x [batch, length, hidden_size]. Masks may be empty.
Value tower_encoder(const Scope& s, const TowerConfig& c, Value x, Value mask, Value causal = {});
// fc1, activation_fn and fc2 of a module `s`.
Value tower_mlp(const Scope& s, const TowerConfig& c, Value x);
// [batch, channels, height, width] -> [batch, patches, hidden_size], by s's patch_embedding.
Value tower_patches(const Scope& s, Value pixels, std::int64_t width, std::int64_t patch_size, bool bias);
// Tokens and positions, of s's token_embedding and position_embedding.
Value tower_tokens(const Scope& s, Value input_ids, std::int64_t vocabulary, std::int64_t positions,
                   std::int64_t width);

// A tower's states [batch, length, hidden_size] and the one that stands for all of them, [batch, hidden_size].
struct Pooled {
  Value states, pooled;
};
// The child `text_model` or `vision_model` of s.
Pooled clip_text_tower(const Scope& s, const ClipTextConfig& c, const TextInputs& in);
Value clip_vision_states(const Scope& s, const ClipVisionConfig& c, const ImageInputs& in);
Pooled clip_vision_tower(const Scope& s, const ClipVisionConfig& c, const ImageInputs& in);

// x of length 1 along its last axis.
Value normalized(const Scope& s, Value x);
// logits_per_image, logits_per_text, text_embeds, image_embeds of two lists of embeddings, by s's logit_scale and,
// where there is one, logit_bias.
Outputs contrast(const Scope& s, Value image_embeds, Value text_embeds, bool bias);

// pixel_values, input_ids and attention_mask of a model of two towers, as far as they are there.
struct ImageAndTextInputs {
  ImageInputs image;
  TextInputs text;
  static ImageAndTextInputs read(const Scope& root, HeadContext& context);
};

}  // namespace mk::models
