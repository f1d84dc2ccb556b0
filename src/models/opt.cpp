// OPT (Zhang et al. 2022): positions count the tokens that the mask has.

#include <fmt/format.h>

#include <cmath>

#include "models/decoder.h"
#include "models/families.h"
#include "models/text.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct OptConfig {
  std::int64_t vocab_size = 50272, hidden_size = 768, num_hidden_layers = 12, ffn_dim = 3072;
  std::int64_t max_position_embeddings = 2048, word_embed_proj_dim = 768, num_attention_heads = 12;
  std::int64_t num_labels = 2, pad_token_id = 1;
  std::string activation_function = "relu";
  bool norm_before = true, final_norm = true, bias = true, scaled_norms = true, tie_word_embeddings = true;

  std::int64_t head_size() const { return hidden_size / num_attention_heads; }
  static OptConfig read(const Family& family, ConfigReader& fields);
};

OptConfig OptConfig::read(const Family&, ConfigReader& fields) {
  OptConfig c;
  c.vocab_size = fields.size("vocab_size", c.vocab_size);
  c.hidden_size = fields.size("hidden_size", c.hidden_size);
  c.num_hidden_layers = fields.count("num_hidden_layers", c.num_hidden_layers);
  c.ffn_dim = fields.size("ffn_dim", c.ffn_dim);
  c.max_position_embeddings = fields.size("max_position_embeddings", c.max_position_embeddings);
  c.word_embed_proj_dim = fields.size("word_embed_proj_dim", c.hidden_size);
  c.num_attention_heads = fields.size("num_attention_heads", c.num_attention_heads);
  c.num_labels = fields.num_labels();
  if (fields.mentions("pad_token_id"))
    c.pad_token_id = fields.has("pad_token_id") ? fields.integer("pad_token_id", -1) : -1;
  c.activation_function = fields.string("activation_function", c.activation_function);
  c.norm_before = fields.boolean("do_layer_norm_before", c.norm_before);
  c.final_norm = c.norm_before && !fields.boolean("_remove_final_layer_norm", false);
  c.bias = fields.boolean("enable_bias", c.bias);
  c.scaled_norms = fields.boolean("layer_norm_elementwise_affine", c.scaled_norms);
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", c.tie_word_embeddings);
  if (c.hidden_size % c.num_attention_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                  c.hidden_size, c.num_attention_heads));
  return c;
}

Value norm(const Scope& s, const OptConfig& c, Value x) {
  constexpr double epsilon = 1e-5;
  if (c.scaled_norms) return layer_norm(s, x, epsilon);
  s.is_a("LayerNorm");
  const Value centered = sub(s, x, reduce_mean(s, x, {-1}, true));
  const Value variance = reduce_mean(s, mul(s, centered, centered), {-1}, true);
  return div(s, centered, unary(s, "Sqrt", add(s, variance, epsilon)));
}

// The number of tokens before and at each, 0 where there is padding; then two rows on.
Value positions(const Scope& s, const OptConfig& c, const DecoderInputs& in) {
  constexpr std::int64_t offset = 2;
  Value rows;
  if (in.position_ids || !in.attention_mask) {
    rows = add(s, in.positions(s), static_cast<double>(offset));
  } else {
    const Value mask = in.attention_mask;
    rows = mul(s, cumsum(s, mask, 1), mask);
    if (!in.cache.empty()) {
      const Value begin = sub(s, size(s, mask, 1), size(s, in.input_ids, 1));
      rows = Op(s, "Slice", {rows, begin, s.builder().integers({to_the_end}), s.builder().integers({1})})
                 .out(mask.type(), in.input_ids.shape());
    }
    rows = add(s, rows, static_cast<double>(offset - 1));
  }
  return embedding(s, rows, c.max_position_embeddings + offset, c.hidden_size);
}

Value attention(const Scope& s, const OptConfig& c, std::size_t index, Value x, Value mask, DecoderInputs& in) {
  const double scale = 1 / std::sqrt(static_cast<double>(c.head_size()));
  const auto heads = [&](const char* name) { return linear(s[name], x, c.hidden_size, c.bias); };
  const Value query = split_heads(s, mul(s, heads("q_proj"), scale), c.num_attention_heads);
  const Value key = split_heads(s, heads("k_proj"), c.num_attention_heads);
  const Value value = split_heads(s, heads("v_proj"), c.num_attention_heads);
  const KeyValue cached = with_past(s, in.cache, index, {key, value});
  return linear(s["out_proj"], grouped_attention(s, query, cached, mask), c.hidden_size, c.bias);
}

Value layer(const Scope& s, const OptConfig& c, std::size_t index, Value x, Value mask, DecoderInputs& in) {
  Value y = c.norm_before ? norm(s["self_attn_layer_norm"], c, x) : x;
  x = add(s, x, attention(s("self_attn", "OPTAttention"), c, index, y, mask, in));
  if (!c.norm_before) x = norm(s["self_attn_layer_norm"], c, x);
  y = c.norm_before ? norm(s["final_layer_norm"], c, x) : x;
  y = activation(s, "activation_fn", c.activation_function, linear(s["fc1"], y, c.ffn_dim, c.bias));
  x = add(s, x, linear(s["fc2"], y, c.hidden_size, c.bias));
  return c.norm_before ? x : norm(s["final_layer_norm"], c, x);
}

Value model(const Scope& base, const OptConfig& c, DecoderInputs& in) {
  if (!in.has_cache_for(base, c.num_hidden_layers, c.num_attention_heads, c.head_size())) return {};
  const Scope s = base("decoder", "OPTDecoder");
  const bool projected = c.word_embed_proj_dim != c.hidden_size;
  Value x = embedding(s["embed_tokens"], in.input_ids, c.vocab_size, c.word_embed_proj_dim);
  if (projected) x = linear(s["project_in"], x, c.hidden_size, false);
  x = add(s, x, positions(s("embed_positions", "OPTLearnedPositionalEmbedding"), c, in));
  const Value mask = reach_mask(s, in.input_ids, in.attention_mask, {});
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i)
    x = layer(s("layers", i, "OPTDecoderLayer"), c, static_cast<std::size_t>(i), x, mask, in);
  if (c.final_norm) x = norm(s["final_layer_norm"], c, x);
  return projected ? linear(s["project_out"], x, c.word_embed_proj_dim, false) : x;
}

Value base_of(const Scope& root, const OptConfig& c, DecoderInputs in) {
  return model(root("model", "OPTModel"), c, in);
}

Outputs hidden_states(const Scope& root, const OptConfig& c, const DecoderInputs& in) {
  DecoderInputs inputs = in;
  return {model(root, c, inputs)};
}

Outputs causal_lm(const Scope& root, const OptConfig& c, const DecoderInputs& in) {
  if (c.tie_word_embeddings) root.tie("lm_head.weight", "model.decoder.embed_tokens.weight");
  DecoderInputs inputs = in;
  const Value hidden = model(root("model", "OPTModel"), c, inputs);
  return with_cache(linear(root["lm_head"], hidden, c.vocab_size, false), inputs.cache);
}

Outputs sequence_classifier(const Scope& root, const OptConfig& c, const DecoderInputs& in) {
  const Value last = last_token(root, base_of(root, c, in), in.input_ids, c.pad_token_id);
  return {linear(root["score"], last, c.num_labels, false)};
}

Outputs question_answering(const Scope& root, const OptConfig& c, const DecoderInputs& in) {
  return span_logits(root, base_of(root, c, in), 2);
}

Result<std::vector<InputSpec>> inputs(InputRequest& request) {
  const OptConfig c = OptConfig::read(request.family, request.config);
  return decoder_input_specs(request, {.vocabulary = c.vocab_size,
                                       .positions = c.max_position_embeddings,
                                       .bounded = true,
                                       .takes_positions = false,
                                       .layers = c.num_hidden_layers,
                                       .key_heads = c.num_attention_heads,
                                       .head_size = c.head_size()});
}

Family family() {
  Family f{.model_type = "opt",
           .stem = "OPT",
           .prefix = "model",
           .inputs = decoder_inputs,
           .default_inputs = inputs,
           .heads = generation_heads("ForCausalLM", head<causal_lm>),
           .composites = generation_composites("ForCausalLM"),
           .cached_layers = [](ConfigReader& fields) { return OptConfig::read(Family{}, fields).num_hidden_layers; }};
  f.heads.push_back({"feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>});
  f.heads.push_back({"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>});
  f.heads.push_back(
      {"question-answering", "ForQuestionAnswering", {"start_logits", "end_logits"}, head<question_answering>});
  return f;
}

}  // namespace

const Family opt = family();

}  // namespace mk::models
