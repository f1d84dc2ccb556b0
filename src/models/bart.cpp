#include "models/bart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/families.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"
#include "nn/sinusoids.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr double norm_epsilon = 1e-5;

BartStack read_stack(ConfigReader& fields, const std::string& which, std::int64_t d_model) {
  BartStack stack;
  stack.layers = fields.count(which + "_layers", stack.layers);
  stack.heads = fields.size(which + "_attention_heads", stack.heads);
  stack.ffn = fields.size(which + "_ffn_dim", stack.ffn);
  if (d_model % stack.heads != 0)
    fields.fail(ErrorCode::malformed,
                fmt::format("d_model {} is not a multiple of {}_attention_heads {}", d_model, which, stack.heads));
  return stack;
}

}  // namespace

BartConfig BartConfig::read(const Family& family, ConfigReader& fields) {
  BartConfig c;
  c.style = bart_style(family.model_type);
  c.stem = family.stem;
  c.d_model = fields.size("d_model", c.d_model);
  c.encoder = read_stack(fields, "encoder", c.d_model);
  c.decoder = read_stack(fields, "decoder", c.d_model);
  c.vocab_size = fields.size("vocab_size", 50265);
  c.share_embeddings = fields.boolean("share_encoder_decoder_embeddings", true) || family.model_type != "marian";
  c.decoder_vocab_size = c.share_embeddings ? c.vocab_size : fields.size("decoder_vocab_size", c.vocab_size);
  c.max_position_embeddings = fields.size("max_position_embeddings", c.style.positions_count);
  c.activation_function = fields.string("activation_function", std::string(c.style.activation));
  if (fields.boolean("scale_embedding", family.model_type == "m2m_100"))
    c.embed_scale = std::sqrt(static_cast<double>(c.d_model));
  c.pad_token_id = fields.id("pad_token_id", c.pad_token_id);
  c.eos_token_id = fields.id("eos_token_id", c.eos_token_id);
  c.decoder_start_token_id = fields.id("decoder_start_token_id", c.eos_token_id);
  c.tie_word_embeddings = fields.boolean("tie_word_embeddings", true);
  c.num_labels = fields.num_labels();
  if (family.model_type == "bart" && !fields.has("num_labels") && !fields.has("id2label")) c.num_labels = 3;
  return c;
}

namespace {

// The tables of the two stacks and of the logits are one, as far as the configuration and the file say so.
void tie_embeddings(const Scope& root, const BartConfig& c) {
  const Weights& weights = root.builder().weights();
  const std::string shared = c.share_embeddings ? "model.shared.weight" : "model.decoder.embed_tokens.weight";
  if (c.share_embeddings) {
    for (const char* own : {"model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"})
      if (c.tie_word_embeddings || !weights.has(own)) root.tie(own, shared);
  }
  if (c.tie_word_embeddings) root.tie("lm_head.weight", shared);
}

// Of the stack s of the model `model`.
Value word_embeddings(const Scope& model, const Scope& s, const BartConfig& c, Value ids, std::int64_t vocabulary) {
  const Scope& owner = c.style.shared_module ? model : s;
  const char* const module = c.style.shared_module ? "shared" : "embed_tokens";
  const Scope table = c.style.scaled_word_embedding ? owner(module, c.name("ScaledWordEmbedding")) : owner[module];
  const Value tokens = embedding(table, ids, vocabulary, c.d_model);
  return c.embed_scale == 1 ? tokens : mul(c.style.scaled_word_embedding ? table : s, tokens, c.embed_scale);
}

// The row that a padding token looks up, which is of zeros, is in front of those of positions.
Value padded_positions(const Scope& s, const BartConfig& c, Value ids, Value position) {
  Builder& b = s.builder();
  const Value pad = b.scalar(ids.type(), static_cast<double>(c.pad_token_id));
  const Value real = cast(s, unary(s, "Not", equal(s, ids, pad)), DataType::int64);
  const Value counted = position ? add(s, cast(s, position, DataType::int64), b.integers({1})) : cumsum(s, real, 1);
  const Value rows = add(s, mul(s, counted, real), b.integers({c.pad_token_id}));
  const std::int64_t count = std::max(c.max_position_embeddings + 2, c.pad_token_id + 1 + c.max_position_embeddings);
  s.declare("sinusoids", half_sinusoids(count, c.d_model, c.pad_token_id));
  return gather(s, s.weight("sinusoids", {count, c.d_model}), rows);
}

// [length, width] or [batch, length, width]: of all of `ids`, or of one token at `position`.
Value positions(const Scope& parent, const BartConfig& c, Value ids, Value position) {
  const bool learned =
      c.style.positions == BartPositions::learned || c.style.positions == BartPositions::learned_from_2;
  const char* const kind = c.style.plain_positions ? "PositionalEmbedding"
                           : learned               ? "LearnedPositionalEmbedding"
                                                   : "SinusoidalPositionalEmbedding";
  const Scope s = parent("embed_positions", c.name(kind));
  if (c.style.positions == BartPositions::padded_sinusoids) return padded_positions(s, c, ids, position);
  const std::int64_t unused = c.style.positions == BartPositions::learned_from_2 ? 2 : 0;
  const std::int64_t count = c.max_position_embeddings;
  if (c.style.positions == BartPositions::sinusoids) s.declare("weight", split_sinusoids(count, c.d_model));
  if (!position) return first_rows(s, ids, count, c.d_model, unused);
  return gather(s, s.builder().rows(s.parameter("weight", {count + unused, c.d_model}), unused, count), position);
}

Value norm(const Scope& s, Value x) { return layer_norm(s, x, norm_epsilon); }

// x + work(x), normalized before or after it.
template <typename Work>
Value residual(const Scope& s, const BartConfig& c, std::string_view norm_name, Value x, Work work) {
  const Scope normal = s[norm_name];
  if (c.style.pre_norm) return add(s, x, work(norm(normal, x)));
  return norm(normal, add(s, x, work(x)));
}

Value queries(const Scope& s, Value x, std::int64_t width, std::int64_t heads) {
  return mul(s, linear(s["q_proj"], x, width), 1 / std::sqrt(static_cast<double>(width / heads)));
}

// Of x over `states` (x itself where it looks at its own).
Value attention(const Scope& s, const BartConfig& c, Value x, Value states, std::int64_t heads, Value mask) {
  const std::int64_t width = x.dim(-1).value;
  const Value key = split_keys(s, linear(s["k_proj"], states, width, c.style.key_bias), heads);
  const Value value = split_heads(s, linear(s["v_proj"], states, width), heads);
  const Value scores = matmul(s, split_heads(s, queries(s, x, width, heads), heads), key);
  return linear(s["out_proj"], attend(s, scores, mask, value), width);
}

Value step_attention(const Scope& s, const BartConfig& c, Value x, std::int64_t heads, StepCache& cache,
                     std::size_t layer) {
  const std::int64_t width = x.dim(-1).value;
  const Value key = linear(s["k_proj"], x, width, c.style.key_bias), value = linear(s["v_proj"], x, width);
  return linear(s["out_proj"], attend_step(s, cache, layer, heads, queries(s, x, width, heads), key, value), width);
}

Value mlp(const Scope& s, const BartConfig& c, Value x, std::int64_t width) {
  return linear(s["fc2"], activation(s, "activation_fn", c.activation_function, linear(s["fc1"], x, width)), c.d_model);
}

}  // namespace

Value bart_encoder_layers(const Scope& s, const BartConfig& c, Value x, Value mask, std::vector<Value>* taken) {
  for (std::int64_t i = 0; i < c.encoder.layers; ++i) {
    if (taken) taken->push_back(x);
    const Scope layer = s("layers", i, c.name("EncoderLayer"));
    x = residual(layer, c, "self_attn_layer_norm", x, [&](Value y) {
      return attention(layer("self_attn", c.name("Attention")), c, y, y, c.encoder.heads, mask);
    });
    x = residual(layer, c, "final_layer_norm", x, [&](Value y) { return mlp(layer, c, y, c.encoder.ffn); });
  }
  return c.style.pre_norm ? norm(s["layer_norm"], x) : x;
}

Value bart_decoder(const Scope& model, const BartConfig& c, Value ids, Value states, Value states_mask, Lookback back) {
  const Scope s = model("decoder", c.name("Decoder"));
  // Where the tables are two, transformers gives the decoder's as many rows as the encoder's.
  const auto* const found = s.builder().weights().dims("model.decoder.embed_tokens.weight");
  const bool encoders = !c.share_embeddings && found && !found->empty() && found->front() == c.vocab_size;
  Value x = word_embeddings(model, s, c, ids, encoders ? c.vocab_size : c.decoder_vocab_size);
  const auto normalized = [&](Value y) { return c.style.embedding_norm ? norm(s["layernorm_embedding"], y) : y; };
  if (c.style.norm_before_positions) x = normalized(x);
  x = add(s, x, positions(s, c, ids, back.position));
  if (!c.style.norm_before_positions) x = normalized(x);
  states_mask = additive_mask(s, states_mask);
  for (std::int64_t i = 0; i < c.decoder.layers; ++i) {
    const Scope layer = s("layers", i, c.name("DecoderLayer"));
    x = residual(layer, c, "self_attn_layer_norm", x, [&](Value y) {
      const Scope own = layer("self_attn", c.name("Attention"));
      return back.cache ? step_attention(own, c, y, c.decoder.heads, *back.cache, static_cast<std::size_t>(i))
                        : attention(own, c, y, y, c.decoder.heads, back.causal);
    });
    x = residual(layer, c, "encoder_attn_layer_norm", x, [&](Value y) {
      return attention(layer("encoder_attn", c.name("Attention")), c, y, states, c.decoder.heads, states_mask);
    });
    x = residual(layer, c, "final_layer_norm", x, [&](Value y) { return mlp(layer, c, y, c.decoder.ffn); });
  }
  return c.style.pre_norm ? norm(s["layer_norm"], x) : x;
}

namespace {

Value encoder(const Scope& model, const BartConfig& c, Value ids, Value mask) {
  const Scope s = model("encoder", c.name("Encoder"));
  Value x = add(s, word_embeddings(model, s, c, ids, c.vocab_size), positions(s, c, ids, {}));
  if (c.style.embedding_norm) x = norm(s["layernorm_embedding"], x);
  return bart_encoder_layers(s, c, x, additive_mask(s, mask));
}

Outputs encoder_states(const Scope& root, const BartConfig& c, const TextInputs& in) {
  tie_embeddings(root, c);
  return {encoder(root("model", c.name("Model")), c, in.input_ids, in.attention_mask)};
}

Outputs decoder_step(const Scope& root, const BartConfig& c, const StepInputs& in) {
  tie_embeddings(root, c);
  const Scope model = root("model", c.name("Model"));
  StepCache cache = in.cache(model, c.decoder.layers, c.decoder.heads, c.d_model / c.decoder.heads);
  if (!in.needs_position(root)) return {};
  const Value x = bart_decoder(model, c, in.input_ids, in.encoder_states, in.encoder_mask, {&cache, in.position, {}});
  Value logits = linear(root["lm_head"], x, c.decoder_vocab_size, false);
  if (c.style.logits_bias && root.builder().weights().has("final_logits_bias"))
    logits = add(root, logits, root.weight("final_logits_bias", {1, c.decoder_vocab_size}));
  return step_outputs(logits, cache);
}

// The text, moved by one place: behind the start token, or (mBART) behind its own last token.
Value moved(const Scope& root, const BartConfig& c, Value ids) {
  Builder& b = root.builder();
  Value first;
  if (c.style.model_type == "mbart") {
    const Value pad = b.scalar(ids.type(), static_cast<double>(c.pad_token_id));
    const Value real = cast(root, unary(root, "Not", equal(root, ids, pad)), DataType::int64);
    const Value last = sub(root, reduce(root, "ReduceSum", real, {1}, true), b.integers({1}));
    first = unsqueeze(root, pick(root, ids, last), 1);
  } else {
    const Value start = b.scalar(ids.type(), static_cast<double>(c.decoder_start_token_id));
    first = expand_batch(root, reshape(root, start, {1, 1}), ids);
  }
  return concat(root, {first, slice(root, ids, 1, 0, -1)}, 1);
}

// The decoder's states for a text that encoder and decoder both read.
Value states_of_text(const Scope& root, const BartConfig& c, const TextInputs& in) {
  tie_embeddings(root, c);
  const Scope model = root("model", c.name("Model"));
  const Value ids = moved(model, c, in.input_ids);
  const Value states = encoder(model, c, in.input_ids, in.attention_mask);
  return bart_decoder(model, c, ids, states, in.attention_mask, {nullptr, {}, causal_mask(model, ids)});
}

Outputs sequence_classifier(const Scope& root, const BartConfig& c, const TextInputs& in) {
  const Value states = states_of_text(root, c, in);
  if (!states) return {};
  const Value end = root.builder().scalar(in.input_ids.type(), static_cast<double>(c.eos_token_id));
  const Value is_end = cast(root, equal(root, in.input_ids, end), DataType::int32);
  const Value last = Op(root, "ArgMax", {is_end})
                         .with("axis", 1)
                         .with("keepdims", 1)
                         .with("select_last_index", 1)
                         .out(DataType::int64, {in.input_ids.dim(0), Dim::known(1)});
  const Scope head = root("classification_head", c.name("ClassificationHead"));
  const Value x = unary(head, "Tanh", linear(head["dense"], pick(root, states, last), c.d_model));
  return {linear(head["out_proj"], x, c.num_labels)};
}

Outputs question_answering(const Scope& root, const BartConfig& c, const TextInputs& in) {
  return span_logits(root, states_of_text(root, c, in), 2);
}

Result<std::vector<InputSpec>> text_inputs(InputRequest& request) {
  const BartConfig c = BartConfig::read(request.family, request.config);
  return text_input_specs(request, {c.vocab_size, c.max_position_embeddings, 0});
}

Result<std::vector<InputSpec>> step_inputs(InputRequest& request) {
  const BartConfig c = BartConfig::read(request.family, request.config);
  constexpr std::int64_t longest_default = 1024;
  return step_input_specs(request, {.vocabulary = c.decoder_vocab_size,
                                    .layers = c.decoder.layers,
                                    .heads = c.decoder.heads,
                                    .size = c.d_model / c.decoder.heads,
                                    .capacity = c.max_position_embeddings,
                                    .states = std::min(c.max_position_embeddings, longest_default),
                                    .longest_states = c.max_position_embeddings,
                                    .states_width = c.d_model});
}

}  // namespace

Family bart_family(std::string_view model_type, std::string_view stem, std::string_view suffix,
                   std::vector<std::string_view> pipelines) {
  Family family{.model_type = model_type,
                .stem = stem,
                .prefix = "model",
                .inputs = pair_inputs(),
                .default_inputs = text_inputs,
                .heads = {{encoder_task, suffix, {"encoder_hidden_states"}, head<encoder_states>},
                          {decoder_task, suffix, step_output_names(), head<decoder_step>, step_inputs}},
                .composites = pair_of(std::move(pipelines), suffix),
                .cached_layers = [](ConfigReader& fields) { return fields.count("decoder_layers", 12); }};
  if (model_type == "bart" || model_type == "mbart") {
    family.heads.push_back({"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>});
    family.heads.push_back(
        {"question-answering", "ForQuestionAnswering", {"start_logits", "end_logits"}, head<question_answering>});
  }
  return family;
}

const Family bart =
    bart_family("bart", "Bart", "ForConditionalGeneration", {"summarization", "table-question-answering"});
}  // namespace mk::models
