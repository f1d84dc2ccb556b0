// ALBERT (Lan et al. 2019): few layers, run through again and again, on embeddings of a width of their own.

#include <fmt/format.h>

#include <cmath>

#include "models/bert.h"
#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct AlbertConfig : BertConfig {
  std::int64_t num_hidden_groups = 1;  // that share the layers among them
  std::int64_t inner_group_num = 1;    // layers of a group

  static AlbertConfig read(const Family& family, ConfigReader& fields) {
    BertConfig defaults;
    defaults.vocab_size = 30000, defaults.hidden_size = 4096, defaults.num_attention_heads = 64;
    defaults.intermediate_size = 16384, defaults.hidden_act = "gelu_new";
    AlbertConfig c{BertConfig::read(family, fields, defaults)};
    c.embedding_size = fields.size("embedding_size", 128);
    c.num_hidden_groups = fields.count("num_hidden_groups", c.num_hidden_groups);
    c.inner_group_num = fields.count("inner_group_num", c.inner_group_num);
    constexpr std::int64_t most_layers = 10'000;
    if (c.num_hidden_layers * c.inner_group_num > most_layers)
      fields.fail(ErrorCode::malformed, fmt::format("num_hidden_layers {} times inner_group_num {} is beyond {}",
                                                    c.num_hidden_layers, c.inner_group_num, most_layers));
    if (c.num_hidden_layers > 0 && c.num_hidden_groups < 1)
      fields.fail(ErrorCode::malformed, "num_hidden_groups is 0, expected 1 or more");
    return c;
  }
};

Value attention(const Scope& s, const AlbertConfig& c, std::int64_t heads, Value x, Value mask) {
  const std::int64_t head_size = c.hidden_size / c.num_attention_heads, width = heads * head_size;
  const Value query = split_heads(s, linear(s["query"], x, width), heads);
  const Value key = split_keys(s, linear(s["key"], x, width), heads);
  const Value value = split_heads(s, linear(s["value"], x, width), heads);

  Value scores = div(s, matmul(s, query, key), std::sqrt(static_cast<double>(head_size)));
  const Scope distances = s["distance_embedding"];
  if (c.position_embedding_type.starts_with("relative_key"))
    scores = add(s, scores, relative_scores(distances, query, c.max_position_embeddings, false));
  if (c.position_embedding_type == "relative_key_query") {
    const Value of_keys = relative_scores(distances, transpose(s, key, {0, 1, 3, 2}), c.max_position_embeddings, true);
    scores = add(s, scores, transpose(s, of_keys, {0, 1, 3, 2}));
  }
  const Value y = linear(s["dense"], attend(s, scores, mask, value), c.hidden_size);
  return layer_norm(s["LayerNorm"], add(s, x, y), c.layer_norm_eps);
}

Value layer(const Scope& s, const AlbertConfig& c, std::int64_t index, Value x, Value mask) {
  const std::int64_t heads = heads_of(index, c.num_attention_heads, c.pruned_heads);
  x = attention(s("attention", "AlbertAttention"), c, heads, x, mask);
  Value y = activation(s, "activation", c.hidden_act, linear(s["ffn"], x, c.intermediate_size));
  y = linear(s["ffn_output"], y, c.hidden_size);
  return layer_norm(s["full_layer_layer_norm"], add(s, y, x), c.layer_norm_eps);
}

Value albert_model(const Scope& s, const AlbertConfig& c, const TextInputs& in) {
  Value x = bert_embeddings(s, c, in);
  const Value mask = additive_mask(s, in.attention_mask);
  const Scope encoder = s("encoder", "AlbertTransformer");
  x = linear(encoder["embedding_hidden_mapping_in"], x, c.hidden_size);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const std::int64_t group = i * c.num_hidden_groups / c.num_hidden_layers;
    const Scope layers = encoder("albert_layer_groups", group, "AlbertLayerGroup");
    for (std::int64_t j = 0; j < c.inner_group_num; ++j)
      x = layer(layers("albert_layers", j, "AlbertLayer"), c, group * c.inner_group_num + j, x, mask);
  }
  return x;
}

Value base(const Scope& root, const AlbertConfig& c, const TextInputs& in) {
  return albert_model(root("albert", "AlbertModel"), c, in);
}

Value pooled(const Scope& root, const AlbertConfig& c, Value hidden) {
  const Scope s = root("albert", "AlbertModel");
  return activation(s, "pooler_activation", "tanh", linear(s["pooler"], take(s, hidden, 1, 0), c.hidden_size));
}

Outputs hidden_states(const Scope& root, const AlbertConfig& c, const TextInputs& in) {
  return {albert_model(root, c, in)};
}

Outputs masked_lm(const Scope& root, const AlbertConfig& c, const TextInputs& in) {
  if (c.tie_word_embeddings) root.tie("predictions.decoder.weight", "albert.embeddings.word_embeddings.weight");
  root.tie("predictions.decoder.bias", "predictions.bias");
  const Value hidden = base(root, c, in);
  const Scope s = root("predictions", "AlbertMLMHead");
  Value x = activation(s, "activation", c.hidden_act, linear(s["dense"], hidden, c.embedding_size));
  x = layer_norm(s["LayerNorm"], x, c.layer_norm_eps);
  return {linear(s["decoder"], x, c.vocab_size)};
}

Outputs sequence_classifier(const Scope& root, const AlbertConfig& c, const TextInputs& in) {
  return {linear(root["classifier"], pooled(root, c, base(root, c, in)), c.num_labels)};
}

Outputs token_classifier(const Scope& root, const AlbertConfig& c, const TextInputs& in) {
  return token_logits(root, base(root, c, in), c.num_labels);
}

Outputs question_answering(const Scope& root, const AlbertConfig& c, const TextInputs& in) {
  return span_logits(root, base(root, c, in), c.num_labels);
}

Outputs multiple_choice(const Scope& root, const AlbertConfig& c, const TextInputs& in) {
  const Value x = pooled(root, c, base(root, c, in.flattened(root)));
  return choice_logits(root, linear(root["classifier"], x, 1), in.input_ids);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const AlbertConfig c = AlbertConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings, c.type_vocab_size});
}

}  // namespace

const Family albert{
    .model_type = "albert",
    .stem = "Albert",
    .prefix = "albert",
    .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids"},
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
