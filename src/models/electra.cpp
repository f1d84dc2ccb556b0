// ELECTRA (Clark et al. 2020): BERT with embeddings of a width of their own, without a pooler.

#include "models/bert.h"
#include "models/families.h"
#include "models/summary.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct ElectraConfig : BertConfig {
  SummaryConfig summary;

  static ElectraConfig read(const Family& family, ConfigReader& fields) {
    BertConfig defaults;
    defaults.hidden_size = 256, defaults.num_attention_heads = 4, defaults.intermediate_size = 1024;
    ElectraConfig c{BertConfig::read(family, fields, defaults)};
    c.embedding_size = fields.size("embedding_size", 128);
    c.summary = read_summary(fields, {"first", "gelu", true, 0}, c.num_labels, c.hidden_size);
    return c;
  }
};

Outputs masked_lm(const Scope& root, const ElectraConfig& c, const TextInputs& in) {
  if (c.tie_word_embeddings) root.tie("generator_lm_head.weight", "electra.embeddings.word_embeddings.weight");
  const Value hidden = bert_model(bert_base(root, c), c, in);
  const Scope s = root("generator_predictions", c.name("GeneratorPredictions"));
  Value x = activation(s, "activation", "gelu", linear(s["dense"], hidden, c.embedding_size));
  x = layer_norm(s["LayerNorm"], x, c.layer_norm_eps);
  return {linear(root["generator_lm_head"], x, c.vocab_size)};
}

Outputs sequence_classifier(const Scope& root, const ElectraConfig& c, const TextInputs& in) {
  const Value hidden = bert_model(bert_base(root, c), c, in);
  const Scope s = root("classifier", c.name("ClassificationHead"));
  Value x = linear(s["dense"], take(s, hidden, 1, 0), c.hidden_size);
  x = activation(s, "activation", "gelu", x);
  return {linear(s["out_proj"], x, c.num_labels)};
}

Outputs multiple_choice(const Scope& root, const ElectraConfig& c, const TextInputs& in) {
  const Value hidden = bert_model(bert_base(root, c), c, in.flattened(root));
  const Value x = summary(root("sequence_summary", c.name("SequenceSummary")), c.summary, hidden);
  return choice_logits(root, linear(root["classifier"], x, 1), in.input_ids);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const ElectraConfig c = ElectraConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings, c.type_vocab_size});
}

}  // namespace

const Family electra{
    .model_type = "electra",
    .stem = "Electra",
    .prefix = "electra",
    .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"feature-extraction", "Model", {"last_hidden_state"}, head<bert_hidden_states, ElectraConfig>},
            {"fill-mask", "ForMaskedLM", {"logits"}, head<masked_lm>},
            {"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>},
            {"token-classification", "ForTokenClassification", {"logits"}, head<bert_token_classifier, ElectraConfig>},
            {"question-answering",
             "ForQuestionAnswering",
             {"start_logits", "end_logits"},
             head<bert_question_answering, ElectraConfig>},
            {"multiple-choice", "ForMultipleChoice", {"logits"}, head<multiple_choice>},
        },
};

}  // namespace mk::models
