// Whisper (Radford et al. 2022): an encoder of log-mel spectrograms, and a decoder whose layers are BART's, normalized
// before their work.

#include <fmt/format.h>

#include "models/bart.h"
#include "models/families.h"
#include "models/wav2vec2.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"
#include "nn/sinusoids.h"

namespace mk::models {

using namespace nn;

namespace {

struct WhisperConfig : BartConfig {
  std::int64_t num_mel_bins = 80, max_source_positions = 1500, classifier_proj_size = 256;
  bool use_weighted_layer_sum = false;

  static WhisperConfig read(const Family& family, ConfigReader& fields);
  std::int64_t frames() const { return 2 * max_source_positions; }
};

BartStack read_stack(ConfigReader& fields, const std::string& which, std::int64_t d_model) {
  const BartStack stack{fields.count(which + "_layers", 4), fields.size(which + "_attention_heads", 6),
                        fields.size(which + "_ffn_dim", 1536)};
  if (d_model % stack.heads != 0)
    fields.fail(ErrorCode::malformed,
                fmt::format("d_model {} is not a multiple of {}_attention_heads {}", d_model, which, stack.heads));
  return stack;
}

WhisperConfig WhisperConfig::read(const Family& family, ConfigReader& fields) {
  WhisperConfig c;
  c.style = {.model_type = family.model_type,
             .positions = BartPositions::learned,
             .pre_norm = true,
             .key_bias = false,
             .plain_positions = true};
  c.stem = family.stem;
  c.d_model = fields.size("d_model", 384);
  c.encoder = read_stack(fields, "encoder", c.d_model);
  c.decoder = read_stack(fields, "decoder", c.d_model);
  c.vocab_size = c.decoder_vocab_size = fields.size("vocab_size", 51865);
  c.max_position_embeddings = fields.size("max_target_positions", 448);
  c.activation_function = fields.string("activation_function", "gelu");
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", true);
  c.num_labels = fields.num_labels();
  c.num_mel_bins = fields.size("num_mel_bins", c.num_mel_bins);
  c.max_source_positions = fields.size("max_source_positions", c.max_source_positions);
  c.classifier_proj_size = fields.size("classifier_proj_size", c.classifier_proj_size);
  c.use_weighted_layer_sum = fields.boolean("use_weighted_layer_sum", false);
  return c;
}

// A spectrogram [batch, bins, frames].
struct SpectrogramInputs {
  Value input_features;
  static SpectrogramInputs read(const Scope& root, HeadContext& context) {
    const SpectrogramInputs in{context.input("input_features")};
    if (!in.input_features)
      root.builder().fail({ErrorCode::usage, "the encoder needs input_features among its inputs", "", ""});
    return in;
  }
  bool fits(const Scope& root, const WhisperConfig& c) const {
    if (!input_features) return false;
    const auto is = [](const Dim& dim, std::int64_t size) { return !dim.is_known() || dim.value == size; };
    if (is_float(input_features.type()) && input_features.rank() == 3 && is(input_features.dim(1), c.num_mel_bins) &&
        is(input_features.dim(2), c.frames()))
      return true;
    root.builder().fail({ErrorCode::usage,
                         fmt::format("input_features is {}{}, expected [batch, {}, {}]", name_of(input_features.type()),
                                     to_string(input_features.shape()), c.num_mel_bins, c.frames()),
                         "", "The model takes clips of one length only"});
    return false;
  }
};

// What the layers take, [batch, max_source_positions, d_model].
Value frames(const Scope& s, const WhisperConfig& c, Value features) {
  Value x = conv1d(s["conv1"], features, {.channels = c.d_model, .kernel = 3, .padding = {1, 1}});
  x = conv1d(s["conv2"], activate(s, "gelu", x), {.channels = c.d_model, .kernel = 3, .stride = 2, .padding = {1, 1}});
  x = transpose(s, activate(s, "gelu", x), {0, 2, 1});
  const Scope positions = s["embed_positions"];
  positions.is_a("Embedding");
  positions.declare("weight", half_sinusoids(c.max_source_positions, c.d_model));
  return add(s, x, positions.weight("weight", {c.max_source_positions, c.d_model}));
}

Outputs encoder_states(const Scope& root, const WhisperConfig& c, const SpectrogramInputs& in) {
  if (!in.fits(root, c)) return {};
  const Scope s = root("model", c.name("Model"))("encoder", c.name("Encoder"));
  return {bart_encoder_layers(s, c, frames(s, c, in.input_features), {})};
}

Outputs decoder_step(const Scope& root, const WhisperConfig& c, const StepInputs& in) {
  if (c.tie_word_embeddings) root.tie("proj_out.weight", "model.decoder.embed_tokens.weight");
  const Scope model = root("model", c.name("Model"));
  StepCache cache = in.cache(model, c.decoder.layers, c.decoder.heads, c.d_model / c.decoder.heads);
  if (!in.needs_position(root)) return {};
  const Value x = bart_decoder(model, c, in.input_ids, in.encoder_states, {}, {&cache, in.position, {}});
  return step_outputs(linear(root["proj_out"], x, c.vocab_size, false), cache);
}

Outputs audio_classifier(const Scope& root, const WhisperConfig& c, const SpectrogramInputs& in) {
  if (!in.fits(root, c)) return {};
  const Scope s = root("encoder", c.name("Encoder"));
  std::vector<Value> all;
  Value states = bart_encoder_layers(s, c, frames(s, c, in.input_features), {}, &all);
  all.push_back(states);
  if (c.use_weighted_layer_sum) states = weighted_states(root, all);
  const Value projected = linear(root["projector"], states, c.classifier_proj_size);
  return {linear(root["classifier"], reduce_mean(root, projected, {1}, false), c.num_labels)};
}

Result<std::vector<InputSpec>> spectrogram_inputs(InputRequest& request) {
  const WhisperConfig c = WhisperConfig::read(request.family, request.config);
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  return std::vector<InputSpec>{{"input_features", DataType::float32,
                                 static_shape({request.shapes.batch_size, c.num_mel_bins, c.frames()}),
                                 ValueRange{-1, 1}}};
}

Result<std::vector<InputSpec>> step_inputs(InputRequest& request) {
  const WhisperConfig c = WhisperConfig::read(request.family, request.config);
  return step_input_specs(request, {.vocabulary = c.vocab_size,
                                    .layers = c.decoder.layers,
                                    .heads = c.decoder.heads,
                                    .size = c.d_model / c.decoder.heads,
                                    .capacity = c.max_position_embeddings,
                                    .states = c.max_source_positions,
                                    .states_width = c.d_model,
                                    .encoder_mask = false});
}

constexpr std::string_view whole = "ForConditionalGeneration";

}  // namespace

const Family whisper{
    .model_type = "whisper",
    .stem = "Whisper",
    .prefix = "model",
    .inputs = {"input_features", "decoder_input_ids", "encoder_hidden_states", "decoder_attention_mask",
               "cache_position", "past_{}_key", "past_{}_value"},
    .default_inputs = spectrogram_inputs,
    .heads = {{encoder_task, whole, {"encoder_hidden_states"}, head<encoder_states>},
              {decoder_task, whole, step_output_names(), head<decoder_step>, step_inputs},
              {"audio-classification", "ForAudioClassification", {"logits"}, head<audio_classifier>}},
    .composites = pair_of({"automatic-speech-recognition"}, whole),
    .cached_layers = [](ConfigReader& fields) { return fields.count("decoder_layers", 4); },
};

}  // namespace mk::models
