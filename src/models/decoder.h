#pragma once
// What decoders of text have in common: inputs with a cache, the heads that all of them have, and the contracts of
// their tasks (spec: export, I/O contracts).
//
// text-generation-with-past is one graph whose batch, length and past are open; text-generation is a pair of static
// graphs (prefill and one token) over a cache that slides.

#include <cstdint>
#include <vector>

#include "models/family.h"
#include "nn/causal.h"

namespace mk::models {

// Token ids [batch, length], a mask over past and present [batch, columns], positions [batch or 1, length], all but the
// first of which may be absent, and the cache of past_key_values.N.key/value or past_N_key/value.
struct DecoderInputs {
  Value input_ids, attention_mask, position_ids;
  nn::Cache cache;

  // usage for inputs of other types or shapes.
  static DecoderInputs read(const Scope& root, HeadContext& context);
  // usage where the cache is not one of so many layers and heads.
  bool has_cache_for(const Scope& s, std::int64_t layers, std::int64_t key_heads, std::int64_t head_size) const;
  // position_ids, or the columns of the tokens.
  Value positions(const Scope& s) const;
  // A bound on positions where the shapes give one, else 0.
  std::int64_t longest() const;
};

// What default inputs depend on.
struct DecoderLimits {
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;
  bool bounded = false;  // a cache cannot be longer than `positions`
  bool takes_positions = true;
  std::int64_t layers = 0, key_heads = 0, head_size = 0;
};
// By the head that is asked for: those of the tasks below, else input_ids and attention_mask as other encoders of text
// have them. usage for lengths that the model cannot serve.
Result<std::vector<InputSpec>> decoder_input_specs(const InputRequest& request, const DecoderLimits& limits);

// Rows of a family's table for the class with the suffix `causal`.
inline constexpr std::string_view with_past_task = "text-generation-with-past";
inline constexpr std::string_view prefill_task = "feature-extraction", generate_task = "text2text-generation";
std::vector<Head> generation_heads(std::string_view causal, BuildHead build, bool prefill_is_a_task = false);
std::vector<Composite> generation_composites(std::string_view causal);
extern const std::vector<std::string_view> decoder_inputs;  // with the caches of both kinds

// logits, then what the cache presents.
Outputs with_cache(Value logits, const nn::Cache& cache);

}  // namespace mk::models
