// MPNet (Song et al. 2020): RoBERTa's positions, and a bias by distance that all layers share.

#include <fmt/format.h>

#include <cmath>

#include "models/bert.h"
#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/distances.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr std::int64_t padding = 1;  // whatever pad_token_id is

struct MPNetConfig : BertConfig {
  std::int64_t relative_attention_num_buckets = 32;  // rows of the table; the buckets are always 32

  static MPNetConfig read(const Family& family, ConfigReader& fields) {
    BertConfig defaults;
    defaults.vocab_size = 30527;
    MPNetConfig c{BertConfig::read(family, fields, defaults)};
    c.relative_attention_num_buckets = fields.size("relative_attention_num_buckets", 32);
    return c;
  }
};

Value embeddings(const Scope& s, const MPNetConfig& c, const TextInputs& in) {
  const Value words = embedding(s["word_embeddings"], in.input_ids, c.vocab_size, c.hidden_size);
  const Value ids = in.position_ids ? in.position_ids : token_positions(s, in.input_ids, padding);
  const Value positions = embedding(s["position_embeddings"], ids, c.max_position_embeddings, c.hidden_size);
  return layer_norm(s["LayerNorm"], add(s, words, positions), c.layer_norm_eps);
}

// [1, heads, length, length].
Value position_bias(const Scope& s, const MPNetConfig& c, Value x) {
  const Scope table = s["relative_attention_bias"];
  table.is_a("Embedding");
  const auto bucket = [](std::int64_t distance) { return two_sided_bucket(distance, 32, 128); };
  const Value bias =
      pairs_by_distance(table, table.weight("weight", {c.relative_attention_num_buckets, c.num_attention_heads}), x,
                        c.max_position_embeddings, bucket);
  return unsqueeze(s, transpose(s, bias, {2, 0, 1}), 0);
}

Value self_attention(const Scope& s, const MPNetConfig& c, Value x, Value bias, Value mask) {
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const Value query = split_heads(s, linear(s["q"], x, width), heads);
  const Value key = split_keys(s, linear(s["k"], x, width), heads);
  const Value value = split_heads(s, linear(s["v"], x, width), heads);
  const Value scores = div(s, matmul(s, query, key), std::sqrt(static_cast<double>(width / heads)));
  return linear(s["o"], attend(s, add(s, scores, bias), mask, value), width);
}

Value mpnet_model(const Scope& s, const MPNetConfig& c, const TextInputs& in) {
  if (!c.pruned_heads.empty())
    s.builder().fail({ErrorCode::unsupported, "pruned_heads is not supported: the bias by distance has all heads",
                      "config.json", ""});
  Value x = embeddings(s("embeddings", "MPNetEmbeddings"), c, in);
  const Value mask = additive_mask(s, in.attention_mask);
  const Scope encoder = s("encoder", "MPNetEncoder");
  const Value bias = position_bias(encoder, c, x);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = encoder("layer", i, "MPNetLayer");
    const Scope attention = layer("attention", "MPNetAttention");
    const Value y = self_attention(attention("attn", "MPNetSelfAttention"), c, x, bias, mask);
    x = bert_feed_forward(layer, c, layer_norm(attention["LayerNorm"], add(attention, y, x), c.layer_norm_eps));
  }
  return x;
}

Value base(const Scope& root, const MPNetConfig& c, const TextInputs& in) {
  return mpnet_model(bert_base(root, c), c, in);
}

Outputs hidden_states(const Scope& root, const MPNetConfig& c, const TextInputs& in) {
  return {mpnet_model(root, c, in)};
}

Outputs masked_lm(const Scope& root, const MPNetConfig& c, const TextInputs& in) {
  if (c.tie_word_embeddings) root.tie("lm_head.decoder.weight", "mpnet.embeddings.word_embeddings.weight");
  root.tie("lm_head.decoder.bias", "lm_head.bias");
  const Value hidden = base(root, c, in);
  const Scope s = root("lm_head", "MPNetLMHead");
  Value x = activate(s, "gelu", linear(s["dense"], hidden, c.hidden_size));
  x = layer_norm(s["layer_norm"], x, c.layer_norm_eps);
  return {linear(s["decoder"], x, c.vocab_size)};
}

Outputs sequence_classifier(const Scope& root, const MPNetConfig& c, const TextInputs& in) {
  const Value hidden = base(root, c, in);
  const Scope s = root("classifier", "MPNetClassificationHead");
  const Value x = unary(s, "Tanh", linear(s["dense"], take(s, hidden, 1, 0), c.hidden_size));
  return {linear(s["out_proj"], x, c.num_labels)};
}

Outputs token_classifier(const Scope& root, const MPNetConfig& c, const TextInputs& in) {
  return token_logits(root, base(root, c, in), c.num_labels);
}

Outputs question_answering(const Scope& root, const MPNetConfig& c, const TextInputs& in) {
  return span_logits(root, base(root, c, in), c.num_labels);
}

Outputs multiple_choice(const Scope& root, const MPNetConfig& c, const TextInputs& in) {
  const Value x = bert_pooler(bert_base(root, c), c, base(root, c, in.flattened(root)));
  return choice_logits(root, linear(root["classifier"], x, 1), in.input_ids);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const MPNetConfig c = MPNetConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings - padding - 1, 0});
}

}  // namespace

const Family mpnet{
    .model_type = "mpnet",
    .stem = "MPNet",
    .prefix = "mpnet",
    .inputs = {"input_ids", "attention_mask", "position_ids"},
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
