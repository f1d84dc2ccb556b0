#pragma once
// What encoders with a decoder have in common: a pair of graphs, the encoder's states and a decoder that takes one
// token at a time over a cache (spec: export, I/O contracts).

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/family.h"
#include "nn/step.h"

namespace mk::models {

// decoder_input_ids [batch, 1], encoder_hidden_states [batch, length, width], attention_mask [batch, length] of the
// encoder (may be absent), decoder_attention_mask [batch, capacity], cache_position [1] (absent where the cache slides)
// and past_N_key/value [batch, heads, capacity, size].
struct StepInputs {
  Value input_ids, encoder_states, encoder_mask, attention_mask, position;
  std::vector<Value> keys, values;

  // usage for inputs that are missing or of other types or shapes.
  static StepInputs read(const Scope& root, HeadContext& context);
  // usage, and false, where a cache that does not slide comes without cache_position. False after any error.
  bool needs_position(const Scope& s) const;
  // The cache with the mask of its kind. usage where it is not one of so many layers, heads and sizes.
  nn::StepCache cache(const Scope& s, std::int64_t layers, std::int64_t heads, std::int64_t size) const;
};

// What the decoder's default inputs depend on.
struct StepLimits {
  std::int64_t vocabulary = 0;
  std::int64_t layers = 0, heads = 0, size = 0;
  std::int64_t capacity = 0;        // of the cache; max_cache_len asks for less
  std::int64_t states = 0;          // the encoder's default length
  std::int64_t longest_states = 0;  // that sequence_length may ask for; 0 where nothing may
  std::int64_t states_width = 0;
  bool encoder_mask = true;
  bool sliding = false;  // no cache_position
  bool bounded = true;   // capacity is the model's limit, not a default
};
Result<std::vector<InputSpec>> step_input_specs(const InputRequest& request, const StepLimits& limits);

// "logits", then present_N_key and present_N_value.
Outputs step_outputs(Value logits, const nn::StepCache& cache);

inline constexpr std::string_view encoder_task = "feature-extraction", decoder_task = "text2text-generation";
// For a family's table: the inputs of an encoder of text and its decoder, and the decoder's outputs. Functions, for
// tables are made before main.
std::vector<std::string_view> pair_inputs();
std::vector<std::string_view> step_output_names();
// The encoder and the decoder of the class with that suffix.
std::vector<Composite> pair_of(std::vector<std::string_view> tasks, std::string_view suffix,
                               std::string_view encoder = encoder_task);

}  // namespace mk::models
