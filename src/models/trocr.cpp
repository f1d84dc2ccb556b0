// TrOCR (Li et al. 2021) and mBART as decoders behind an encoder of images: BART's layers.

#include <fmt/format.h>

#include <cmath>

#include "models/bart.h"
#include "models/cross_decoder.h"
#include "nn/layers.h"

namespace mk::models {

using namespace nn;

namespace {

void read_decoder(BartConfig& c, ConfigReader& fields) {
  c.d_model = fields.size("d_model", c.d_model);
  c.decoder = {fields.count("decoder_layers", 12), fields.size("decoder_attention_heads", 16),
               fields.size("decoder_ffn_dim", 4096)};
  c.vocab_size = c.decoder_vocab_size = fields.size("vocab_size", 50265);
  c.activation_function = fields.string("activation_function", "gelu");
  if (fields.boolean("scale_embedding", false)) c.embed_scale = std::sqrt(static_cast<double>(c.d_model));
  c.pad_token_id = fields.id("pad_token_id", c.pad_token_id);
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", true);
  if (c.d_model % c.decoder.heads != 0)
    fields.fail(ErrorCode::malformed,
                fmt::format("d_model {} is not a multiple of decoder_attention_heads {}", c.d_model, c.decoder.heads));
}

BartConfig trocr_config(ConfigReader& fields) {
  BartConfig c;
  const bool learned = fields.boolean("use_learned_position_embeddings", true);
  c.style = {.model_type = "trocr",
             .positions = learned ? BartPositions::learned_from_2 : BartPositions::padded_sinusoids,
             .embedding_norm = fields.boolean("layernorm_embedding", true),
             .scaled_word_embedding = true};
  c.stem = "TrOCR";
  read_decoder(c, fields);
  c.max_position_embeddings = fields.size("max_position_embeddings", 512);
  return c;
}

BartConfig mbart_config(ConfigReader& fields) {
  BartConfig c;
  c.style = bart_style("mbart");
  c.stem = "MBart";
  read_decoder(c, fields);
  c.max_position_embeddings = fields.size("max_position_embeddings", 1024);
  return c;
}

template <BartConfig (*read)(ConfigReader&)>
StepLimits limits(ConfigReader& fields) {
  const BartConfig c = read(fields);
  return {.vocabulary = c.vocab_size,
          .layers = c.decoder.layers,
          .heads = c.decoder.heads,
          .size = c.d_model / c.decoder.heads,
          .capacity = c.max_position_embeddings};
}

template <BartConfig (*read)(ConfigReader&)>
std::int64_t width(ConfigReader& fields) {
  return read(fields).d_model;
}

Outputs step(const Scope& root, const BartConfig& c, std::string_view logits, const StepInputs& in, Value states) {
  if (c.tie_word_embeddings)
    root.tie(fmt::format("decoder.{}.weight", logits), "decoder.model.decoder.embed_tokens.weight");
  const Scope causal = root("decoder", c.name("ForCausalLM"));
  const Scope model = causal("model", c.name("DecoderWrapper"));
  StepCache cache = in.cache(model, c.decoder.layers, c.decoder.heads, c.d_model / c.decoder.heads);
  if (!in.needs_position(root)) return {};
  const Value x = bart_decoder(model, c, in.input_ids, states, {}, {&cache, in.position, {}});
  return step_outputs(linear(causal[logits], x, c.vocab_size, false), cache);
}

Outputs trocr_step(const Scope& root, ConfigReader& fields, const StepInputs& in, Value states) {
  return step(root, trocr_config(fields), "output_projection", in, states);
}

Outputs mbart_step(const Scope& root, ConfigReader& fields, const StepInputs& in, Value states) {
  return step(root, mbart_config(fields), "lm_head", in, states);
}

}  // namespace

const CrossDecoder trocr_decoder{"trocr", limits<trocr_config>, width<trocr_config>, trocr_step};
const CrossDecoder mbart_decoder{"mbart", limits<mbart_config>, width<mbart_config>, mbart_step};

}  // namespace mk::models
