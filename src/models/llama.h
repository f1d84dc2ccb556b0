#pragma once
// The decoder of Llama (Touvron et al. 2023) and of its many relatives, which differ in fields of this configuration.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/decoder.h"
#include "models/rope_config.h"

namespace mk::models {

struct LlamaConfig {
  std::string_view stem;    // "Llama": classes are LlamaAttention, LlamaMLP ...
  std::string model_class;  // "LlamaModel"
  std::int64_t vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008;
  std::int64_t num_hidden_layers = 32, num_attention_heads = 32, num_key_value_heads = 32, head_dim = 128;
  std::int64_t max_position_embeddings = 2048;
  std::int64_t num_labels = 2, pad_token_id = -1;
  double rms_norm_eps = 1e-6;
  std::string hidden_act = "silu";
  bool tie_word_embeddings = false;

  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool query_key_norm = false;     // per head, before positions
  bool packed = false;             // one projection for query, key and value, and one for gate and up
  bool norm_from_one = false;      // norms multiply by 1 + weight
  bool norm_after_blocks = false;  // besides those before them
  std::string wrapper_class;       // of a model with images around it, whose language_model this is
  std::string embedding_class;     // where it is no plain nn.Embedding; it scales what it looks up
  double embedding_scale = 1;
  double attention_scale = 0;               // of scores
  double attention_cap = 0, logit_cap = 0;  // 0 is none
  bool causal = true;

  // Position embeddings by name, and which of them a layer has; -1 is none.
  std::vector<std::pair<std::string_view, nn::Rope>> ropes;
  struct Layer {
    int rope = 0;
    std::int64_t window = 0;  // 0 is none
  };
  std::vector<Layer> layers;

  std::string name(std::string_view part) const { return std::string(stem) + std::string(part); }
  static LlamaConfig read(const Family& family, ConfigReader& fields);
};

// Defaults in which a relative's configuration class differs.
struct LlamaDefaults {
  std::int64_t vocab_size = 32000, hidden_size = 4096, intermediate_size = 11008;
  std::int64_t num_hidden_layers = 32, num_attention_heads = 32;
  std::int64_t num_key_value_heads = 0;  // 0: as many as heads
  std::int64_t head_dim = 0;             // 0: hidden_size over the heads
  std::int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-6, rope_theta = 10000;
  bool tie_word_embeddings = false;
  const char* activation = "hidden_act";
  const char* hidden_act = "silu";
};
// The fields that all have, the rope "rotary_emb" in all layers among them.
LlamaConfig read_llama(const Family& family, ConfigReader& fields, const LlamaDefaults& defaults);
// layer_types, each "full_attention" or "sliding_attention"; `otherwise` says which layers slide where it is absent.
// malformed for other numbers of layers and for windows that are missing, unsupported for other types.
void read_layer_types(LlamaConfig& c, ConfigReader& fields, std::int64_t window,
                      bool (*otherwise)(std::int64_t layer, std::int64_t every), std::int64_t every);

// The base model: [batch, length, hidden_size].
Value llama_model(const Scope& s, const LlamaConfig& c, DecoderInputs& in);

Outputs llama_causal_lm(const Scope& root, const LlamaConfig& c, const DecoderInputs& in);
Outputs llama_hidden_states(const Scope& root, const LlamaConfig& c, const DecoderInputs& in);
Outputs llama_sequence_classifier(const Scope& root, const LlamaConfig& c, const DecoderInputs& in);
Outputs llama_token_classifier(const Scope& root, const LlamaConfig& c, const DecoderInputs& in);
Outputs llama_question_answering(const Scope& root, const LlamaConfig& c, const DecoderInputs& in);

DecoderLimits llama_limits(const LlamaConfig& c);

template <typename Config>
Result<std::vector<InputSpec>> llama_inputs(InputRequest& request) {
  return decoder_input_specs(request, llama_limits(Config::read(request.family, request.config)));
}
template <typename Config>
std::int64_t llama_layers(ConfigReader& fields) {
  return Config::read(Family{}, fields).num_hidden_layers;
}

struct LlamaClasses {
  bool answers_questions = false, classifies_tokens = true, prefill_is_a_task = false;
};
// A model type whose configuration is read by `Config`.
template <typename Config>
Family llama_family(std::string_view model_type, std::string_view stem, LlamaClasses classes) {
  Family family{.model_type = model_type,
                .stem = stem,
                .prefix = "model",
                .inputs = decoder_inputs,
                .default_inputs = llama_inputs<Config>,
                .heads = generation_heads("ForCausalLM", head<llama_causal_lm, Config>, classes.prefill_is_a_task),
                .composites = generation_composites("ForCausalLM"),
                .cached_layers = llama_layers<Config>};
  const auto add = [&](Head row) { family.heads.push_back(std::move(row)); };
  add({"feature-extraction", "Model", {"last_hidden_state"}, head<llama_hidden_states, Config>});
  add({"text-classification", "ForSequenceClassification", {"logits"}, head<llama_sequence_classifier, Config>});
  if (classes.classifies_tokens)
    add({"token-classification", "ForTokenClassification", {"logits"}, head<llama_token_classifier, Config>});
  if (classes.answers_questions)
    add({"question-answering",
         "ForQuestionAnswering",
         {"start_logits", "end_logits"},
         head<llama_question_answering, Config>});
  return family;
}

}  // namespace mk::models
