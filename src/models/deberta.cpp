#include "models/deberta.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/json.h"
#include "models/families.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

// What stands between the bars of "p2c | c2p".
std::vector<std::string> names_of(std::string text) {
  std::vector<std::string> names(1);
  for (const char c : text) {
    if (c == '|')
      names.emplace_back();
    else if (std::isspace(static_cast<unsigned char>(c)) == 0)
      names.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return names;
}

// pos_att_type: a list, or a text with bars.
void read_kinds(DebertaConfig& c, ConfigReader& fields) {
  const auto& json = fields.config().json();
  const auto found = json.find("pos_att_type");
  if (found == json.end() || found->is_null()) return;
  std::vector<std::string> kinds;
  if (found->is_string()) kinds = names_of(found->get<std::string>());
  const bool list =
      found->is_array() && std::all_of(found->begin(), found->end(), [](const auto& kind) { return kind.is_string(); });
  if (list)
    for (const auto& kind : *found) kinds.push_back(kind.get<std::string>());
  if (!list && !found->is_string()) fields.fail(ErrorCode::malformed, "pos_att_type is not a list of names");
  const auto has = [&](const char* kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  c.position_kinds = static_cast<std::int64_t>(kinds.size());
  c.c2p = has("c2p");
  c.p2c = has("p2c");
}

}  // namespace

DebertaConfig DebertaConfig::read(const Family& family, ConfigReader& fields) {
  const bool second = family.stem == "DebertaV2";
  BertConfig defaults;
  defaults.type_vocab_size = 0, defaults.layer_norm_eps = 1e-7;
  defaults.vocab_size = 50265;
  if (second) {
    defaults.vocab_size = 128100, defaults.hidden_size = 1536, defaults.num_hidden_layers = 24;
    defaults.num_attention_heads = 24, defaults.intermediate_size = 6144;
  }
  DebertaConfig c{BertConfig::read(family, fields, defaults)};
  c.second = second;
  if (!second) c.norm_class = "DebertaLayerNorm";
  c.embedding_size = fields.size("embedding_size", c.hidden_size);
  c.relative_attention = fields.boolean("relative_attention", false);
  c.position_biased_input = fields.boolean("position_biased_input", true);
  c.max_relative_positions = fields.integer("max_relative_positions", -1);
  if (c.max_relative_positions < 1) c.max_relative_positions = c.max_position_embeddings;
  c.pooler_hidden_size = fields.size("pooler_hidden_size", c.hidden_size);
  c.pooler_hidden_act = fields.string("pooler_hidden_act", c.pooler_hidden_act);
  c.legacy = fields.boolean("legacy", true);
  read_kinds(c, fields);
  if (second) {
    c.position_buckets = fields.integer("position_buckets", -1);
    c.share_att_key = fields.boolean("share_att_key", false);
    const std::vector<std::string> norms = names_of(fields.string("norm_rel_ebd", "none"));
    c.norm_rel_ebd = std::find(norms.begin(), norms.end(), "layer_norm") != norms.end();
    c.conv_kernel_size = fields.id("conv_kernel_size", 0);
    c.conv_groups = fields.size("conv_groups", 1);
    c.conv_act = fields.string("conv_act", c.conv_act);
  } else {
    c.talking_head = fields.boolean("talking_head", false);
  }
  constexpr std::int64_t most_distances = 1 << 20;
  if (c.max_relative_positions > most_distances || c.position_buckets > most_distances)
    fields.fail(ErrorCode::malformed, fmt::format("max_relative_positions {} or position_buckets {} is beyond {}",
                                                  c.max_relative_positions, c.position_buckets, most_distances));
  if (const std::int64_t size = fields.integer("attention_head_size", 0);
      second && size != 0 && size != c.hidden_size / c.num_attention_heads)
    fields.fail(ErrorCode::malformed, fmt::format("attention_head_size {} is not hidden_size {} over {} heads", size,
                                                  c.hidden_size, c.num_attention_heads));
  if (c.conv_kernel_size > 0 && c.conv_kernel_size % 2 == 0)
    fields.fail(ErrorCode::malformed,
                fmt::format("conv_kernel_size is {}, expected an odd number", c.conv_kernel_size));
  if (!c.pruned_heads.empty()) fields.fail(ErrorCode::unsupported, "pruned_heads is not supported by DeBERTa");
  return c;
}

namespace {

// [batch, sequence] as a factor of [batch, sequence, width].
Value factor(const Scope& s, Value attention_mask) {
  return attention_mask ? unsqueeze(s, cast(s, attention_mask, s.builder().float_type()), 2) : Value();
}

// bool [batch, 1, sequence, sequence]: padding neither sees nor is seen.
Value pair_mask(const Scope& s, Value attention_mask) {
  if (!attention_mask) return {};
  const Value ones = cast(s, attention_mask, s.builder().float_type());
  const Value pairs = mul(s, unsqueeze(s, unsqueeze(s, ones, 1), 2), unsqueeze(s, unsqueeze(s, ones, 1), 3));
  return cast(s, pairs, DataType::boolean);
}

Value embeddings(const Scope& s, const DebertaConfig& c, const TextInputs& in) {
  const std::int64_t width = c.embedding_size;
  Value x = embedding(s["word_embeddings"], in.input_ids, c.vocab_size, width);
  if (c.position_biased_input) {
    const Scope positions = s["position_embeddings"];
    x = add(s, x,
            in.position_ids ? embedding(positions, in.position_ids, c.max_position_embeddings, width)
                            : first_rows(positions, in.input_ids, c.max_position_embeddings, width));
  }
  if (c.type_vocab_size > 0) {
    const Scope types = s["token_type_embeddings"];
    x = add(s, x,
            in.token_type_ids ? embedding(types, in.token_type_ids, c.type_vocab_size, width)
                              : s.builder().rows(types.parameter("weight", {c.type_vocab_size, width}), 0, 1));
  }
  if (width != c.hidden_size) x = linear(s["embed_proj"], x, c.hidden_size, false);
  x = bert_norm(s, c, x);
  return in.attention_mask ? mul(s, x, factor(s, in.attention_mask)) : x;
}

// What the first layer's result gets from the embeddings around each token.
Value convolution(const Scope& s, const DebertaConfig& c, Value embedded, Value x, Value attention_mask) {
  const std::int64_t side = (c.conv_kernel_size - 1) / 2;
  Value y = conv1d(
      s["conv"], transpose(s, embedded, {0, 2, 1}),
      {.channels = c.hidden_size, .kernel = c.conv_kernel_size, .groups = c.conv_groups, .padding = {side, side}});
  y = activate(s, c.conv_act, transpose(s, y, {0, 2, 1}));
  x = layer_norm(s["LayerNorm"], add(s, x, y), c.layer_norm_eps);
  return attention_mask ? mul(s, x, factor(s, attention_mask)) : x;
}

Value deberta_model(const Scope& s, const DebertaConfig& c, const TextInputs& in) {
  const Value embedded = embeddings(s("embeddings", c.name("Embeddings")), c, in);
  const Scope encoder = s("encoder", c.name("Encoder"));
  const Value mask = pair_mask(encoder, in.attention_mask);
  Value distances;
  if (c.relative_attention) {
    const Scope table = encoder["rel_embeddings"];
    table.is_a("Embedding");
    distances = table.weight("weight", {2 * c.span(), c.hidden_size});
    if (c.norm_rel_ebd) distances = layer_norm(encoder["LayerNorm"], distances, c.layer_norm_eps);
  }
  Value x = embedded;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = encoder("layer", i, c.name("Layer")), attention = layer("attention", c.name("Attention"));
    const Value y = deberta_attention(attention("self", "DisentangledSelfAttention"), c, x, mask, distances);
    const Scope mixed = attention("output", c.name("SelfOutput"));
    x = bert_norm(mixed, c, add(mixed, linear(mixed["dense"], y, c.hidden_size), x));
    x = bert_feed_forward(layer, c, x);
    if (i == 0 && c.conv_kernel_size > 0)
      x = convolution(encoder("conv", "ConvLayer"), c, embedded, x, in.attention_mask);
  }
  return x;
}

Value base(const Scope& root, const DebertaConfig& c, const TextInputs& in) {
  return deberta_model(bert_base(root, c), c, in);
}

Value pooled(const Scope& root, const DebertaConfig& c, Value hidden) {
  const Scope s = root("pooler", "ContextPooler");
  return activate(s, c.pooler_hidden_act, linear(s["dense"], take(s, hidden, 1, 0), c.pooler_hidden_size));
}

Outputs hidden_states(const Scope& root, const DebertaConfig& c, const TextInputs& in) {
  return {deberta_model(root, c, in)};
}

// `dense`, `transform_act_fn` and `LayerNorm`.
Value transformed(const Scope& s, const DebertaConfig& c, Value x, std::int64_t width) {
  x = activation(s, "transform_act_fn", c.hidden_act, linear(s["dense"], x, width));
  return layer_norm(s["LayerNorm"], x, c.layer_norm_eps);
}

Outputs masked_lm(const Scope& root, const DebertaConfig& c, const TextInputs& in) {
  if (c.legacy) {
    bert_lm_ties(root, c);
    const Value hidden = base(root, c, in);
    const auto name = [&](const char* suffix) { return "Legacy" + c.name(suffix); };
    const Scope s = root("cls", name("OnlyMLMHead"))("predictions", name("LMPredictionHead"));
    const Value x = transformed(s("transform", name("PredictionHeadTransform")), c, hidden, c.embedding_size);
    return {linear(s["decoder"], x, c.vocab_size)};
  }
  const Value hidden = base(root, c, in);
  const Scope s = root("lm_predictions", c.name("OnlyMLMHead"))("lm_head", c.name("LMPredictionHead"));
  const Value x = transformed(s, c, hidden, c.hidden_size);
  const Scope words = bert_base(root, c)("embeddings", c.name("Embeddings"))["word_embeddings"];
  const Value table = words.weight("weight", {c.vocab_size, c.embedding_size});
  return {add(s, matmul(s, x, transpose(s, table, {1, 0})), s.weight("bias", {c.vocab_size}))};
}

Outputs sequence_classifier(const Scope& root, const DebertaConfig& c, const TextInputs& in) {
  return {linear(root["classifier"], pooled(root, c, base(root, c, in)), c.num_labels)};
}

Outputs token_classifier(const Scope& root, const DebertaConfig& c, const TextInputs& in) {
  return token_logits(root, base(root, c, in), c.num_labels);
}

Outputs question_answering(const Scope& root, const DebertaConfig& c, const TextInputs& in) {
  return span_logits(root, base(root, c, in), c.num_labels);
}

Outputs multiple_choice(const Scope& root, const DebertaConfig& c, const TextInputs& in) {
  const Value x = pooled(root, c, base(root, c, in.flattened(root)));
  return choice_logits(root, linear(root["classifier"], x, 1), in.input_ids);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const DebertaConfig c = DebertaConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings, c.type_vocab_size});
}

Family family(std::string_view model_type, std::string_view stem) {
  Family made{
      .model_type = model_type,
      .stem = stem,
      .prefix = "deberta",
      .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids"},
      .default_inputs = default_inputs,
      .heads =
          {
              {"feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
              {"fill-mask", "ForMaskedLM", {"logits"}, head<masked_lm>},
              {"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>},
              {"token-classification", "ForTokenClassification", {"logits"}, head<token_classifier>},
              {"question-answering", "ForQuestionAnswering", {"start_logits", "end_logits"}, head<question_answering>},
          },
      .optional = {"token_type_ids", "position_ids"},
  };
  if (stem == "DebertaV2")
    made.heads.push_back({"multiple-choice", "ForMultipleChoice", {"logits"}, head<multiple_choice>});
  return made;
}

}  // namespace

const Family deberta = family("deberta", "Deberta");
const Family deberta_v2 = family("deberta-v2", "DebertaV2");

}  // namespace mk::models
