// GPT-2 (Radford et al. 2019) as a decoder that also looks at an encoder.

#include <fmt/format.h>

#include <cmath>

#include "models/cross_decoder.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct Config {
  std::int64_t vocabulary = 50257, positions = 1024, width = 768, layers = 12, heads = 12, inner = 3072;
  double epsilon = 1e-5;
  std::string activation = "gelu_new";
  bool scaled = true, scaled_by_layer = false, tied = true;

  static Config read(ConfigReader& fields);
  double scale(std::int64_t layer) const {
    const double by_size = scaled ? 1 / std::sqrt(static_cast<double>(width / heads)) : 1;
    return scaled_by_layer ? by_size / static_cast<double>(layer + 1) : by_size;
  }
};

Config Config::read(ConfigReader& fields) {
  Config c;
  // Some fields have a second name.
  const auto named = [&](const char* other, const char* own) { return fields.has(other) ? other : own; };
  c.vocabulary = fields.size("vocab_size", c.vocabulary);
  c.positions = fields.size(named("max_position_embeddings", "n_positions"), c.positions);
  c.width = fields.size(named("hidden_size", "n_embd"), c.width);
  c.layers = fields.count(named("num_hidden_layers", "n_layer"), c.layers);
  c.heads = fields.size(named("num_attention_heads", "n_head"), c.heads);
  c.inner = fields.size("n_inner", 4 * c.width);
  c.epsilon = fields.number("layer_norm_epsilon", c.epsilon);
  c.activation = fields.string("activation_function", c.activation);
  c.scaled = fields.boolean("scale_attn_weights", c.scaled);
  c.scaled_by_layer = fields.boolean("scale_attn_by_inverse_layer_idx", c.scaled_by_layer);
  c.tied = fields.boolean("tie_word_embeddings", c.tied);
  if (c.width % c.heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("n_embd {} is not a multiple of n_head {}", c.width, c.heads));
  if (!fields.pruned_heads(c.heads).empty())
    fields.fail(ErrorCode::unsupported, "pruned_heads is not supported for a gpt2 behind an encoder");
  return c;
}

// transformers' Conv1D: a linear layer whose weight is [in, out].
Value conv1d(const Scope& s, Value x, std::int64_t features) {
  if (!x) return {};
  return add(s, matmul(s, x, s.weight("weight", {x.dim(-1).value, features})), s.weight("bias", {features}));
}

Value own_attention(const Scope& s, const Config& c, std::int64_t layer, Value x, StepCache& cache) {
  const Value all = conv1d(s("c_attn", "Conv1D"), x, 3 * c.width);
  const auto part = [&](std::int64_t i) { return slice(s, all, -1, i * c.width, (i + 1) * c.width); };
  const Value query = mul(s, part(0), c.scale(layer));
  const Value y = attend_step(s, cache, static_cast<std::size_t>(layer), c.heads, query, part(1), part(2));
  return conv1d(s("c_proj", "Conv1D"), y, c.width);
}

Value cross_attention(const Scope& s, const Config& c, std::int64_t layer, Value x, Value states) {
  const Value query = mul(s, conv1d(s("q_attn", "Conv1D"), x, c.width), c.scale(layer));
  const Value all = conv1d(s("c_attn", "Conv1D"), states, 2 * c.width);
  const Value key = split_keys(s, slice(s, all, -1, 0, c.width), c.heads);
  const Value value = split_heads(s, slice(s, all, -1, c.width, 2 * c.width), c.heads);
  const Value y = attend(s, matmul(s, split_heads(s, query, c.heads), key), {}, value);
  return conv1d(s("c_proj", "Conv1D"), y, c.width);
}

Outputs step(const Scope& root, ConfigReader& fields, const StepInputs& in, Value states) {
  const Config c = Config::read(fields);
  const Scope causal = root("decoder", "GPT2LMHeadModel"), s = causal("transformer", "GPT2Model");
  if (c.tied) causal.tie("lm_head.weight", "transformer.wte.weight");
  StepCache cache = in.cache(s, c.layers, c.heads, c.width / c.heads);
  if (!fields.status()) root.builder().fail(fields.status().error());
  if (!in.needs_position(root)) return {};
  Value x = add(s, embedding(s["wte"], in.input_ids, c.vocabulary, c.width),
                embedding(s["wpe"], in.position, c.positions, c.width));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope block = s("h", i, "GPT2Block");
    Value y = layer_norm(block["ln_1"], x, c.epsilon);
    x = add(block, own_attention(block("attn", "GPT2Attention"), c, i, y, cache), x);
    y = layer_norm(block["ln_cross_attn"], x, c.epsilon);
    x = add(block, x, cross_attention(block("crossattention", "GPT2Attention"), c, i, y, states));
    const Scope mlp = block("mlp", "GPT2MLP");
    y = conv1d(mlp("c_fc", "Conv1D"), layer_norm(block["ln_2"], x, c.epsilon), c.inner);
    x = add(block, x, conv1d(mlp("c_proj", "Conv1D"), activation(mlp, "act", c.activation, y), c.width));
  }
  x = layer_norm(s["ln_f"], x, c.epsilon);
  return step_outputs(linear(causal["lm_head"], x, c.vocabulary, false), cache);
}

}  // namespace

const CrossDecoder gpt2_decoder{"gpt2",
                                [](ConfigReader& fields) {
                                  const Config c = Config::read(fields);
                                  return StepLimits{.vocabulary = c.vocabulary,
                                                    .layers = c.layers,
                                                    .heads = c.heads,
                                                    .size = c.width / c.heads,
                                                    .capacity = c.positions};
                                },
                                [](ConfigReader& fields) { return Config::read(fields).width; }, step};

}  // namespace mk::models
