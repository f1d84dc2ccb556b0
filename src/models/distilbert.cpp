// DistilBERT (Sanh et al. 2019): BERT without token types and pooler.

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <string>

#include "models/families.h"
#include "models/text.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"
#include "nn/sinusoids.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr double layer_norm_eps = 1e-12;

struct DistilBertConfig {
  std::int64_t vocab_size = 30522;
  std::int64_t max_position_embeddings = 512;
  std::int64_t n_layers = 6;
  std::int64_t n_heads = 12;
  std::int64_t dim = 768;
  std::int64_t hidden_dim = 3072;
  std::int64_t num_labels = 2;
  std::string activation = "gelu";
  bool sinusoidal_pos_embds = false;
  bool tie_word_embeddings = true;
  std::map<std::int64_t, std::int64_t> pruned_heads;

  static DistilBertConfig read(const Family&, ConfigReader& fields) {
    DistilBertConfig c;
    c.vocab_size = fields.size("vocab_size", c.vocab_size);
    c.max_position_embeddings = fields.size("max_position_embeddings", c.max_position_embeddings);
    c.n_layers = fields.count("num_hidden_layers", fields.count("n_layers", c.n_layers));
    c.n_heads = fields.size("num_attention_heads", fields.size("n_heads", c.n_heads));
    c.dim = fields.size("hidden_size", fields.size("dim", c.dim));
    c.hidden_dim = fields.size("hidden_dim", c.hidden_dim);
    c.num_labels = fields.num_labels();
    c.activation = fields.string("activation", c.activation);
    c.sinusoidal_pos_embds = fields.boolean("sinusoidal_pos_embds", c.sinusoidal_pos_embds);
    c.tie_word_embeddings = fields.boolean("tie_word_embeddings", c.tie_word_embeddings);
    c.pruned_heads = fields.pruned_heads(c.n_heads);
    if (c.dim % c.n_heads != 0)
      fields.fail(ErrorCode::malformed, fmt::format("dim {} is not a multiple of n_heads {}", c.dim, c.n_heads));
    return c;
  }
};

Value embeddings(const Scope& s, const DistilBertConfig& c, const TextInputs& in) {
  const Scope positions = s["position_embeddings"];
  if (c.sinusoidal_pos_embds) positions.declare("weight", interleaved_sinusoids(c.max_position_embeddings, c.dim));
  Value x = embedding(s["word_embeddings"], in.input_ids, c.vocab_size, c.dim);
  x = add(s, x, first_rows(positions, in.input_ids, c.max_position_embeddings, c.dim));
  return layer_norm(s["LayerNorm"], x, layer_norm_eps);
}

Value self_attention(const Scope& s, const DistilBertConfig& c, std::int64_t heads, Value x, Value mask) {
  const std::int64_t head_size = c.dim / c.n_heads, width = heads * head_size;
  Value query = split_heads(s, linear(s["q_lin"], x, width), heads);
  const Value key = split_keys(s, linear(s["k_lin"], x, width), heads);
  const Value value = split_heads(s, linear(s["v_lin"], x, width), heads);
  query = div(s, query, std::sqrt(static_cast<double>(head_size)));
  return linear(s["out_lin"], attend(s, matmul(s, query, key), mask, value), c.dim);
}

Value block(const Scope& s, const DistilBertConfig& c, std::int64_t index, Value x, Value mask) {
  const std::int64_t heads = heads_of(index, c.n_heads, c.pruned_heads);
  Value y = self_attention(s("attention", "MultiHeadSelfAttention"), c, heads, x, mask);
  x = layer_norm(s["sa_layer_norm"], add(s, y, x), layer_norm_eps);

  const Scope ffn = s("ffn", "FFN");
  y = activation(ffn, "activation", c.activation, linear(ffn["lin1"], x, c.hidden_dim));
  return layer_norm(s["output_layer_norm"], add(s, linear(ffn["lin2"], y, c.dim), x), layer_norm_eps);
}

Value distilbert_model(const Scope& s, const DistilBertConfig& c, const TextInputs& in) {
  Value x = embeddings(s("embeddings", "Embeddings"), c, in);
  const Value mask = additive_mask(s, in.attention_mask);
  const Scope transformer = s("transformer", "Transformer");
  for (std::int64_t i = 0; i < c.n_layers; ++i) x = block(transformer("layer", i, "TransformerBlock"), c, i, x, mask);
  return x;
}

Value base(const Scope& root, const DistilBertConfig& c, const TextInputs& in) {
  return distilbert_model(root("distilbert", "DistilBertModel"), c, in);
}

// The first token, through a layer with relu.
Value pooled(const Scope& root, const DistilBertConfig& c, Value hidden) {
  return unary(root, "Relu", linear(root["pre_classifier"], take(root, hidden, 1, 0), c.dim));
}

Outputs hidden_states(const Scope& root, const DistilBertConfig& c, const TextInputs& in) {
  return {distilbert_model(root, c, in)};
}

Outputs masked_lm(const Scope& root, const DistilBertConfig& c, const TextInputs& in) {
  if (c.tie_word_embeddings) root.tie("vocab_projector.weight", "distilbert.embeddings.word_embeddings.weight");
  Value x = linear(root["vocab_transform"], base(root, c, in), c.dim);
  x = activation(root, "activation", c.activation, x);
  x = layer_norm(root["vocab_layer_norm"], x, layer_norm_eps);
  return {linear(root["vocab_projector"], x, c.vocab_size)};
}

Outputs sequence_classifier(const Scope& root, const DistilBertConfig& c, const TextInputs& in) {
  return {linear(root["classifier"], pooled(root, c, base(root, c, in)), c.num_labels)};
}

Outputs multiple_choice(const Scope& root, const DistilBertConfig& c, const TextInputs& in) {
  const Value x = pooled(root, c, base(root, c, in.flattened(root)));
  return choice_logits(root, linear(root["classifier"], x, 1), in.input_ids);
}

Outputs token_classifier(const Scope& root, const DistilBertConfig& c, const TextInputs& in) {
  return token_logits(root, base(root, c, in), c.num_labels);
}

Outputs question_answering(const Scope& root, const DistilBertConfig& c, const TextInputs& in) {
  return span_logits(root, base(root, c, in), c.num_labels);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const DistilBertConfig c = DistilBertConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings, 0});
}

}  // namespace

const Family distilbert{
    .model_type = "distilbert",
    .stem = "DistilBert",
    .prefix = "distilbert",
    .inputs = {"input_ids", "attention_mask"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"fill-mask", "ForMaskedLM", {"logits"}, head<masked_lm>},
            {"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>},
            {"token-classification", "ForTokenClassification", {"logits"}, head<token_classifier>},
            {"question-answering", "ForQuestionAnswering", {"start_logits", "end_logits"}, head<question_answering>},
            {"multiple-choice", "ForMultipleChoice", {"logits"}, head<multiple_choice>},
        },
};

}  // namespace mk::models
