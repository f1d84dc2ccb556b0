// SmolLM3: Llama in which some layers have no positions.

#include <fmt/format.h>

#include "models/families.h"
#include "models/llama.h"

namespace mk::models {
namespace {

bool never_slides(std::int64_t, std::int64_t) { return false; }

// Every layer but each `every`th one has positions, or those that the list has a number other than 0 for.
void read_positions(LlamaConfig& c, ConfigReader& fields) {
  const std::int64_t every = fields.size("no_rope_layer_interval", 4);
  const std::vector<double> listed = fields.numbers("no_rope_layers");
  const bool by_list = fields.has("no_rope_layers");
  if (by_list && listed.size() < c.layers.size()) {
    fields.fail(ErrorCode::malformed,
                fmt::format("no_rope_layers has {} layers, num_hidden_layers is {}", listed.size(), c.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool turns = by_list ? listed[i] != 0 : (static_cast<std::int64_t>(i) + 1) % every != 0;
    c.layers[i].rope = turns ? 0 : -1;
  }
}

struct SmolLM3Config : LlamaConfig {
  static SmolLM3Config read(const Family& family, ConfigReader& fields) {
    SmolLM3Config c{read_llama(family, fields,
                               {.vocab_size = 128256,
                                .hidden_size = 2048,
                                .num_hidden_layers = 36,
                                .num_attention_heads = 16,
                                .num_key_value_heads = 4,
                                .max_position_embeddings = 32768,
                                .rope_theta = 2000000,
                                .tie_word_embeddings = true})};
    c.qkv_bias = c.output_bias = fields.boolean("attention_bias", false);
    c.mlp_bias = fields.boolean("mlp_bias", false);
    if (!fields.mentions("pad_token_id")) c.pad_token_id = 128004;
    read_positions(c, fields);
    const std::int64_t window = fields.size_or_none("sliding_window", 0);
    read_layer_types(c, fields, window, never_slides, 0);
    if (!fields.has("layer_types") && window > 0 && fields.boolean("use_sliding_window", false))
      for (LlamaConfig::Layer& layer : c.layers) layer.window = layer.rope < 0 ? window : 0;
    return c;
  }
};

}  // namespace

const Family smollm3 = llama_family<SmolLM3Config>("smollm3", "SmolLM3", {.answers_questions = true});

}  // namespace mk::models
