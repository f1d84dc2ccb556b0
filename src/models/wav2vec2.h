#pragma once
// Baevski et al. 2020, "wav2vec 2.0", and the families built as it is: HuBERT (Hsu et al. 2021).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"

namespace mk::models {

struct Wav2Vec2Config {
  std::string_view stem, prefix;
  std::int64_t vocab_size = 32, hidden_size = 768, num_hidden_layers = 12, num_attention_heads = 12;
  std::int64_t intermediate_size = 3072, num_labels = 2, classifier_proj_size = 256;
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-5;
  // The encoder of the wave: one convolution per entry.
  std::string feat_extract_norm = "group", feat_extract_activation = "gelu";
  std::vector<std::int64_t> conv_dim, conv_stride, conv_kernel;
  bool conv_bias = false;
  bool feat_proj_layer_norm = true;
  std::int64_t num_conv_pos_embeddings = 128, num_conv_pos_embedding_groups = 16;
  bool conv_pos_batch_norm = false;
  bool do_stable_layer_norm = false, use_weighted_layer_sum = false;
  std::int64_t adapter_attn_dim = 0;  // 0 where layers have no adapters
  bool add_adapter = false;           // after the encoder
  std::int64_t adapter_kernel_size = 3, adapter_stride = 2, num_adapter_layers = 3, output_hidden_size = 0;
  std::vector<std::int64_t> tdnn_dim, tdnn_kernel, tdnn_dilation;
  std::int64_t xvector_output_dim = 512;
  std::string pooling_mode = "mean";

  static Wav2Vec2Config read(const Family& family, ConfigReader& fields);
  std::string name(std::string_view suffix) const { return std::string(stem) + std::string(suffix); }
};

// Samples [batch, length].
struct WaveInputs {
  Value input_values;

  // usage where there are none, or of another rank or type.
  static WaveInputs read(const Scope& root, HeadContext& context);
};
// input_values of audio_sequence_length samples, else 16,000.
Result<std::vector<InputSpec>> wave_inputs(InputRequest& request);

// The states of an encoder: the last one, and all of them from the first layer's input on where they are asked for.
struct Wav2Vec2States {
  Value last;
  std::vector<Value> all;
};
// `s` is the base model's scope.
Wav2Vec2States wav2vec2_model(const Scope& s, const Wav2Vec2Config& c, const WaveInputs& in, bool all = false);

// The states' sum, weighted by the softmax of root's layer_weights: what use_weighted_layer_sum asks heads for.
Value weighted_states(const Scope& root, const std::vector<Value>& states);

// Heads; each builds the base model under the family's prefix.
Outputs wav2vec2_hidden_states(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in);
Outputs wav2vec2_ctc(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in);
Outputs wav2vec2_classifier(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in);

}  // namespace mk::models
