// GPT-2 (Radford et al. 2019).

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

struct Gpt2Config {
  std::int64_t vocab_size = 50257, n_positions = 1024, n_embd = 768, n_layer = 12, n_head = 12, n_inner = 3072;
  std::int64_t num_labels = 2, pad_token_id = -1;
  double layer_norm_epsilon = 1e-5;
  std::string activation_function = "gelu_new";
  bool scale_attn_weights = true, scale_attn_by_inverse_layer_idx = false, tie_word_embeddings = true;

  std::int64_t head_size() const { return n_embd / n_head; }
  static Gpt2Config read(const Family& family, ConfigReader& fields);
};

Gpt2Config Gpt2Config::read(const Family& family, ConfigReader& fields) {
  Gpt2Config c;
  // Each of these has a second name, which transformers takes, too.
  const auto named = [&](const char* other, const char* own) { return fields.has(other) ? other : own; };
  c.vocab_size = fields.size("vocab_size", c.vocab_size);
  c.n_positions = fields.size(named("max_position_embeddings", "n_positions"), c.n_positions);
  c.n_embd = fields.size(named("hidden_size", "n_embd"), c.n_embd);
  c.n_layer = fields.count(named("num_hidden_layers", "n_layer"), c.n_layer);
  c.n_head = fields.size(named("num_attention_heads", "n_head"), c.n_head);
  c.n_inner = fields.size("n_inner", 4 * c.n_embd);
  c.num_labels = fields.num_labels();
  c.pad_token_id = fields.has("pad_token_id") ? fields.integer("pad_token_id", -1) : -1;
  c.layer_norm_epsilon = fields.number("layer_norm_epsilon", c.layer_norm_epsilon);
  c.activation_function = fields.string("activation_function", c.activation_function);
  c.scale_attn_weights = fields.boolean("scale_attn_weights", c.scale_attn_weights);
  c.scale_attn_by_inverse_layer_idx = fields.boolean("scale_attn_by_inverse_layer_idx", false);
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", c.tie_word_embeddings);
  if (c.n_embd % c.n_head != 0)
    fields.fail(ErrorCode::malformed, fmt::format("n_embd {} is not a multiple of n_head {}", c.n_embd, c.n_head));
  if (fields.boolean("add_cross_attention", false))
    fields.fail(ErrorCode::unsupported,
                fmt::format("a {} with add_cross_attention is not supported", family.model_type),
                "Export the encoder-decoder that it belongs to");
  if (!fields.pruned_heads(c.n_head).empty())
    fields.fail(ErrorCode::unsupported,
                "pruned_heads is not supported for gpt2: layers would have caches of other sizes");
  return c;
}

// transformers' Conv1D: a linear layer whose weight is [in, out].
Value conv1d(const Scope& s, Value x, std::int64_t features) {
  if (!x) return {};
  return add(s, matmul(s, x, s.weight("weight", {x.dim(-1).value, features})), s.weight("bias", {features}));
}

Value attention(const Scope& s, const Gpt2Config& c, std::int64_t index, Value x, Value mask, DecoderInputs& in) {
  const Value all = conv1d(s("c_attn", "Conv1D"), x, 3 * c.n_embd);
  const auto part = [&](std::int64_t i) {
    return split_heads(s, slice(s, all, -1, i * c.n_embd, (i + 1) * c.n_embd), c.n_head);
  };
  double scale = c.scale_attn_weights ? 1 / std::sqrt(static_cast<double>(c.head_size())) : 1;
  if (c.scale_attn_by_inverse_layer_idx) scale /= static_cast<double>(index + 1);
  Value query = part(0);
  if (scale != 1) query = mul(s, query, scale);
  const Value key = part(1), value = part(2);
  const KeyValue cached = with_past(s, in.cache, static_cast<std::size_t>(index), {key, value});
  return conv1d(s("c_proj", "Conv1D"), grouped_attention(s, query, cached, mask), c.n_embd);
}

Value model(const Scope& s, const Gpt2Config& c, DecoderInputs& in) {
  if (!in.has_cache_for(s, c.n_layer, c.n_head, c.head_size())) return {};
  Value x = add(s, embedding(s["wte"], in.input_ids, c.vocab_size, c.n_embd),
                embedding(s["wpe"], in.positions(s), c.n_positions, c.n_embd));
  const Value mask = reach_mask(s, in.input_ids, in.attention_mask, {});
  for (std::int64_t i = 0; i < c.n_layer; ++i) {
    const Scope block = s("h", i, "GPT2Block");
    Value y = layer_norm(block["ln_1"], x, c.layer_norm_epsilon);
    x = add(block, attention(block("attn", "GPT2Attention"), c, i, y, mask, in), x);
    y = layer_norm(block["ln_2"], x, c.layer_norm_epsilon);
    const Scope mlp = block("mlp", "GPT2MLP");
    y = activation(mlp, "act", c.activation_function, conv1d(mlp("c_fc", "Conv1D"), y, c.n_inner));
    x = add(block, x, conv1d(mlp("c_proj", "Conv1D"), y, c.n_embd));
  }
  return layer_norm(s["ln_f"], x, c.layer_norm_epsilon);
}

Value base_of(const Scope& root, const Gpt2Config& c, DecoderInputs in) {
  return model(root("transformer", "GPT2Model"), c, in);
}

Outputs hidden_states(const Scope& root, const Gpt2Config& c, const DecoderInputs& in) {
  DecoderInputs inputs = in;
  return {model(root, c, inputs)};
}

Outputs causal_lm(const Scope& root, const Gpt2Config& c, const DecoderInputs& in) {
  if (c.tie_word_embeddings) root.tie("lm_head.weight", "transformer.wte.weight");
  DecoderInputs inputs = in;
  const Value hidden = model(root("transformer", "GPT2Model"), c, inputs);
  return with_cache(linear(root["lm_head"], hidden, c.vocab_size, false), inputs.cache);
}

Outputs sequence_classifier(const Scope& root, const Gpt2Config& c, const DecoderInputs& in) {
  const Value last = last_token(root, base_of(root, c, in), in.input_ids, c.pad_token_id);
  return {linear(root["score"], last, c.num_labels, false)};
}

Outputs token_classifier(const Scope& root, const Gpt2Config& c, const DecoderInputs& in) {
  return token_logits(root, base_of(root, c, in), c.num_labels);
}

Outputs question_answering(const Scope& root, const Gpt2Config& c, const DecoderInputs& in) {
  return span_logits(root, base_of(root, c, in), 2);
}

Result<std::vector<InputSpec>> inputs(InputRequest& request) {
  const Gpt2Config c = Gpt2Config::read(request.family, request.config);
  return decoder_input_specs(request, {.vocabulary = c.vocab_size,
                                       .positions = c.n_positions,
                                       .bounded = true,
                                       .takes_positions = true,
                                       .layers = c.n_layer,
                                       .key_heads = c.n_head,
                                       .head_size = c.head_size()});
}

Family family() {
  Family f{.model_type = "gpt2",
           .stem = "GPT2",
           .prefix = "transformer",
           .inputs = decoder_inputs,
           .default_inputs = inputs,
           .heads = generation_heads("LMHeadModel", head<causal_lm>),
           .composites = generation_composites("LMHeadModel"),
           .cached_layers = [](ConfigReader& fields) { return Gpt2Config::read(Family{}, fields).n_layer; }};
  f.heads.push_back({"feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>});
  f.heads.push_back({"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>});
  f.heads.push_back({"token-classification", "ForTokenClassification", {"logits"}, head<token_classifier>});
  f.heads.push_back(
      {"question-answering", "ForQuestionAnswering", {"start_logits", "end_logits"}, head<question_answering>});
  return f;
}

}  // namespace

const Family gpt2 = family();

}  // namespace mk::models
