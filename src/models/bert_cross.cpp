// BERT and RoBERTa as decoders that also look at an encoder.

#include <fmt/format.h>

#include <cmath>

#include "models/bert.h"
#include "models/cross_decoder.h"
#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

Value given_positions(const Scope& s, const BertConfig& c, const TextInputs& in) {
  return embedding(s["position_embeddings"], in.position_ids, c.max_position_embeddings, c.hidden_size);
}

BertConfig read(const Family& family, ConfigReader& fields) {
  const bool is_bert = family.model_type == "bert";
  BertConfig defaults;
  defaults.may_decode = true;
  if (family.model_type == "roberta") defaults.vocab_size = 50265;
  BertConfig c = BertConfig::read(family, fields, defaults);
  c.pad_token_id = is_bert ? 0 : fields.id("pad_token_id", 1);
  c.positions = given_positions;
  if (c.position_embedding_type != "absolute")
    fields.fail(ErrorCode::unsupported,
                fmt::format("position_embedding_type \"{}\" is not supported in a decoder", c.position_embedding_type));
  if (!c.pruned_heads.empty()) fields.fail(ErrorCode::unsupported, "pruned_heads is not supported in a decoder");
  return c;
}

// Positions of RoBERTa are counted over tokens that are no padding, and begin behind its id.
Value positions(const Scope& s, const BertConfig& c, const StepInputs& in) {
  const Value position = cast(s, in.position, DataType::int64);
  if (c.prefix == "bert") return position;
  Builder& b = s.builder();
  const Value pad = b.scalar(in.input_ids.type(), static_cast<double>(c.pad_token_id));
  const Value real = cast(s, unary(s, "Not", equal(s, in.input_ids, pad)), DataType::int64);
  return add(s, mul(s, add(s, position, b.integers({1})), real), b.integers({c.pad_token_id}));
}

Value projected(const Scope& s, const BertConfig& c, Value y, Value x) {
  const Scope output = s("output", c.name("SelfOutput"));
  return layer_norm(output["LayerNorm"], add(output, linear(output["dense"], y, c.hidden_size), x), c.layer_norm_eps);
}

Value query_of(const Scope& s, const BertConfig& c, Value x) {
  const auto size = static_cast<double>(c.hidden_size / c.num_attention_heads);
  return mul(s, linear(s["query"], x, c.hidden_size), 1 / std::sqrt(size));
}

Value own_attention(const Scope& s, const BertConfig& c, std::int64_t layer, Value x, StepCache& cache) {
  const Scope self = s("self", c.name("SelfAttention"));
  const Value key = linear(self["key"], x, c.hidden_size), value = linear(self["value"], x, c.hidden_size);
  const Value y = attend_step(self, cache, static_cast<std::size_t>(layer), c.num_attention_heads, query_of(self, c, x),
                              key, value);
  return projected(s, c, y, x);
}

Value cross_attention(const Scope& s, const BertConfig& c, Value x, Value states) {
  const std::int64_t heads = c.num_attention_heads;
  const Scope self = s("self", c.name("SelfAttention"));
  const Value key = split_keys(self, linear(self["key"], states, c.hidden_size), heads);
  const Value value = split_heads(self, linear(self["value"], states, c.hidden_size), heads);
  const Value scores = matmul(self, split_heads(self, query_of(self, c, x), heads), key);
  return projected(s, c, attend(self, scores, {}, value), x);
}

// The head of RoBERTa on its decoder.
Value roberta_logits(const Scope& causal, const BertConfig& c, Value x) {
  const Scope s = causal("lm_head", c.name("LMHead"));
  x = activate(s, "gelu", linear(s["dense"], x, c.hidden_size));
  return linear(s["decoder"], layer_norm(s["layer_norm"], x, c.layer_norm_eps), c.vocab_size);
}

void tie(const Scope& root, const BertConfig& c) {
  const std::string head = c.prefix == "bert" ? "decoder.cls.predictions" : "decoder.lm_head";
  if (c.tie_word_embeddings)
    root.tie(head + ".decoder.weight", fmt::format("decoder.{}.embeddings.word_embeddings.weight", c.prefix));
  root.tie(head + ".decoder.bias", head + ".bias");
}

template <const Family& family>
Outputs step(const Scope& root, ConfigReader& fields, const StepInputs& in, Value states) {
  const BertConfig c = read(family, fields);
  if (!fields.status()) root.builder().fail(fields.status().error());
  const bool is_bert = c.prefix == "bert";
  tie(root, c);
  const Scope causal = root("decoder", is_bert ? "BertLMHeadModel" : c.name("ForCausalLM"));
  const Scope base = bert_base(causal, c);
  StepCache cache = in.cache(base, c.num_hidden_layers, c.num_attention_heads, c.hidden_size / c.num_attention_heads);
  if (!in.needs_position(root)) return {};
  Value x = bert_embeddings(base, c, {in.input_ids, {}, {}, positions(base, c, in)});
  const Scope encoder = base("encoder", c.name("Encoder"));
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = encoder("layer", i, c.name("Layer"));
    x = own_attention(layer("attention", c.name("Attention")), c, i, x, cache);
    x = cross_attention(layer("crossattention", c.name("Attention")), c, x, states);
    x = bert_feed_forward(layer, c, x);
  }
  return step_outputs(is_bert ? bert_lm_head(causal, c, x).front() : roberta_logits(causal, c, x), cache);
}

template <const Family& family>
StepLimits limits(ConfigReader& fields) {
  const BertConfig c = read(family, fields);
  const std::int64_t unused = c.prefix == "bert" ? 0 : c.pad_token_id + 1;
  return {.vocabulary = c.vocab_size,
          .layers = c.num_hidden_layers,
          .heads = c.num_attention_heads,
          .size = c.hidden_size / c.num_attention_heads,
          .capacity = c.max_position_embeddings - unused};
}

template <const Family& family>
std::int64_t width(ConfigReader& fields) {
  return read(family, fields).hidden_size;
}

template <const Family& family>
constexpr CrossDecoder row(std::string_view model_type) {
  return {model_type, limits<family>, width<family>, step<family>};
}

}  // namespace

const CrossDecoder bert_decoder = row<bert>("bert");
const CrossDecoder roberta_decoder = row<roberta>("roberta");
const CrossDecoder xlm_roberta_decoder = row<xlm_roberta>("xlm-roberta");
const CrossDecoder camembert_decoder = row<camembert>("camembert");

}  // namespace mk::models
