// T5 (Raffel et al. 2019) and mT5 (Xue et al. 2020). The decoder's cache is a window that slides: positions are
// relative, so that the token is always in the last slot.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/families.h"
#include "models/seq2seq.h"
#include "models/text.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct T5Config {
  std::string stem;
  std::int64_t vocab_size = 32128, d_model = 512, d_kv = 64, d_ff = 2048, num_heads = 8, n_positions = 512;
  std::int64_t num_layers = 6, num_decoder_layers = 6, num_buckets = 32, max_distance = 128;
  double layer_norm_epsilon = 1e-6;
  std::string activation;
  bool gated = false, tie_word_embeddings = true;

  static T5Config read(const Family& family, ConfigReader& fields);
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
  std::int64_t inner() const { return num_heads * d_kv; }
};

// "relu", "gated-gelu": whether there is a gate, and the activation.
void read_feed_forward(T5Config& c, ConfigReader& fields, const std::string& otherwise) {
  const std::string text = fields.string("feed_forward_proj", otherwise);
  const std::size_t dash = text.find('-');
  c.gated = dash != std::string::npos && text.substr(0, dash) == "gated";
  c.activation = text == "gated-gelu" ? "gelu_new" : c.gated ? text.substr(dash + 1) : text;
  if (dash != std::string::npos && (!c.gated || c.activation.find('-') != std::string::npos))
    fields.fail(ErrorCode::malformed, fmt::format("feed_forward_proj is \"{}\"", text),
                "It is an activation (\"relu\"), or one with a gate (\"gated-gelu\")");
}

T5Config T5Config::read(const Family& family, ConfigReader& fields) {
  const bool mt5 = family.model_type == "mt5";
  T5Config c;
  c.stem = family.stem;
  c.vocab_size = fields.size("vocab_size", mt5 ? 250112 : c.vocab_size);
  c.d_model = fields.size("d_model", c.d_model);
  c.d_kv = fields.size("d_kv", c.d_kv);
  c.d_ff = fields.size("d_ff", mt5 ? 1024 : c.d_ff);
  c.num_heads = fields.size("num_heads", mt5 ? 6 : c.num_heads);
  c.num_layers = fields.count("num_layers", mt5 ? 8 : c.num_layers);
  c.num_decoder_layers = fields.count("num_decoder_layers", c.num_layers);
  c.num_buckets = fields.size("relative_attention_num_buckets", c.num_buckets);
  c.max_distance = fields.size("relative_attention_max_distance", c.max_distance);
  c.n_positions = fields.size("n_positions", c.n_positions);
  c.layer_norm_epsilon = fields.number("layer_norm_epsilon", c.layer_norm_epsilon);
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", !mt5);
  read_feed_forward(c, fields, mt5 ? "gated-gelu" : "relu");
  constexpr std::int64_t farthest = 1 << 20;
  if (c.num_buckets < 4 || c.max_distance <= c.num_buckets / 2 || c.max_distance > farthest)
    fields.fail(ErrorCode::malformed,
                fmt::format("relative_attention_num_buckets {} does not go with relative_attention_max_distance {}",
                            c.num_buckets, c.max_distance));
  return c;
}

// The bucket of a key's distance from the query (key - query): half of them for single distances, the others for
// logarithmically wider ranges up to max_distance; in float32, as the original rounds.
std::int64_t bucket(const T5Config& c, bool both_ways, std::int64_t distance) {
  const std::int64_t buckets = both_ways ? c.num_buckets / 2 : c.num_buckets, exact = buckets / 2;
  const std::int64_t first = both_ways && distance > 0 ? buckets : 0;
  const std::int64_t away = both_ways ? std::abs(distance) : std::max<std::int64_t>(0, -distance);
  if (away < exact) return first + away;
  const auto range = static_cast<float>(std::log(static_cast<double>(c.max_distance) / static_cast<double>(exact)));
  const float scaled =
      std::log(static_cast<float>(away) / static_cast<float>(exact)) / range * static_cast<float>(buckets - exact);
  return first + std::min(exact + static_cast<std::int64_t>(scaled), buckets - 1);
}

Value range(const Scope& s, Value like, int axis) {
  Builder& b = s.builder();
  const Dim length = like.dim(axis);
  const Value end = length.is_known() ? b.scalar(DataType::int64, static_cast<double>(length.value))
                                      : Op(s, "Squeeze", {size(s, like, axis)}).out(DataType::int64, {});
  return Op(s, "Range", {b.scalar(DataType::int64, 0), end, b.scalar(DataType::int64, 1)})
      .out(DataType::int64, {length});
}

// The row of the layer's table for each distance in `distances`, heads in front.
Value bias_of(const Scope& stack, const T5Config& c, bool both_ways, Value distances) {
  const Scope s = stack("block", 0, c.name("Block"))("layer", 0, c.name("LayerSelfAttention"))(
      "SelfAttention", c.name("Attention"))["relative_attention_bias"];
  s.is_a("Embedding");
  std::vector<std::int64_t> buckets;
  for (std::int64_t d = -c.max_distance; d <= c.max_distance; ++d) buckets.push_back(bucket(c, both_ways, d));
  Builder& b = s.builder();
  const Value table = gather(s, s.weight("weight", {c.num_buckets, c.num_heads}), b.integers(std::move(buckets)));
  // Farther ones count as the farthest that has a bucket of its own.
  const Value low = b.scalar(DataType::int64, static_cast<double>(-c.max_distance));
  const Value high = b.scalar(DataType::int64, static_cast<double>(c.max_distance));
  const Value near = Op(s, "Clip", {distances, low, high}).like(distances);
  const Value rows = gather(s, table, add(s, near, high));
  return unsqueeze(s, rows.rank() == 3 ? transpose(s, rows, {2, 0, 1}) : unsqueeze(s, transpose(s, rows, {1, 0}), 1),
                   0);
}

Value norm(const Scope& s, const T5Config& c, Value x) {
  return rms_norm(s("layer_norm", c.name("LayerNorm")), x, c.layer_norm_epsilon);
}

Value attention(const Scope& s, const T5Config& c, Value x, Value states, Value mask) {
  const Value query = split_heads(s, linear(s["q"], x, c.inner(), false), c.num_heads);
  const Value key = split_keys(s, linear(s["k"], states, c.inner(), false), c.num_heads);
  const Value value = split_heads(s, linear(s["v"], states, c.inner(), false), c.num_heads);
  return linear(s["o"], attend(s, matmul(s, query, key), mask, value), c.d_model, false);
}

Value step_attention(const Scope& s, const T5Config& c, Value x, StepCache& cache, std::size_t layer) {
  const Value query = linear(s["q"], x, c.inner(), false), key = linear(s["k"], x, c.inner(), false);
  const Value value = linear(s["v"], x, c.inner(), false);
  return linear(s["o"], attend_step(s, cache, layer, c.num_heads, query, key, value), c.d_model, false);
}

Value feed_forward(const Scope& s, const T5Config& c, Value x) {
  const Scope dense = s("DenseReluDense", c.name(c.gated ? "DenseGatedActDense" : "DenseActDense"));
  const Value normal = norm(s, c, x);
  Value y = activation(dense, "act", c.activation, linear(dense[c.gated ? "wi_0" : "wi"], normal, c.d_ff, false));
  if (c.gated) y = mul(dense, y, linear(dense["wi_1"], normal, c.d_ff, false));
  return add(s, x, linear(dense["wo"], y, c.d_model, false));
}

// The two stacks look tokens up in one table.
void tie_embeddings(const Scope& root, const T5Config& c) {
  root.tie("encoder.embed_tokens.weight", "shared.weight");
  root.tie("decoder.embed_tokens.weight", "shared.weight");
  if (c.tie_word_embeddings) root.tie("lm_head.weight", "shared.weight");
}

Outputs encoder_states(const Scope& root, const T5Config& c, const TextInputs& in) {
  tie_embeddings(root, c);
  if (!in.input_ids) return {};
  const Scope s = root("encoder", c.name("Stack"));
  Value x = embedding(s["embed_tokens"], in.input_ids, c.vocab_size, c.d_model);
  const Value places = range(s, in.input_ids, 1);
  Value mask = bias_of(s, c, true, sub(s, unsqueeze(s, places, 0), unsqueeze(s, places, 1)));
  if (const Value padding = additive_mask(s, in.attention_mask)) mask = add(s, mask, padding);
  for (std::int64_t i = 0; i < c.num_layers; ++i) {
    const Scope block = s("block", i, c.name("Block"));
    const Scope own = block("layer", 0, c.name("LayerSelfAttention"));
    const Value normal = norm(own, c, x);
    x = add(own, x, attention(own("SelfAttention", c.name("Attention")), c, normal, normal, mask));
    x = feed_forward(block("layer", 1, c.name("LayerFF")), c, x);
  }
  return {rms_norm(s("final_layer_norm", c.name("LayerNorm")), x, c.layer_norm_epsilon)};
}

// The past, oldest first, then the token: distances -capacity ... 0.
Value step_bias(const Scope& s, const T5Config& c, Value mask) {
  if (!mask) return {};
  Builder& b = s.builder();
  const Dim slots = mask.dim(3);
  if (!slots.is_known())
    return bias_of(s, c, false, sub(s, range(s, mask, 3), sub(s, size(s, mask, 3), b.integers({1}))));
  std::vector<std::int64_t> distances;
  for (std::int64_t slot = 1; slot <= slots.value; ++slot) distances.push_back(slot - slots.value);
  return bias_of(s, c, false, b.integers(std::move(distances)));
}

Outputs decoder_step(const Scope& root, const T5Config& c, const StepInputs& in) {
  tie_embeddings(root, c);
  const Scope s = root("decoder", c.name("Stack"));
  StepCache cache = in.cache(s, c.num_decoder_layers, c.num_heads, c.d_kv);
  if (!root.builder().ok()) return {};
  cache.mask = add(s, cache.mask, step_bias(s, c, cache.mask));
  const Value padding = additive_mask(s, in.encoder_mask);
  Value x = embedding(s["embed_tokens"], in.input_ids, c.vocab_size, c.d_model);
  for (std::int64_t i = 0; i < c.num_decoder_layers; ++i) {
    const Scope block = s("block", i, c.name("Block"));
    const Scope own = block("layer", 0, c.name("LayerSelfAttention"));
    x = add(own, x,
            step_attention(own("SelfAttention", c.name("Attention")), c, norm(own, c, x), cache,
                           static_cast<std::size_t>(i)));
    const Scope cross = block("layer", 1, c.name("LayerCrossAttention"));
    x = add(cross, x,
            attention(cross("EncDecAttention", c.name("Attention")), c, norm(cross, c, x), in.encoder_states, padding));
    x = feed_forward(block("layer", 2, c.name("LayerFF")), c, x);
  }
  x = rms_norm(s("final_layer_norm", c.name("LayerNorm")), x, c.layer_norm_epsilon);
  if (c.tie_word_embeddings) x = mul(root, x, 1 / std::sqrt(static_cast<double>(c.d_model)));
  return step_outputs(linear(root["lm_head"], x, c.vocab_size, false), cache);
}

// Positions are relative: any length can be asked for.
std::int64_t longest(const InputRequest& request, const T5Config& c) {
  const auto asked = request.shapes.values.find("sequence_length");
  return asked == request.shapes.values.end() ? c.n_positions : std::max(c.n_positions, asked->second);
}

Result<std::vector<InputSpec>> text_inputs(InputRequest& request) {
  const T5Config c = T5Config::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, longest(request, c), 0});
}

Result<std::vector<InputSpec>> step_inputs(InputRequest& request) {
  const T5Config c = T5Config::read(request.family, request.config);
  constexpr std::int64_t longest_default = 1024;
  return step_input_specs(request, {.vocabulary = c.vocab_size,
                                    .layers = c.num_decoder_layers,
                                    .heads = c.num_heads,
                                    .size = c.d_kv,
                                    .capacity = c.n_positions,
                                    .states = std::min(c.n_positions, longest_default),
                                    .longest_states = longest(request, c),
                                    .states_width = c.d_model,
                                    .sliding = true,
                                    .bounded = false});
}

std::int64_t decoder_layers(ConfigReader& fields) {
  return fields.count("num_decoder_layers", fields.count("num_layers", 6));
}
std::int64_t mt5_decoder_layers(ConfigReader& fields) {
  return fields.count("num_decoder_layers", fields.count("num_layers", 8));
}

Family t5_family(std::string_view model_type, std::string_view stem, std::int64_t (*layers)(ConfigReader&)) {
  constexpr std::string_view whole = "ForConditionalGeneration";
  return {.model_type = model_type,
          .stem = stem,
          .prefix = "transformer",
          .inputs = pair_inputs(),
          .default_inputs = text_inputs,
          .heads = {{encoder_task, whole, {"encoder_hidden_states"}, head<encoder_states>},
                    {encoder_task, "EncoderModel", {"last_hidden_state"}, head<encoder_states>},
                    {decoder_task, whole, step_output_names(), head<decoder_step>, step_inputs}},
          .composites = pair_of({"translation", "summarization"}, whole),
          .cached_layers = layers};
}

}  // namespace

const Family t5 = t5_family("t5", "T5", decoder_layers);
const Family mt5 = t5_family("mt5", "MT5", mt5_decoder_layers);

}  // namespace mk::models
