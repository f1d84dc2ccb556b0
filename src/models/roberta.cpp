// RoBERTa (Liu et al. 2019), XLM-RoBERTa and CamemBERT: BERT with positions that skip padding, and two heads of their
// own. The three differ in the names of their classes only.

#include "models/bert.h"
#include "models/families.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

Value positions(const Scope& s, const BertConfig& c, const TextInputs& in) {
  const Value ids = in.position_ids ? in.position_ids : token_positions(s, in.input_ids, c.pad_token_id);
  return embedding(s["position_embeddings"], ids, c.max_position_embeddings, c.hidden_size);
}

struct RobertaConfig : BertConfig {
  static RobertaConfig read(const Family& family, ConfigReader& fields) {
    RobertaConfig c{BertConfig::read(family, fields)};
    if (family.stem == "Roberta") c.vocab_size = fields.size("vocab_size", 50265);
    c.positions = models::positions;
    c.pad_token_id = fields.id("pad_token_id", 1);
    return c;
  }
};

Outputs masked_lm(const Scope& root, const RobertaConfig& c, const TextInputs& in) {
  if (c.tie_word_embeddings) root.tie("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight");
  root.tie("lm_head.decoder.bias", "lm_head.bias");
  const Value hidden = bert_model(bert_base(root, c), c, in);

  const Scope s = root("lm_head", c.name("LMHead"));
  Value x = activate(s, "gelu", linear(s["dense"], hidden, c.hidden_size));
  x = layer_norm(s["layer_norm"], x, c.layer_norm_eps);
  return {linear(s["decoder"], x, c.vocab_size)};
}

Outputs sequence_classifier(const Scope& root, const RobertaConfig& c, const TextInputs& in) {
  const Value hidden = bert_model(bert_base(root, c), c, in);
  const Scope s = root("classifier", c.name("ClassificationHead"));
  const Value x = unary(s, "Tanh", linear(s["dense"], take(s, hidden, 1, 0), c.hidden_size));
  return {linear(s["out_proj"], x, c.num_labels)};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const RobertaConfig c = RobertaConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings - c.pad_token_id - 1, 0});
}

Family family(std::string_view model_type, std::string_view stem) {
  return {
      .model_type = model_type,
      .stem = stem,
      .prefix = "roberta",
      .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids"},
      .default_inputs = default_inputs,
      .heads =
          {
              {"feature-extraction", "Model", {"last_hidden_state"}, head<bert_hidden_states, RobertaConfig>},
              {"fill-mask", "ForMaskedLM", {"logits"}, head<masked_lm>},
              {"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>},
              {"token-classification",
               "ForTokenClassification",
               {"logits"},
               head<bert_token_classifier, RobertaConfig>},
              {"question-answering",
               "ForQuestionAnswering",
               {"start_logits", "end_logits"},
               head<bert_question_answering, RobertaConfig>},
              {"multiple-choice", "ForMultipleChoice", {"logits"}, head<bert_multiple_choice, RobertaConfig>},
          },
  };
}

}  // namespace

const Family roberta = family("roberta", "Roberta");
const Family xlm_roberta = family("xlm-roberta", "XLMRoberta");
const Family camembert = family("camembert", "Camembert");

}  // namespace mk::models
