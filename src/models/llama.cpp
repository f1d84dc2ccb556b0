#include "models/llama.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/families.h"
#include "models/text.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

LlamaConfig read_llama(const Family& family, ConfigReader& fields, const LlamaDefaults& d) {
  LlamaConfig c;
  c.stem = family.stem;
  c.model_class = c.name("Model");
  c.vocab_size = fields.size("vocab_size", d.vocab_size);
  c.hidden_size = fields.size("hidden_size", d.hidden_size);
  c.intermediate_size = fields.size("intermediate_size", d.intermediate_size);
  c.num_hidden_layers = fields.count("num_hidden_layers", d.num_hidden_layers);
  c.num_attention_heads = fields.size("num_attention_heads", d.num_attention_heads);
  const bool own = fields.size_or_none("num_key_value_heads", d.num_key_value_heads) > 0;
  c.num_key_value_heads = own ? fields.size("num_key_value_heads", d.num_key_value_heads) : c.num_attention_heads;
  c.head_dim = fields.size(
      "head_dim", d.head_dim > 0 ? d.head_dim : std::max<std::int64_t>(1, c.hidden_size / c.num_attention_heads));
  c.max_position_embeddings = fields.size("max_position_embeddings", d.max_position_embeddings);
  c.rms_norm_eps = fields.number("rms_norm_eps", d.rms_norm_eps);
  c.hidden_act = fields.string(d.activation, d.hidden_act);
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", d.tie_word_embeddings);
  c.num_labels = fields.num_labels();
  c.pad_token_id = fields.has("pad_token_id") ? fields.integer("pad_token_id", -1) : -1;
  c.attention_scale = 1 / std::sqrt(static_cast<double>(c.head_dim));
  if (c.num_attention_heads % c.num_key_value_heads != 0)
    fields.fail(ErrorCode::malformed, fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                                                  c.num_attention_heads, c.num_key_value_heads));
  const RopeBase base{fields.number("rope_theta", d.rope_theta), c.head_dim, c.max_position_embeddings};
  c.ropes.emplace_back("rotary_emb", read_rope(fields, base));
  c.layers.assign(static_cast<std::size_t>(c.num_hidden_layers), {});
  return c;
}

void read_layer_types(LlamaConfig& c, ConfigReader& fields, std::int64_t window,
                      bool (*otherwise)(std::int64_t, std::int64_t), std::int64_t every) {
  const std::vector<std::string> types = fields.strings("layer_types");
  if (!types.empty() && types.size() != c.layers.size()) {
    fields.fail(ErrorCode::malformed,
                fmt::format("layer_types has {} layers, num_hidden_layers is {}", types.size(), c.layers.size()));
    return;
  }
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    const bool slides =
        types.empty() ? otherwise(static_cast<std::int64_t>(i), every) : types[i] == "sliding_attention";
    if (!slides && !types.empty() && types[i] != "full_attention")
      fields.fail(ErrorCode::unsupported, fmt::format("layer_types has \"{}\"", types[i]),
                  "Types that can be exported are full_attention and sliding_attention");
    if (slides && window == 0)
      fields.fail(ErrorCode::malformed, "layer_types has sliding_attention, and there is no sliding_window",
                  "Set sliding_window and, where the model has it, use_sliding_window");
    c.layers[i].window = slides ? window : 0;
  }
}

LlamaConfig LlamaConfig::read(const Family& family, ConfigReader& fields) {
  LlamaConfig c = read_llama(family, fields, {});
  c.qkv_bias = c.output_bias = fields.boolean("attention_bias", false);
  c.mlp_bias = fields.boolean("mlp_bias", false);
  return c;
}

namespace {

struct Shared {
  std::vector<Angles> angles;                         // by rope
  std::vector<std::pair<std::int64_t, Value>> masks;  // by window

  Value mask_of(std::int64_t window) const {
    for (const auto& [width, mask] : masks)
      if (width == window) return mask;
    return {};
  }
};

Value norm(const Scope& parent, const LlamaConfig& c, std::string_view name, Value x) {
  return rms_norm(parent(name, c.name("RMSNorm")), x, c.rms_norm_eps, c.norm_from_one);
}

Value attention(const Scope& s, const LlamaConfig& c, std::size_t index, Value x, const Shared& shared,
                DecoderInputs& in) {
  const std::int64_t width = c.num_attention_heads * c.head_dim, key_width = c.num_key_value_heads * c.head_dim;
  Value query, key, value;
  if (c.packed) {
    const Value all = linear(s["qkv_proj"], x, width + 2 * key_width, c.qkv_bias);
    query = slice(s, all, -1, 0, width);
    key = slice(s, all, -1, width, width + key_width);
    value = slice(s, all, -1, width + key_width, to_the_end);
  } else {
    query = linear(s["q_proj"], x, width, c.qkv_bias);
    key = linear(s["k_proj"], x, key_width, c.qkv_bias);
    value = linear(s["v_proj"], x, key_width, c.qkv_bias);
  }
  if (c.query_key_norm) {
    query = reshape(s, query, {keep, keep, c.num_attention_heads, c.head_dim});
    key = reshape(s, key, {keep, keep, c.num_key_value_heads, c.head_dim});
    query = transpose(s, norm(s, c, "q_norm", query), {0, 2, 1, 3});
    key = transpose(s, norm(s, c, "k_norm", key), {0, 2, 1, 3});
  } else {
    query = split_heads(s, query, c.num_attention_heads);
    key = split_heads(s, key, c.num_key_value_heads);
  }
  value = split_heads(s, value, c.num_key_value_heads);

  const LlamaConfig::Layer& layer = c.layers[index];
  if (layer.rope >= 0) {
    const Angles& by = shared.angles[static_cast<std::size_t>(layer.rope)];
    query = rotate(s, query, by);
    key = rotate(s, key, by);
  }
  const KeyValue all = with_past(s, in.cache, index, {key, value});
  const Value mixed =
      grouped_attention(s, mul(s, query, c.attention_scale), all, shared.mask_of(layer.window), c.attention_cap);
  return linear(s["o_proj"], mixed, c.hidden_size, c.output_bias);
}

Value feed_forward(const Scope& s, const LlamaConfig& c, Value x) {
  if (c.packed) {
    const Value both = linear(s["gate_up_proj"], x, 2 * c.intermediate_size, c.mlp_bias);
    const Value gate = slice(s, both, -1, 0, c.intermediate_size);
    const Value up = slice(s, both, -1, c.intermediate_size, to_the_end);
    const Value gated = mul(s, up, activation(s, "activation_fn", c.hidden_act, gate));
    return linear(s["down_proj"], gated, c.hidden_size, c.mlp_bias);
  }
  const Value gate = activation(s, "act_fn", c.hidden_act, linear(s["gate_proj"], x, c.intermediate_size, c.mlp_bias));
  const Value up = linear(s["up_proj"], x, c.intermediate_size, c.mlp_bias);
  return linear(s["down_proj"], mul(s, gate, up), c.hidden_size, c.mlp_bias);
}

Value layer(const Scope& s, const LlamaConfig& c, std::size_t index, Value x, const Shared& shared, DecoderInputs& in) {
  Value y = norm(s, c, "input_layernorm", x);
  y = attention(s("self_attn", c.name("Attention")), c, index, y, shared, in);
  if (c.norm_after_blocks) y = norm(s, c, "post_attention_layernorm", y);
  x = add(s, x, y);
  y = norm(s, c, c.norm_after_blocks ? "pre_feedforward_layernorm" : "post_attention_layernorm", x);
  y = feed_forward(s("mlp", c.name("MLP")), c, y);
  if (c.norm_after_blocks) y = norm(s, c, "post_feedforward_layernorm", y);
  return add(s, x, y);
}

Value token_embeddings(const Scope& s, const LlamaConfig& c, Value ids) {
  if (c.embedding_class.empty()) {
    const Value x = embedding(s["embed_tokens"], ids, c.vocab_size, c.hidden_size);
    return c.embedding_scale == 1 ? x : mul(s, x, c.embedding_scale);
  }
  const Scope own = s("embed_tokens", c.embedding_class);
  return mul(own, embedding(own, ids, c.vocab_size, c.hidden_size), c.embedding_scale);
}

Shared shared_by_layers(const Scope& s, const LlamaConfig& c, const DecoderInputs& in) {
  Shared shared;
  const Value positions = in.positions(s);
  for (std::size_t i = 0; i < c.ropes.size(); ++i) {
    const bool used = std::any_of(c.layers.begin(), c.layers.end(),
                                  [&](const auto& layer) { return layer.rope == static_cast<int>(i); });
    const auto& [name, rope] = c.ropes[i];
    shared.angles.push_back(used ? angles(s(name, c.name("RotaryEmbedding")), rope, positions, in.longest())
                                 : Angles());
  }
  for (const LlamaConfig::Layer& layer : c.layers) {
    const auto same = [&](const auto& known) { return known.first == layer.window; };
    if (std::none_of(shared.masks.begin(), shared.masks.end(), same))
      shared.masks.emplace_back(layer.window, reach_mask(s, in.input_ids, in.attention_mask, {c.causal, layer.window}));
  }
  return shared;
}

}  // namespace

Value llama_model(const Scope& s, const LlamaConfig& c, DecoderInputs& in) {
  if (!in.has_cache_for(s, c.num_hidden_layers, c.num_key_value_heads, c.head_dim)) return {};
  Value x = token_embeddings(s, c, in.input_ids);
  const Shared shared = shared_by_layers(s, c, in);
  for (std::size_t i = 0; i < c.layers.size(); ++i)
    x = layer(s("layers", static_cast<std::int64_t>(i), c.name("DecoderLayer")), c, i, x, shared, in);
  return norm(s, c, "norm", x);
}

namespace {

Scope base_scope(const Scope& root, const LlamaConfig& c, std::string_view attribute = "model") {
  if (c.wrapper_class.empty()) return root(attribute, c.model_class);
  return root(attribute, c.wrapper_class)("language_model", c.model_class);
}

Value base_of(const Scope& root, const LlamaConfig& c, DecoderInputs in, std::string_view attribute = "model") {
  return llama_model(base_scope(root, c, attribute), c, in);
}

}  // namespace

Outputs llama_hidden_states(const Scope& root, const LlamaConfig& c, const DecoderInputs& in) {
  DecoderInputs inputs = in;
  return {llama_model(root, c, inputs)};
}

Outputs llama_causal_lm(const Scope& root, const LlamaConfig& c, const DecoderInputs& in) {
  const Scope base = base_scope(root, c);
  if (c.tie_word_embeddings) root.tie("lm_head.weight", base.module().path + ".embed_tokens.weight");
  DecoderInputs inputs = in;
  const Value hidden = llama_model(base, c, inputs);
  Value logits = linear(root["lm_head"], hidden, c.vocab_size, false);
  if (c.logit_cap > 0) logits = mul(root, unary(root, "Tanh", div(root, logits, c.logit_cap)), c.logit_cap);
  return with_cache(logits, inputs.cache);
}

Outputs llama_sequence_classifier(const Scope& root, const LlamaConfig& c, const DecoderInputs& in) {
  const Value last = last_token(root, base_of(root, c, in), in.input_ids, c.pad_token_id);
  return {linear(root["score"], last, c.num_labels, false)};
}

Outputs llama_token_classifier(const Scope& root, const LlamaConfig& c, const DecoderInputs& in) {
  return {linear(root["score"], base_of(root, c, in), c.num_labels)};
}

// Its base model has the attribute "transformer" in transformers, and most checkpoints the name of the others.
Outputs llama_question_answering(const Scope& root, const LlamaConfig& c, const DecoderInputs& in) {
  const bool renamed = root.builder().weights().has("transformer.embed_tokens.weight");
  return span_logits(root, base_of(root, c, in, renamed ? "transformer" : "model"), 2);
}

DecoderLimits llama_limits(const LlamaConfig& c) {
  return {.vocabulary = c.vocab_size,
          .positions = c.max_position_embeddings,
          .bounded = false,
          .takes_positions = true,
          .layers = c.num_hidden_layers,
          .key_heads = c.num_key_value_heads,
          .head_size = c.head_dim};
}

const Family llama = llama_family<LlamaConfig>("llama", "Llama", {.answers_questions = true});

}  // namespace mk::models
