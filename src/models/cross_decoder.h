#pragma once
// Decoders of text that look at an encoder of another kind: what VisionEncoderDecoderModel puts behind images. One row
// per model type of the `decoder` section.

#include <string_view>

#include "models/seq2seq.h"

namespace mk::models {

struct CrossDecoder {
  std::string_view model_type;
  // vocabulary, layers, heads, size and capacity; the rest is the encoder's.
  StepLimits (*limits)(ConfigReader& fields);
  std::int64_t (*width)(ConfigReader& fields);
  // The child `decoder` of root over `states`, what step_outputs gives.
  Outputs (*step)(const Scope& root, ConfigReader& fields, const StepInputs& in, Value states);
};

// Null where the type cannot be one.
const CrossDecoder* find_cross_decoder(std::string_view model_type);
std::string cross_decoder_names();

extern const CrossDecoder bert_decoder, camembert_decoder, gpt2_decoder, mbart_decoder, roberta_decoder, trocr_decoder,
    xlm_roberta_decoder;

}  // namespace mk::models
