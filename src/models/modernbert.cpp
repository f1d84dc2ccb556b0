// ModernBERT (Warner et al. 2024): rotary positions, gated layers, and a window of attention in all but every n-th
// layer.

#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "models/rope_config.h"
#include "models/text.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/distances.h"
#include "nn/layers.h"
#include "nn/ops.h"
#include "nn/rope.h"

namespace mk::models {

using namespace nn;

namespace {

struct ModernBertConfig {
  std::int64_t vocab_size = 50368, hidden_size = 768, intermediate_size = 1152, num_hidden_layers = 22;
  std::int64_t num_attention_heads = 12, max_position_embeddings = 8192;
  std::int64_t global_attn_every_n_layers = 3, local_attention = 128;
  std::int64_t num_labels = 2;
  std::string hidden_activation = "gelu", classifier_activation = "gelu", classifier_pooling = "cls";
  double norm_eps = 1e-5;
  bool norm_bias = false, attention_bias = false, mlp_bias = false;
  bool decoder_bias = true, classifier_bias = false, tie_word_embeddings = true;
  Rope global, local;

  static ModernBertConfig read(const Family& family, ConfigReader& fields);
  bool is_local(std::int64_t layer) const { return layer % global_attn_every_n_layers != 0; }
};

ModernBertConfig ModernBertConfig::read(const Family&, ConfigReader& fields) {
  ModernBertConfig c;
  const auto size = [&](const char* key, std::int64_t& field) { field = fields.size(key, field); };
  const auto flag = [&](const char* key, bool& field) { field = fields.boolean(key, field); };
  size("vocab_size", c.vocab_size);
  size("hidden_size", c.hidden_size);
  size("intermediate_size", c.intermediate_size);
  c.num_hidden_layers = fields.count("num_hidden_layers", c.num_hidden_layers);
  size("num_attention_heads", c.num_attention_heads);
  size("max_position_embeddings", c.max_position_embeddings);
  size("global_attn_every_n_layers", c.global_attn_every_n_layers);
  c.local_attention = fields.id("local_attention", c.local_attention);
  c.num_labels = fields.num_labels();
  c.hidden_activation = fields.string("hidden_activation", c.hidden_activation);
  c.classifier_activation = fields.string("classifier_activation", c.classifier_activation);
  c.classifier_pooling = fields.string("classifier_pooling", c.classifier_pooling);
  c.norm_eps = fields.number("norm_eps", c.norm_eps);
  flag("norm_bias", c.norm_bias);
  flag("attention_bias", c.attention_bias);
  flag("mlp_bias", c.mlp_bias);
  flag("decoder_bias", c.decoder_bias);
  flag("classifier_bias", c.classifier_bias);
  flag("tie_word_embeddings", c.tie_word_embeddings);
  if (c.classifier_pooling != "cls" && c.classifier_pooling != "mean")
    fields.fail(ErrorCode::malformed,
                fmt::format("classifier_pooling is \"{}\", expected cls or mean", c.classifier_pooling));
  if (c.hidden_size % c.num_attention_heads != 0) {
    fields.fail(ErrorCode::malformed, fmt::format("hidden_size {} is not a multiple of num_attention_heads {}",
                                                  c.hidden_size, c.num_attention_heads));
    return c;
  }
  RopeBase base{fields.number("global_rope_theta", 160000), c.hidden_size / c.num_attention_heads,
                c.max_position_embeddings};
  c.global = read_rope(fields, base);
  const bool as_global = fields.mentions("local_rope_theta") && !fields.has("local_rope_theta");
  if (!as_global) base.theta = fields.number("local_rope_theta", 10000);
  c.local = read_rope(fields, base);
  return c;
}

Value norm(const Scope& s, const ModernBertConfig& c, Value x) {
  if (c.norm_bias) return layer_norm(s, x, c.norm_eps);
  if (!x) return {};
  s.is_a("LayerNorm");
  const Value scale = s.weight("weight", {x.dim(-1).value});
  if (s.builder().opset() >= 17)
    return Op(s, "LayerNormalization", {x, scale})
        .with("axis", -1)
        .with("epsilon", static_cast<float>(c.norm_eps))
        .like(x);
  const Value centered = sub(s, x, reduce_mean(s, x, {-1}, true));
  const Value variance = reduce_mean(s, pow(s, centered, 2), {-1}, true);
  return mul(s, div(s, centered, unary(s, "Sqrt", add(s, variance, c.norm_eps))), scale);
}

// [1, 1, length, length]: 0 up to half a window away. Empty where all are.
Value window(const Scope& s, const ModernBertConfig& c, Value input_ids) {
  if (!input_ids) return {};
  const std::int64_t reach = c.local_attention / 2;
  const Dim length = input_ids.dim(1);
  if (length.is_known() && length.value - 1 <= reach) return {};
  const Value positions = ramp(s, input_ids);
  const Value apart = unary(s, "Abs", sub(s, unsqueeze(s, positions, 0), unsqueeze(s, positions, 1)));
  const Value beyond = greater(s, apart, s.builder().scalar(DataType::int64, static_cast<double>(reach)));
  const Value mask = mul(s, cast(s, beyond, s.builder().float_type()), s.builder().mask_value());
  return unsqueeze(s, unsqueeze(s, mask, 0), 0);
}

Value attention(const Scope& s, const ModernBertConfig& c, Value x, Value mask, const Angles& by) {
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const Value all = linear(s["Wqkv"], x, 3 * width, c.attention_bias);
  const auto part = [&](std::int64_t index) {
    return split_heads(s, slice(s, all, 2, index * width, (index + 1) * width), heads);
  };
  const Value query = rotate(s, part(0), by), key = rotate(s, part(1), by), value = part(2);
  const Value scores =
      mul(s, matmul(s, query, transpose(s, key, {0, 1, 3, 2})), 1 / std::sqrt(static_cast<double>(width / heads)));
  return linear(s["Wo"], attend(s, scores, mask, value), width, c.attention_bias);
}

Value gated(const Scope& s, const ModernBertConfig& c, Value x) {
  const Value both = linear(s["Wi"], x, 2 * c.intermediate_size, c.mlp_bias);
  const Value input = slice(s, both, 2, 0, c.intermediate_size),
              gate = slice(s, both, 2, c.intermediate_size, to_the_end);
  return linear(s["Wo"], mul(s, activation(s, "act", c.hidden_activation, input), gate), c.hidden_size, c.mlp_bias);
}

Value modernbert_model(const Scope& s, const ModernBertConfig& c, const TextInputs& in) {
  const Scope embeddings = s("embeddings", "ModernBertEmbeddings");
  Value x = embedding(embeddings["tok_embeddings"], in.input_ids, c.vocab_size, c.hidden_size);
  x = norm(embeddings["norm"], c, x);

  const Value seen = additive_mask(s, in.attention_mask), near = window(s, c, in.input_ids);
  // The lesser of the two: their sum is beyond the type where both are its minimum.
  const Value seen_near = seen && near ? minimum(s, seen, near) : seen ? seen : near;
  const Value positions = in.position_ids ? in.position_ids : unsqueeze(s, ramp(s, in.input_ids), 0);
  const Dim length = in.input_ids.dim(1);
  const std::int64_t longest = in.position_ids || !length.is_known() ? 0 : length.value;
  Angles angles_of[2];
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = s("layers", i, "ModernBertEncoderLayer"), attn = layer("attn", "ModernBertAttention");
    const bool local = c.is_local(i);
    Angles& by = angles_of[local ? 1 : 0];
    if (!by.cos)
      by = angles(attn("rotary_emb", "ModernBertRotaryEmbedding"), local ? c.local : c.global, positions, longest);
    const Value normal = i == 0 ? x : norm(layer["attn_norm"], c, x);
    x = add(layer, x, attention(attn, c, normal, local ? seen_near : seen, by));
    x = add(layer, x, gated(layer("mlp", "ModernBertMLP"), c, norm(layer["mlp_norm"], c, x)));
  }
  return norm(s["final_norm"], c, x);
}

Value base(const Scope& root, const ModernBertConfig& c, const TextInputs& in) {
  return modernbert_model(root("model", "ModernBertModel"), c, in);
}

Value predicted(const Scope& root, const ModernBertConfig& c, Value x) {
  const Scope s = root("head", "ModernBertPredictionHead");
  x = activation(s, "act", c.classifier_activation, linear(s["dense"], x, c.hidden_size, c.classifier_bias));
  return norm(s["norm"], c, x);
}

// The mean of the tokens that are seen.
Value mean(const Scope& s, Value x, Value attention_mask) {
  if (!attention_mask) return reduce_mean(s, x, {1}, false);
  const Value ones = unsqueeze(s, cast(s, attention_mask, x.type()), 2);
  return div(s, reduce(s, "ReduceSum", mul(s, x, ones), {1}, false), reduce(s, "ReduceSum", ones, {1}, false));
}

Outputs hidden_states(const Scope& root, const ModernBertConfig& c, const TextInputs& in) {
  return {modernbert_model(root, c, in)};
}

Outputs masked_lm(const Scope& root, const ModernBertConfig& c, const TextInputs& in) {
  if (c.tie_word_embeddings) root.tie("decoder.weight", "model.embeddings.tok_embeddings.weight");
  return {linear(root["decoder"], predicted(root, c, base(root, c, in)), c.vocab_size, c.decoder_bias)};
}

Outputs sequence_classifier(const Scope& root, const ModernBertConfig& c, const TextInputs& in) {
  const Value x = base(root, c, in);
  const Value pooled = c.classifier_pooling == "cls" ? take(root, x, 1, 0) : mean(root, x, in.attention_mask);
  return {linear(root["classifier"], predicted(root, c, pooled), c.num_labels)};
}

Outputs token_classifier(const Scope& root, const ModernBertConfig& c, const TextInputs& in) {
  return token_logits(root, predicted(root, c, base(root, c, in)), c.num_labels);
}

Outputs question_answering(const Scope& root, const ModernBertConfig& c, const TextInputs& in) {
  if (c.num_labels != 2)
    root.builder().fail(
        {ErrorCode::malformed,
         fmt::format("question answering has a start and an end, and the configuration {} labels", c.num_labels),
         "config.json", "Set num_labels to 2"});
  const Value x = linear(root["classifier"], predicted(root, c, base(root, c, in)), c.num_labels);
  return {take(root, x, -1, 0), take(root, x, -1, 1)};
}

Outputs multiple_choice(const Scope& root, const ModernBertConfig& c, const TextInputs& in) {
  const TextInputs rows = in.flattened(root);
  Value x = base(root, c, rows);
  if (c.classifier_pooling == "mean")
    x = mean(root, x, rows.attention_mask);
  else if (rows.attention_mask)
    x = pick(root, x, first_largest(root, rows.attention_mask, 1, true));  // padding may come first
  else
    x = take(root, x, 1, 0);
  return choice_logits(root, linear(root["classifier"], predicted(root, c, x), 1), in.input_ids);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const ModernBertConfig c = ModernBertConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings, 0});
}

}  // namespace

const Family modernbert{
    .model_type = "modernbert",
    .stem = "ModernBert",
    .prefix = "model",
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
    .optional = {"position_ids"},
};

}  // namespace mk::models
