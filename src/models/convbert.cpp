// ConvBERT (Jiang et al. 2020): half of the heads of BERT's attention are convolutions whose kernels each token makes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/bert.h"
#include "models/families.h"
#include "models/summary.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct ConvBertConfig : BertConfig {
  std::int64_t heads = 6;  // that are attention; as many are convolutions
  std::int64_t head_size = 0;
  std::int64_t conv_kernel_size = 9;
  std::int64_t num_groups = 1;  // of the feed-forward layers
  SummaryConfig summary;

  static ConvBertConfig read(const Family& family, ConfigReader& fields) {
    ConvBertConfig c{BertConfig::read(family, fields)};
    c.position_embedding_type = "absolute";  // there is no other
    c.embedding_size = fields.size("embedding_size", 768);
    c.heads = std::max<std::int64_t>(1, c.num_attention_heads / fields.size("head_ratio", 2));
    c.head_size = c.hidden_size / c.heads / 2;
    c.conv_kernel_size = fields.size("conv_kernel_size", c.conv_kernel_size);
    c.num_groups = fields.size("num_groups", c.num_groups);
    c.summary = read_summary(fields, {"last", "", false, 0}, c.num_labels, c.hidden_size);
    constexpr std::int64_t widest = 1023;
    if (c.conv_kernel_size % 2 == 0 || c.conv_kernel_size > widest)
      fields.fail(ErrorCode::malformed,
                  fmt::format("conv_kernel_size is {}, expected an odd number up to {}", c.conv_kernel_size, widest));
    if (2 * c.heads * c.head_size != c.hidden_size)
      fields.fail(ErrorCode::malformed,
                  fmt::format("hidden_size {} is not a multiple of twice {} heads", c.hidden_size, c.heads));
    if (c.hidden_size % c.num_groups != 0 || c.intermediate_size % c.num_groups != 0)
      fields.fail(ErrorCode::malformed,
                  fmt::format("hidden_size {} or intermediate_size {} is not a multiple of num_groups {}",
                              c.hidden_size, c.intermediate_size, c.num_groups));
    if (!c.pruned_heads.empty()) fields.fail(ErrorCode::unsupported, "pruned_heads is not supported by ConvBERT");
    return c;
  }
};

// A depthwise and a pointwise convolution over [batch, length, width].
Value separable_convolution(const Scope& s, const ConvBertConfig& c, Value x, std::int64_t width) {
  const std::int64_t side = c.conv_kernel_size / 2;
  Value y = conv1d(s["depthwise"], transpose(s, x, {0, 2, 1}),
                   {.channels = c.hidden_size,
                    .kernel = c.conv_kernel_size,
                    .groups = c.hidden_size,
                    .padding = {side, side},
                    .bias = false});
  y = conv1d(s["pointwise"], y, {.channels = width, .bias = false});
  return transpose(s, add(s, y, s.weight("bias", {width, 1})), {0, 2, 1});
}

// [batch, length, heads, head_size] from values of that shape and kernels [batch, length, heads, conv_kernel_size]: the
// sum of what is around each token, weighed by its kernels.
Value convolved(const Scope& s, const ConvBertConfig& c, Value values, Value kernels) {
  if (!values || !kernels) return {};
  Builder& b = s.builder();
  const std::int64_t side = c.conv_kernel_size / 2;
  Shape padded = values.shape();
  padded[1] = padded[1].is_known() ? Dim::known(padded[1].value + 2 * side) : Dim{};
  const Value around = Op(s, "Pad", {values, b.integers({0, side, 0, 0, 0, side, 0, 0})}).out(values.type(), padded);
  Value sum;
  for (std::int64_t i = 0; i < c.conv_kernel_size; ++i) {
    const std::int64_t behind = i + 1 - c.conv_kernel_size;  // what is left out at the end
    const Value shifted =
        Op(s, "Slice", {around, b.integers({i}), b.integers({behind == 0 ? to_the_end : behind}), b.integers({1})})
            .out(values.type(), values.shape());
    const Value part = mul(s, shifted, slice(s, kernels, 3, i, i + 1));
    sum = sum ? add(s, sum, part) : part;
  }
  return sum;
}

Value self_attention(const Scope& s, const ConvBertConfig& c, Value x, Value mask) {
  const std::int64_t heads = c.heads, width = heads * c.head_size;
  const Value queries = linear(s["query"], x, width);
  const Value key = split_keys(s, linear(s["key"], x, width), heads);
  const Value value = split_heads(s, linear(s["value"], x, width), heads);
  const Value around = separable_convolution(s("key_conv_attn_layer", "SeparableConv1D"), c, x, width);
  Value kernels = linear(s["conv_kernel_layer"], mul(s, around, queries), heads * c.conv_kernel_size);
  kernels = softmax(s, reshape(s, kernels, {keep, keep, heads, c.conv_kernel_size}));
  const Value values = reshape(s, linear(s["conv_out_layer"], x, width), {keep, keep, heads, c.head_size});

  const Value scores =
      div(s, matmul(s, split_heads(s, queries, heads), key), std::sqrt(static_cast<double>(c.head_size)));
  const Value weights = softmax(s, mask ? add(s, scores, mask) : scores);
  const Value attended = transpose(s, matmul(s, weights, value), {0, 2, 1, 3});
  return reshape(s, concat(s, {attended, convolved(s, c, values, kernels)}, 2), {keep, keep, 2 * width});
}

// `dense`, which may be a layer per group of the features.
Value dense(const Scope& s, const ConvBertConfig& c, Value x, std::int64_t width) {
  if (c.num_groups == 1 || !x) return linear(s["dense"], x, width);
  const Scope g = s("dense", "GroupedLinearLayer");
  const std::int64_t in = x.dim(-1).value / c.num_groups, out = width / c.num_groups;
  const Value groups = transpose(g, reshape(g, x, {keep, keep, c.num_groups, in}), {0, 2, 1, 3});
  const Value y = matmul(g, groups, g.weight("weight", {c.num_groups, in, out}));
  return add(g, reshape(g, transpose(g, y, {0, 2, 1, 3}), {keep, keep, width}), g.weight("bias", {width}));
}

Value convbert_model(const Scope& s, const ConvBertConfig& c, const TextInputs& in) {
  Value x = bert_embeddings(s, c, in);
  if (c.embedding_size != c.hidden_size) x = linear(s["embeddings_project"], x, c.hidden_size);
  const Value mask = additive_mask(s, in.attention_mask);
  const Scope encoder = s("encoder", "ConvBertEncoder");
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = encoder("layer", i, "ConvBertLayer"), attention = layer("attention", "ConvBertAttention");
    const Value y = self_attention(attention("self", "ConvBertSelfAttention"), c, x, mask);
    const Scope mixed = attention("output", "ConvBertSelfOutput");
    x = bert_norm(mixed, c, add(mixed, linear(mixed["dense"], y, c.hidden_size), x));
    const Scope up = layer("intermediate", "ConvBertIntermediate"), down = layer("output", "ConvBertOutput");
    const Value wide = activation(up, "intermediate_act_fn", c.hidden_act, dense(up, c, x, c.intermediate_size));
    x = bert_norm(down, c, add(down, dense(down, c, wide, c.hidden_size), x));
  }
  return x;
}

Value base(const Scope& root, const ConvBertConfig& c, const TextInputs& in) {
  return convbert_model(bert_base(root, c), c, in);
}

Outputs hidden_states(const Scope& root, const ConvBertConfig& c, const TextInputs& in) {
  return {convbert_model(root, c, in)};
}

Outputs masked_lm(const Scope& root, const ConvBertConfig& c, const TextInputs& in) {
  if (c.tie_word_embeddings) root.tie("generator_lm_head.weight", "convbert.embeddings.word_embeddings.weight");
  const Value hidden = base(root, c, in);
  const Scope s = root("generator_predictions", "ConvBertGeneratorPredictions");
  Value x = activation(s, "activation", "gelu", linear(s["dense"], hidden, c.embedding_size));
  x = layer_norm(s["LayerNorm"], x, c.layer_norm_eps);
  return {linear(root["generator_lm_head"], x, c.vocab_size)};
}

Outputs sequence_classifier(const Scope& root, const ConvBertConfig& c, const TextInputs& in) {
  const Value hidden = base(root, c, in);
  const Scope s = root("classifier", "ConvBertClassificationHead");
  const Value x = activate(s, c.hidden_act, linear(s["dense"], take(s, hidden, 1, 0), c.hidden_size));
  return {linear(s["out_proj"], x, c.num_labels)};
}

Outputs token_classifier(const Scope& root, const ConvBertConfig& c, const TextInputs& in) {
  return token_logits(root, base(root, c, in), c.num_labels);
}

Outputs question_answering(const Scope& root, const ConvBertConfig& c, const TextInputs& in) {
  return span_logits(root, base(root, c, in), c.num_labels);
}

Outputs multiple_choice(const Scope& root, const ConvBertConfig& c, const TextInputs& in) {
  const Value hidden = base(root, c, in.flattened(root));
  const Value x = summary(root("sequence_summary", "ConvBertSequenceSummary"), c.summary, hidden);
  return choice_logits(root, linear(root["classifier"], x, 1), in.input_ids);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const ConvBertConfig c = ConvBertConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings, c.type_vocab_size});
}

}  // namespace

const Family convbert{
    .model_type = "convbert",
    .stem = "ConvBert",
    .prefix = "convbert",
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
