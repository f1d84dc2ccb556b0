// Mistral (Jiang et al. 2023): Llama with one window for all layers. Phi-3 (Abdin et al. 2024): the same with packed
// projections and heads that may turn in part.

#include "models/families.h"
#include "models/llama.h"

namespace mk::models {
namespace {

void slide_everywhere(LlamaConfig& c, std::int64_t window) {
  for (LlamaConfig::Layer& layer : c.layers) layer.window = window;
}

struct MistralConfig : LlamaConfig {
  static MistralConfig read(const Family& family, ConfigReader& fields) {
    MistralConfig c{read_llama(
        family, fields, {.intermediate_size = 14336, .num_key_value_heads = 8, .max_position_embeddings = 131072})};
    slide_everywhere(c, fields.size_or_none("sliding_window", 4096));
    return c;
  }
};

struct Phi3Config : LlamaConfig {
  static Phi3Config read(const Family& family, ConfigReader& fields) {
    Phi3Config c{read_llama(family, fields,
                            {.vocab_size = 32064,
                             .hidden_size = 3072,
                             .intermediate_size = 8192,
                             .max_position_embeddings = 4096,
                             .rms_norm_eps = 1e-5})};
    c.packed = true;
    if (!fields.mentions("pad_token_id")) c.pad_token_id = 32000;
    slide_everywhere(c, fields.size_or_none("sliding_window", 0));
    return c;
  }
};

}  // namespace

const Family mistral = llama_family<MistralConfig>("mistral", "Mistral", {.answers_questions = true});
const Family phi3 = llama_family<Phi3Config>("phi3", "Phi3", {});

}  // namespace mk::models
