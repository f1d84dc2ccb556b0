#pragma once
// What encoders of text have in common: their inputs, and the heads that all of them have.

#include <cstdint>
#include <vector>

#include "models/family.h"

namespace mk::models {

// Integer tensors [batch, sequence]; those after the first may be absent. With choices
// (multiple-choice), [batch, choices, sequence].
struct TextInputs {
  Value input_ids, attention_mask, token_type_ids, position_ids;

  // usage where they are not integers, or not of one shape.
  static TextInputs read(const Scope& root, HeadContext& context);
  // Choices as rows of the batch.
  TextInputs flattened(const Scope& s) const;
};

struct TextLimits {
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;    // the longest sequence
  std::int64_t token_types = 0;  // 0 where token_type_ids is not among the inputs
};
// input_ids, attention_mask and token_type_ids as int32; a sequence of min(positions, 1024) unless asked for.
// usage where a longer one is asked for than there are positions.
Result<std::vector<InputSpec>> text_input_specs(const InputRequest& request, const TextLimits& limits);

// Positions that skip padding: `padding` + the number of tokens so far, `padding` itself where there is padding.
Value token_positions(const Scope& s, Value input_ids, std::int64_t padding);

// [batch, sequence, width] -> [batch, sequence, labels], by root's `classifier`.
Outputs token_logits(const Scope& root, Value hidden, std::int64_t labels);
// -> start and end [batch, sequence], by root's `qa_outputs`. malformed where there are not two labels.
Outputs span_logits(const Scope& root, Value hidden, std::int64_t labels);
// [batch * choices, 1] -> [batch, choices].
Outputs choice_logits(const Scope& root, Value logits, Value input_ids);

}  // namespace mk::models
