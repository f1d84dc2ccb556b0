// Gemma (Gemma Team 2024): Llama with scaled embeddings and norms around 1. Gemma 2: norms after the blocks, too, every
// other layer with a window, and caps on scores and logits. Gemma 3: norms of queries and keys, and positions of their
// own for layers with a window.

#include <cmath>

#include "models/families.h"
#include "models/llama.h"

namespace mk::models {
namespace {

LlamaConfig read_gemma(const Family& family, ConfigReader& fields, LlamaDefaults defaults) {
  defaults.head_dim = 256;
  defaults.tie_word_embeddings = true;
  defaults.hidden_act = "gelu_pytorch_tanh";
  LlamaConfig c = read_llama(family, fields, defaults);
  c.qkv_bias = c.output_bias = fields.boolean("attention_bias", false);
  c.norm_from_one = true;
  c.embedding_scale = std::sqrt(static_cast<double>(c.hidden_size));
  if (!fields.mentions("pad_token_id")) c.pad_token_id = 0;
  return c;
}

struct GemmaConfig : LlamaConfig {
  static GemmaConfig read(const Family& family, ConfigReader& fields) {
    return {read_gemma(family, fields,
                       {.vocab_size = 256000,
                        .hidden_size = 3072,
                        .intermediate_size = 24576,
                        .num_hidden_layers = 28,
                        .num_attention_heads = 16,
                        .num_key_value_heads = 16,
                        .max_position_embeddings = 8192})};
  }
};

bool slides_between(std::int64_t layer, std::int64_t every) { return (layer + 1) % every != 0; }

LlamaConfig read_second(const Family& family, ConfigReader& fields, const LlamaDefaults& defaults) {
  LlamaConfig c = read_gemma(family, fields, defaults);
  c.norm_after_blocks = true;
  const double scalar = fields.number("query_pre_attn_scalar", 256);
  if (!(scalar > 0)) fields.fail(ErrorCode::malformed, "query_pre_attn_scalar is not above 0");
  c.attention_scale = 1 / std::sqrt(scalar);
  return c;
}

double cap(ConfigReader& fields, const char* key, double otherwise) {
  if (!fields.has(key) && fields.mentions(key)) return 0;
  const double value = fields.number(key, otherwise);
  if (!(value >= 0)) fields.fail(ErrorCode::malformed, std::string(key) + " is below 0");
  return value;
}

struct Gemma2Config : LlamaConfig {
  static Gemma2Config read(const Family& family, ConfigReader& fields) {
    Gemma2Config c{read_second(family, fields,
                               {.vocab_size = 256000,
                                .hidden_size = 2304,
                                .intermediate_size = 9216,
                                .num_hidden_layers = 26,
                                .num_attention_heads = 8,
                                .num_key_value_heads = 4,
                                .max_position_embeddings = 8192,
                                .activation = "hidden_activation"})};
    c.attention_cap = cap(fields, "attn_logit_softcapping", 50);
    c.logit_cap = cap(fields, "final_logit_softcapping", 30);
    read_layer_types(c, fields, fields.size_or_none("sliding_window", 4096), slides_between, 2);
    return c;
  }
};

struct Gemma3TextConfig : LlamaConfig {
  static Gemma3TextConfig read(const Family& family, ConfigReader& fields) {
    Gemma3TextConfig c{read_second(family, fields,
                                   {.vocab_size = 262208,
                                    .hidden_size = 2304,
                                    .intermediate_size = 9216,
                                    .num_hidden_layers = 26,
                                    .num_attention_heads = 8,
                                    .num_key_value_heads = 4,
                                    .max_position_embeddings = 131072,
                                    .rope_theta = 1000000,
                                    .activation = "hidden_activation"})};
    c.model_class = "Gemma3TextModel";
    c.embedding_class = "Gemma3TextScaledWordEmbedding";
    c.query_key_norm = true;
    c.logit_cap = cap(fields, "final_logit_softcapping", 0);
    c.causal = !fields.boolean("use_bidirectional_attention", false);
    std::int64_t window = fields.size_or_none("sliding_window", 4096);
    if (!c.causal && window > 0) window = window / 2 + 1;  // of both sides
    const char* pattern = fields.has("sliding_window_pattern") ? "sliding_window_pattern" : "_sliding_window_pattern";
    read_layer_types(c, fields, window, slides_between, fields.size(pattern, 6));
    const RopeBase local{fields.number("rope_local_base_freq", 10000), c.head_dim, c.max_position_embeddings};
    c.ropes.emplace_back("rotary_emb_local", plain_rope(fields, local));
    for (Layer& layer : c.layers) layer.rope = layer.window > 0 ? 1 : 0;
    return c;
  }
};

// The language model of a Gemma 3 that sees images, without them.
struct Gemma3Config : LlamaConfig {
  static Gemma3Config read(const Family& family, ConfigReader& fields) {
    ConfigReader text = fields.section("text_config");
    Gemma3Config c{Gemma3TextConfig::read(family, text)};
    c.wrapper_class = "Gemma3Model";
    return c;
  }
};

Family gemma3_with_images() {
  return {.model_type = "gemma3",
          .stem = "Gemma3",
          .prefix = "model",
          .inputs = decoder_inputs,
          .default_inputs = llama_inputs<Gemma3Config>,
          .heads = generation_heads("ForConditionalGeneration", head<llama_causal_lm, Gemma3Config>),
          .composites = generation_composites("ForConditionalGeneration"),
          .cached_layers = llama_layers<Gemma3Config>};
}

Family gemma3_family() {
  Family family = llama_family<Gemma3TextConfig>("gemma3_text", "Gemma3", {.classifies_tokens = false});
  for (Head& head : family.heads) {
    if (head.suffix == "Model") head.suffix = "TextModel";
    if (head.suffix == "ForSequenceClassification") head.suffix = "TextForSequenceClassification";
  }
  return family;
}

}  // namespace

const Family gemma = llama_family<GemmaConfig>("gemma", "Gemma", {});
const Family gemma2 = llama_family<Gemma2Config>("gemma2", "Gemma2", {});
const Family gemma3 = gemma3_with_images();
const Family gemma3_text = gemma3_family();

}  // namespace mk::models
