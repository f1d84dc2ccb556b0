// Qwen2 (Yang et al. 2024) and Qwen3: Llama with biases before attention, and with norms of queries and keys.

#include "models/families.h"
#include "models/llama.h"

namespace mk::models {
namespace {

bool slides_from(std::int64_t layer, std::int64_t first) { return layer >= first; }
bool never_slides(std::int64_t, std::int64_t) { return false; }

LlamaConfig read_qwen(const Family& family, ConfigReader& fields, std::int64_t head_dim) {
  LlamaConfig c = read_llama(family, fields,
                             {.vocab_size = 151936,
                              .intermediate_size = 22016,
                              .num_key_value_heads = 32,
                              .head_dim = head_dim,
                              .max_position_embeddings = 32768});
  const bool sliding = fields.boolean("use_sliding_window", false);
  const std::int64_t window = sliding ? fields.size_or_none("sliding_window", 4096) : 0;
  read_layer_types(c, fields, window, window > 0 ? slides_from : never_slides, fields.count("max_window_layers", 28));
  return c;
}

struct Qwen2Config : LlamaConfig {
  static Qwen2Config read(const Family& family, ConfigReader& fields) {
    Qwen2Config c{read_qwen(family, fields, 0)};
    c.qkv_bias = true;
    return c;
  }
};

struct Qwen3Config : LlamaConfig {
  static Qwen3Config read(const Family& family, ConfigReader& fields) {
    Qwen3Config c{read_qwen(family, fields, 128)};
    c.qkv_bias = c.output_bias = fields.boolean("attention_bias", false);
    c.query_key_norm = true;
    return c;
  }
};

}  // namespace

const Family qwen2 = llama_family<Qwen2Config>("qwen2", "Qwen2", {.answers_questions = true});
const Family qwen3 =
    llama_family<Qwen3Config>("qwen3", "Qwen3", {.answers_questions = true, .prefill_is_a_task = true});

}  // namespace mk::models
