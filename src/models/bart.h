#pragma once
// BART (Lewis et al. 2019) and the families of transformers that are copies of it: mBART, Marian, Pegasus, M2M-100 and
// Blenderbot. They differ in where layers are normalized and in how positions are told, which BartStyle says.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/seq2seq.h"
#include "models/text.h"

namespace mk::models {

enum class BartPositions {
  learned_from_2,  // a table whose first two rows are not used
  learned,
  sinusoids,         // a table of the checkpoint, computed where it has none
  padded_sinusoids,  // computed; counted over tokens that are no padding
};

struct BartStyle {
  std::string_view model_type;
  BartPositions positions;
  bool pre_norm;               // layers are normalized before their work, and the last one's result once more
  bool embedding_norm;         // layernorm_embedding
  bool norm_before_positions;  // of the decoder
  bool scaled_word_embedding;  // a module of its own
  bool shared_module;          // the stacks look tokens up in the model's `shared`
  bool logits_bias;            // final_logits_bias
  std::string_view activation;
  std::int64_t positions_count;  // by default
  bool key_bias = true;
  bool plain_positions = false;  // the class of learned positions is no LearnedPositionalEmbedding
};

const BartStyle& bart_style(std::string_view model_type);

// One of the two stacks.
struct BartStack {
  std::int64_t layers = 12, heads = 16, ffn = 4096;
};

struct BartConfig {
  BartStyle style;
  std::string stem;
  BartStack encoder, decoder;
  std::int64_t d_model = 1024, vocab_size = 0, decoder_vocab_size = 0, max_position_embeddings = 1024;
  std::int64_t pad_token_id = 1, eos_token_id = 2, decoder_start_token_id = 2, num_labels = 3;
  std::string activation_function;
  double embed_scale = 1;
  bool tie_word_embeddings = true, share_embeddings = true;

  static BartConfig read(const Family& family, ConfigReader& fields);
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
};

// What the decoder's own attention looks at: a cache, or all tokens before each.
struct Lookback {
  nn::StepCache* cache = nullptr;
  Value position, causal;
};
// The child `decoder` of `model`: its states of `ids` over the encoder's, [batch, length, d_model].
Value bart_decoder(const Scope& model, const BartConfig& c, Value ids, Value states, Value states_mask, Lookback back);
// The layers of an encoder `s`, and the norm behind them. The mask is what is added to scores. `taken` gets what each
// layer takes.
Value bart_encoder_layers(const Scope& s, const BartConfig& c, Value x, Value mask,
                          std::vector<Value>* taken = nullptr);

// The families of this kind differ in names and heads only.
Family bart_family(std::string_view model_type, std::string_view stem, std::string_view suffix,
                   std::vector<std::string_view> pipelines);

}  // namespace mk::models
