#pragma once
// BERT (Devlin et al. 2018) as transformers' BertModel, and what RoBERTa and its kin share with it.

#include <cstdint>
#include <map>
#include <string>

#include "models/family.h"
#include "models/text.h"

namespace mk::models {

struct BertConfig {
  std::string stem;    // of class names: "Bert", "XLMRoberta"
  std::string prefix;  // of the base model in a head: "bert", "roberta"
  std::int64_t vocab_size = 30522;
  std::int64_t hidden_size = 768;
  std::int64_t embedding_size = 0;  // where it is not hidden_size, embeddings_project widens the embeddings
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  std::int64_t max_position_embeddings = 512;
  std::int64_t type_vocab_size = 2;
  std::int64_t num_labels = 2;
  std::string hidden_act = "gelu";
  std::string position_embedding_type = "absolute";  // relative_key, relative_key_query
  double layer_norm_eps = 1e-12;
  std::string norm_class;  // of `LayerNorm`, where it is not torch.nn's
  bool tie_word_embeddings = true;
  std::map<std::int64_t, std::int64_t> pruned_heads;  // layer -> how many
  // The embeddings of positions, where they are absolute: first_positions unless a family has a rule of its own.
  Value (*positions)(const Scope& embeddings, const BertConfig& c, const TextInputs& in);
  std::int64_t pad_token_id = 0;
  bool may_decode = false;  // is_decoder is no error

  // With the defaults of the family's configuration class.
  static BertConfig read(const Family& family, ConfigReader& fields, const BertConfig& defaults);
  static BertConfig read(const Family& family, ConfigReader& fields) { return read(family, fields, {}); }
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
};

// The encoder: [batch, sequence] -> [batch, sequence, hidden_size]. `s` is the base model.
Value bert_model(const Scope& s, const BertConfig& c, const TextInputs& in);
// Its embeddings alone, [batch, sequence, embedding_size]; its layers alone, on embedded tokens; and the second half of
// a layer (`intermediate` and `output`).
Value bert_embeddings(const Scope& s, const BertConfig& c, const TextInputs& in);
Value bert_encoder(const Scope& s, const BertConfig& c, Value x, Value attention_mask);
Value bert_norm(const Scope& s, const BertConfig& c, Value x);  // its `LayerNorm`
Value bert_feed_forward(const Scope& layer, const BertConfig& c, Value x);
// The base model inside a head.
Scope bert_base(const Scope& root, const BertConfig& c);
// The tanh layer on the first token.
Value bert_pooler(const Scope& s, const BertConfig& c, Value hidden);

// Its layer, and `classifier` on it.
Outputs bert_pooled_classifier(const Scope& root, const BertConfig& c, Value hidden);
// The head `cls` of masked tokens; its ties come before the base model.
void bert_lm_ties(const Scope& root, const BertConfig& c);
Outputs bert_lm_head(const Scope& root, const BertConfig& c, Value hidden);

Outputs bert_hidden_states(const Scope& root, const BertConfig& c, const TextInputs& in);
Outputs bert_token_classifier(const Scope& root, const BertConfig& c, const TextInputs& in);
Outputs bert_question_answering(const Scope& root, const BertConfig& c, const TextInputs& in);
Outputs bert_multiple_choice(const Scope& root, const BertConfig& c, const TextInputs& in);

}  // namespace mk::models
