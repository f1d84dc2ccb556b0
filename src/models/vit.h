#pragma once
// The Vision Transformer (Dosovitskiy et al. 2020) as transformers' ViTModel, and what DeiT shares with it.

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "models/family.h"
#include "models/image.h"

namespace mk::models {

struct ViTConfig {
  std::string stem;            // of class names: "ViT", "DeiT"
  std::string prefix;          // of the base model in a head
  std::string self_attention;  // its class, where that is not the stem's
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  std::array<std::int64_t, 2> image_size{224, 224};
  std::array<std::int64_t, 2> patch_size{16, 16};
  std::int64_t num_channels = 3;
  std::int64_t num_labels = 2;
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-12;
  bool qkv_bias = true;
  bool distillation_token = false;                    // a second learned token after the first
  std::map<std::int64_t, std::int64_t> pruned_heads;  // layer -> how many

  static ViTConfig read(const Family& family, ConfigReader& fields);
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
  ImageLimits limits() const { return {num_channels, image_size, true}; }
};

// [batch, channels, height, width] -> [batch, tokens, hidden_size]. `s` is the base model.
Value vit_model(const Scope& s, const ViTConfig& c, const ImageInputs& in);
// Layer `index` of the encoder, and the attention in it, on [batch, tokens, hidden_size].
Value vit_layer(const Scope& s, const ViTConfig& c, std::int64_t index, Value x);
Value vit_attention(const Scope& s, const ViTConfig& c, std::int64_t index, Value x);
// The layers alone, on tokens; `s` is the base model.
Value vit_encoder(const Scope& s, const ViTConfig& c, Value tokens);
Scope vit_base(const Scope& root, const ViTConfig& c);

// A linear layer, or nothing where there are no labels.
Value vit_classifier(const Scope& s, Value x, std::int64_t labels);

Outputs vit_hidden_states(const Scope& root, const ViTConfig& c, const ImageInputs& in);
Outputs vit_image_classifier(const Scope& root, const ViTConfig& c, const ImageInputs& in);
Result<std::vector<InputSpec>> vit_inputs(InputRequest& request);

}  // namespace mk::models
