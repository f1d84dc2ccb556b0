#include "models/bert.h"

#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

Value first_positions(const Scope& embeddings, const BertConfig& c, const TextInputs& in) {
  const Scope s = embeddings["position_embeddings"];
  if (in.position_ids) return embedding(s, in.position_ids, c.max_position_embeddings, c.embedding_size);
  return first_rows(s, in.input_ids, c.max_position_embeddings, c.embedding_size);
}

}  // namespace

BertConfig BertConfig::read(const Family& family, ConfigReader& fields, const BertConfig& defaults) {
  BertConfig c = defaults;
  c.stem = family.stem;
  c.prefix = family.prefix;
  c.vocab_size = fields.size("vocab_size", c.vocab_size);
  c.hidden_size = fields.size("hidden_size", c.hidden_size);
  c.embedding_size = c.hidden_size;
  c.num_hidden_layers = fields.count("num_hidden_layers", c.num_hidden_layers);
  c.num_attention_heads = fields.size("num_attention_heads", c.num_attention_heads);
  c.intermediate_size = fields.size("intermediate_size", c.intermediate_size);
  c.max_position_embeddings = fields.size("max_position_embeddings", c.max_position_embeddings);
  c.type_vocab_size = defaults.type_vocab_size == 0 ? fields.id("type_vocab_size", 0)
                                                    : fields.size("type_vocab_size", c.type_vocab_size);
  c.num_labels = fields.num_labels();
  c.hidden_act = fields.string("hidden_act", c.hidden_act);
  c.position_embedding_type = fields.string("position_embedding_type", c.position_embedding_type);
  c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", c.tie_word_embeddings);
  c.pruned_heads = fields.pruned_heads(c.num_attention_heads);
  c.positions = first_positions;
  if (c.hidden_size % c.num_attention_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                  c.hidden_size, c.num_attention_heads));
  if (c.may_decode) return c;
  if (fields.boolean("is_decoder", false) || fields.boolean("add_cross_attention", false))
    fields.fail(ErrorCode::unsupported, fmt::format("a {} that is a decoder is not supported", family.model_type),
                "Only encoders of this type can be exported (is_decoder false)");
  return c;
}

namespace {

Value embeddings(const Scope& s, const BertConfig& c, const TextInputs& in) {
  Value x = embedding(s["word_embeddings"], in.input_ids, c.vocab_size, c.embedding_size);
  const Scope types = s["token_type_embeddings"];
  x = add(s, x,
          in.token_type_ids ? embedding(types, in.token_type_ids, c.type_vocab_size, c.embedding_size)
                            : s.builder().rows(types.parameter("weight", {c.type_vocab_size, c.embedding_size}), 0, 1));
  if (c.position_embedding_type == "absolute") x = add(s, x, c.positions(s, c, in));
  return layer_norm(s["LayerNorm"], x, c.layer_norm_eps);
}

Value self_attention(const Scope& s, const BertConfig& c, std::int64_t heads, Value x, Value mask) {
  const std::int64_t head_size = c.hidden_size / c.num_attention_heads, width = heads * head_size;
  const Value query = split_heads(s, linear(s["query"], x, width), heads);
  const Value key = split_keys(s, linear(s["key"], x, width), heads);
  const Value value = split_heads(s, linear(s["value"], x, width), heads);

  Value scores = matmul(s, query, key);
  const Scope distances = s["distance_embedding"];
  if (c.position_embedding_type.starts_with("relative_key"))
    scores = add(s, scores, relative_scores(distances, query, c.max_position_embeddings, false));
  if (c.position_embedding_type == "relative_key_query") {
    const Value of_keys = relative_scores(distances, transpose(s, key, {0, 1, 3, 2}), c.max_position_embeddings, true);
    scores = add(s, scores, transpose(s, of_keys, {0, 1, 3, 2}));
  }
  return attend(s, div(s, scores, std::sqrt(static_cast<double>(head_size))), mask, value);
}

Value layer(const Scope& s, const BertConfig& c, std::int64_t index, Value x, Value mask) {
  const Scope attention = s("attention", c.name("Attention"));
  Value y = self_attention(attention("self", c.name("SelfAttention")), c,
                           heads_of(index, c.num_attention_heads, c.pruned_heads), x, mask);
  const Scope mixed = attention("output", c.name("SelfOutput"));
  x = layer_norm(mixed["LayerNorm"], add(mixed, linear(mixed["dense"], y, c.hidden_size), x), c.layer_norm_eps);
  return bert_feed_forward(s, c, x);
}

}  // namespace

Value bert_embeddings(const Scope& s, const BertConfig& c, const TextInputs& in) {
  return embeddings(s("embeddings", c.name("Embeddings")), c, in);
}

Value bert_norm(const Scope& s, const BertConfig& c, Value x) {
  return layer_norm(c.norm_class.empty() ? s["LayerNorm"] : s("LayerNorm", c.norm_class), x, c.layer_norm_eps);
}

Value bert_feed_forward(const Scope& s, const BertConfig& c, Value x) {
  const Scope up = s("intermediate", c.name("Intermediate")), down = s("output", c.name("Output"));
  const Value y = activation(up, "intermediate_act_fn", c.hidden_act, linear(up["dense"], x, c.intermediate_size));
  return bert_norm(down, c, add(down, linear(down["dense"], y, c.hidden_size), x));
}

Value bert_encoder(const Scope& s, const BertConfig& c, Value x, Value attention_mask) {
  const Value mask = additive_mask(s, attention_mask);
  const Scope encoder = s("encoder", c.name("Encoder"));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) x = layer(encoder("layer", i, c.name("Layer")), c, i, x, mask);
  return x;
}

Value bert_model(const Scope& s, const BertConfig& c, const TextInputs& in) {
  Value x = bert_embeddings(s, c, in);
  if (c.embedding_size != c.hidden_size) x = linear(s["embeddings_project"], x, c.hidden_size);
  return bert_encoder(s, c, x, in.attention_mask);
}

Scope bert_base(const Scope& root, const BertConfig& c) { return root(c.prefix, c.name("Model")); }

Value bert_pooler(const Scope& base, const BertConfig& c, Value hidden) {
  const Scope s = base("pooler", c.name("Pooler"));
  return activation(s, "activation", "tanh", linear(s["dense"], take(s, hidden, 1, 0), c.hidden_size));
}

Outputs bert_pooled_classifier(const Scope& root, const BertConfig& c, Value hidden) {
  return {linear(root["classifier"], bert_pooler(bert_base(root, c), c, hidden), c.num_labels)};
}

Outputs bert_lm_head(const Scope& root, const BertConfig& c, Value hidden) {
  const Scope s = root("cls", c.name("OnlyMLMHead"))("predictions", c.name("LMPredictionHead"));
  const Scope transform = s("transform", c.name("PredictionHeadTransform"));
  Value x = linear(transform["dense"], hidden, c.hidden_size);
  x = activation(transform, "transform_act_fn", c.hidden_act, x);
  x = layer_norm(transform["LayerNorm"], x, c.layer_norm_eps);
  return {linear(s["decoder"], x, c.vocab_size)};
}

void bert_lm_ties(const Scope& root, const BertConfig& c) {
  if (c.tie_word_embeddings)
    root.tie("cls.predictions.decoder.weight", c.prefix + ".embeddings.word_embeddings.weight");
  root.tie("cls.predictions.decoder.bias", "cls.predictions.bias");
}

Outputs bert_hidden_states(const Scope& root, const BertConfig& c, const TextInputs& in) {
  return {bert_model(root, c, in)};
}

Outputs bert_token_classifier(const Scope& root, const BertConfig& c, const TextInputs& in) {
  return token_logits(root, bert_model(bert_base(root, c), c, in), c.num_labels);
}

Outputs bert_question_answering(const Scope& root, const BertConfig& c, const TextInputs& in) {
  return span_logits(root, bert_model(bert_base(root, c), c, in), c.num_labels);
}

Outputs bert_multiple_choice(const Scope& root, const BertConfig& c, const TextInputs& in) {
  const Scope base = bert_base(root, c);
  const Value pooled = bert_pooler(base, c, bert_model(base, c, in.flattened(root)));
  return choice_logits(root, linear(root["classifier"], pooled, 1), in.input_ids);
}

namespace {

Outputs sequence_classifier(const Scope& root, const BertConfig& c, const TextInputs& in) {
  return bert_pooled_classifier(root, c, bert_model(bert_base(root, c), c, in));
}

Outputs next_sentence(const Scope& root, const BertConfig& c, const TextInputs& in) {
  const Scope base = bert_base(root, c);
  const Value pooled = bert_pooler(base, c, bert_model(base, c, in));
  return {linear(root("cls", c.name("OnlyNSPHead"))["seq_relationship"], pooled, 2)};
}

Outputs masked_lm(const Scope& root, const BertConfig& c, const TextInputs& in) {
  bert_lm_ties(root, c);
  return bert_lm_head(root, c, bert_model(bert_base(root, c), c, in));
}

Result<std::vector<InputSpec>> inputs(InputRequest& request) {
  const BertConfig c = BertConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings, c.type_vocab_size});
}

}  // namespace

const Family bert{
    .model_type = "bert",
    .stem = "Bert",
    .prefix = "bert",
    .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids"},
    .default_inputs = inputs,
    .heads =
        {
            {"feature-extraction", "Model", {"last_hidden_state"}, head<bert_hidden_states>},
            {"fill-mask", "ForMaskedLM", {"logits"}, head<masked_lm>},
            {"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>},
            {"token-classification", "ForTokenClassification", {"logits"}, head<bert_token_classifier>},
            {"question-answering",
             "ForQuestionAnswering",
             {"start_logits", "end_logits"},
             head<bert_question_answering>},
            {"multiple-choice", "ForMultipleChoice", {"logits"}, head<bert_multiple_choice>},
            {"next-sentence-prediction", "ForNextSentencePrediction", {"logits"}, head<next_sentence>},
        },
};

}  // namespace mk::models
