#include "checkpoint/gguf_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <system_error>

#include "base/json.h"
#include "checkpoint/gguf_blocks.h"
#include "checkpoint/gguf_codes.h"

namespace mk {
namespace {

struct Rename {
  std::string_view gguf, own;  // {} is the layer
};

constexpr Rename llama_names[] = {
    {"token_embd.weight", "model.embed_tokens.weight"},
    {"output_norm.weight", "model.norm.weight"},
    {"output.weight", "lm_head.weight"},
    {"blk.{}.attn_norm.weight", "model.layers.{}.input_layernorm.weight"},
    {"blk.{}.attn_q.weight", "model.layers.{}.self_attn.q_proj.weight"},
    {"blk.{}.attn_k.weight", "model.layers.{}.self_attn.k_proj.weight"},
    {"blk.{}.attn_v.weight", "model.layers.{}.self_attn.v_proj.weight"},
    {"blk.{}.attn_q.bias", "model.layers.{}.self_attn.q_proj.bias"},
    {"blk.{}.attn_k.bias", "model.layers.{}.self_attn.k_proj.bias"},
    {"blk.{}.attn_v.bias", "model.layers.{}.self_attn.v_proj.bias"},
    {"blk.{}.attn_output.weight", "model.layers.{}.self_attn.o_proj.weight"},
    {"blk.{}.attn_output.bias", "model.layers.{}.self_attn.o_proj.bias"},
    {"blk.{}.attn_q_norm.weight", "model.layers.{}.self_attn.q_norm.weight"},
    {"blk.{}.attn_k_norm.weight", "model.layers.{}.self_attn.k_norm.weight"},
    {"blk.{}.attn_qkv.weight", "model.layers.{}.self_attn.qkv_proj.weight"},
    {"blk.{}.ffn_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
    {"blk.{}.ffn_gate.weight", "model.layers.{}.mlp.gate_proj.weight"},
    {"blk.{}.ffn_up.weight", "model.layers.{}.mlp.up_proj.weight"},
    {"blk.{}.ffn_down.weight", "model.layers.{}.mlp.down_proj.weight"},
    {"blk.{}.ffn_gate.bias", "model.layers.{}.mlp.gate_proj.bias"},
    {"blk.{}.ffn_up.bias", "model.layers.{}.mlp.up_proj.bias"},
    {"blk.{}.ffn_down.bias", "model.layers.{}.mlp.down_proj.bias"},
};
// Gemma 2 and 3 have norms after the blocks, too; they come before the names above.
constexpr Rename sandwich_names[] = {
    {"blk.{}.post_attention_norm.weight", "model.layers.{}.post_attention_layernorm.weight"},
    {"blk.{}.ffn_norm.weight", "model.layers.{}.pre_feedforward_layernorm.weight"},
    {"blk.{}.post_ffw_norm.weight", "model.layers.{}.post_feedforward_layernorm.weight"},
};
constexpr Rename phi3_names[] = {{"blk.{}.ffn_up.weight", "model.layers.{}.mlp.gate_up_proj.weight"}};
constexpr Rename gpt2_names[] = {
    {"token_embd.weight", "transformer.wte.weight"},
    {"position_embd.weight", "transformer.wpe.weight"},
    {"output_norm.weight", "transformer.ln_f.weight"},
    {"output_norm.bias", "transformer.ln_f.bias"},
    {"output.weight", "lm_head.weight"},
    {"blk.{}.attn_norm.weight", "transformer.h.{}.ln_1.weight"},
    {"blk.{}.attn_norm.bias", "transformer.h.{}.ln_1.bias"},
    {"blk.{}.attn_qkv.weight", "transformer.h.{}.attn.c_attn.weight"},
    {"blk.{}.attn_qkv.bias", "transformer.h.{}.attn.c_attn.bias"},
    {"blk.{}.attn_output.weight", "transformer.h.{}.attn.c_proj.weight"},
    {"blk.{}.attn_output.bias", "transformer.h.{}.attn.c_proj.bias"},
    {"blk.{}.ffn_norm.weight", "transformer.h.{}.ln_2.weight"},
    {"blk.{}.ffn_norm.bias", "transformer.h.{}.ln_2.bias"},
    {"blk.{}.ffn_up.weight", "transformer.h.{}.mlp.c_fc.weight"},
    {"blk.{}.ffn_up.bias", "transformer.h.{}.mlp.c_fc.bias"},
    {"blk.{}.ffn_down.weight", "transformer.h.{}.mlp.c_proj.weight"},
    {"blk.{}.ffn_down.bias", "transformer.h.{}.mlp.c_proj.bias"},
};

struct Architecture {
  std::string_view name, model_type, class_name;
  std::span<const Rename> first, names;
  bool pairs = false;      // rows of queries and keys are in the order of pairs
  bool norm_plus = false;  // norms are stored as weight + 1
  bool conv1d = false;     // matrices are stored transposed
};
constexpr Architecture architectures[] = {
    {"llama", "llama", "LlamaForCausalLM", {}, llama_names, true},
    {"qwen2", "qwen2", "Qwen2ForCausalLM", {}, llama_names},
    {"qwen3", "qwen3", "Qwen3ForCausalLM", {}, llama_names},
    {"smollm3", "smollm3", "SmolLM3ForCausalLM", {}, llama_names, true},
    {"gemma", "gemma", "GemmaForCausalLM", {}, llama_names, false, true},
    {"gemma2", "gemma2", "Gemma2ForCausalLM", sandwich_names, llama_names, false, true},
    {"gemma3", "gemma3_text", "Gemma3ForCausalLM", sandwich_names, llama_names, false, true},
    {"phi3", "phi3", "Phi3ForCausalLM", phi3_names, llama_names},
    {"gpt2", "gpt2", "GPT2LMHeadModel", {}, gpt2_names, false, false, true},
};

Result<const Architecture*> architecture_of(const GgufFile& file) {
  const auto* name = file.fact<std::string>("general.architecture");
  std::vector<std::string_view> known;
  for (const Architecture& one : architectures) {
    if (name && one.name == *name) return &one;
    known.push_back(one.name);
  }
  return fail(ErrorCode::unsupported, fmt::format("the GGUF file has the architecture \"{}\"", name ? *name : ""),
              to_utf8(file.file->path()), fmt::format("Those that can be exported are {}", fmt::join(known, ", ")));
}

// Facts of the architecture, as fields of a configuration.
class Facts {
 public:
  Facts(const GgufFile& file, std::string_view architecture) : file_(file), prefix_(std::string(architecture) + ".") {}

  std::optional<std::int64_t> integer(std::string_view key) const {
    const auto* value = file_.fact<std::int64_t>(prefix_ + std::string(key));
    return value ? std::optional(*value) : std::nullopt;
  }
  std::optional<double> number(std::string_view key) const {
    if (const auto* value = file_.fact<double>(prefix_ + std::string(key))) return *value;
    const auto whole = integer(key);
    return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
  }
  std::optional<std::string> text(std::string_view key) const {
    const auto* value = file_.fact<std::string>(prefix_ + std::string(key));
    return value ? std::optional(*value) : std::nullopt;
  }
  const GgufFile& file() const { return file_; }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

struct Field {
  std::string_view key, own;
};
constexpr Field integer_fields[] = {
    {"context_length", "max_position_embeddings"},
    {"embedding_length", "hidden_size"},
    {"block_count", "num_hidden_layers"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"attention.sliding_window", "sliding_window"},
    {"vocab_size", "vocab_size"},
};
constexpr Field number_fields[] = {
    {"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    {"attention.layer_norm_epsilon", "layer_norm_epsilon"},
    {"rope.freq_base", "rope_theta"},
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
};
constexpr Field token_fields[] = {
    {"bos_token_id", "bos_token_id"}, {"eos_token_id", "eos_token_id"}, {"padding_token_id", "pad_token_id"}};

Result<std::vector<float>> values_of(const GgufFile& file, std::string_view name) {
  std::vector<float> values;
  const GgufTensor* tensor = file.tensor(name);
  if (!tensor || tensor->type != 0 || tensor->bytes > (1u << 20)) return values;
  values.resize(static_cast<std::size_t>(tensor->bytes / sizeof(float)));
  MK_CHECK(file.file->read(tensor->offset, std::as_writable_bytes(std::span(values))));
  return values;
}

// Kinds that have factors per frequency are all longrope's: the tensors have the numbers, whatever they came from.
Status add_rope(Json& config, const Facts& facts) {
  MK_TRY(const std::vector<float> factors, values_of(facts.file(), "rope_freqs.weight"));
  MK_TRY(const std::vector<float> near, values_of(facts.file(), "rope_factors_short.weight"));
  MK_TRY(const std::vector<float> far, values_of(facts.file(), "rope_factors_long.weight"));
  if (!factors.empty()) {
    config["rope_scaling"] = {
        {"rope_type", "longrope"}, {"short_factor", factors}, {"long_factor", factors}, {"attention_factor", 1.0}};
  } else if (!near.empty() && !far.empty()) {
    config["rope_scaling"] = {{"rope_type", "longrope"}, {"short_factor", near}, {"long_factor", far}};
    if (const auto factor = facts.number("rope.scaling.attn_factor"))
      config["rope_scaling"]["attention_factor"] = *factor;
    if (const auto original = facts.integer("rope.scaling.original_context_length"))
      config["original_max_position_embeddings"] = *original;
  } else if (const auto kind = facts.text("rope.scaling.type"); kind && *kind != "none") {
    Json& scaling =
        config["rope_scaling"] = {{"rope_type", *kind}, {"factor", facts.number("rope.scaling.factor").value_or(1)}};
    if (const auto original = facts.integer("rope.scaling.original_context_length"))
      scaling["original_max_position_embeddings"] = *original;
  }
  return {};
}

void add_gemma(Json& config, const Facts& facts, std::string_view type) {
  // The converter has no fact for it: all released models but the largest of Gemma 2 and 3 divide by the head's size.
  const std::int64_t layers = facts.integer("block_count").value_or(0), heads = config.value("num_attention_heads", 1);
  const bool largest = (type == "gemma2" && layers == 46) || (type == "gemma3_text" && layers == 62);
  config["query_pre_attn_scalar"] =
      largest && heads > 0 ? config.value("hidden_size", 0) / heads : config.value("head_dim", 256);
  if (type == "gemma2" && !config.contains("final_logit_softcapping")) config["final_logit_softcapping"] = nullptr;
  if (type == "gemma2" && !config.contains("attn_logit_softcapping")) config["attn_logit_softcapping"] = nullptr;
}

// Rows of each head that were put in pairs (i, i + half) -> (2 i, 2 i + 1), back in halves.
class Unpaired : public ByteSource {
 public:
  Unpaired(Bytes source, std::uint64_t row_bytes, std::uint64_t head_rows)
      : source_(std::move(source)), row_(row_bytes), head_(head_rows) {}
  std::uint64_t size() const override { return source_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::uint64_t row = offset / row_, within = offset % row_;
      const std::uint64_t half = head_ / 2, own = row % head_;
      const std::uint64_t from = row - own + (own % half) * 2 + own / half;
      const std::size_t part = std::min<std::size_t>(out.size(), static_cast<std::size_t>(row_ - within));
      MK_CHECK(source_->read(from * row_ + within, out.first(part)));
      out = out.subspan(part);
      offset += part;
    }
    return {};
  }

 private:
  Bytes source_;
  std::uint64_t row_, head_;
};

// float32 less one.
class LessOne : public ByteSource {
 public:
  explicit LessOne(Bytes source) : source_(std::move(source)) {}
  std::uint64_t size() const override { return source_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t first = offset / sizeof(float),
                        last = (offset + out.size() + sizeof(float) - 1) / sizeof(float);
    std::vector<float> values(static_cast<std::size_t>(last - first));
    MK_CHECK(source_->read(first * sizeof(float), std::as_writable_bytes(std::span(values))));
    for (float& value : values) value -= 1;
    std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + (offset - first * sizeof(float)),
                out.size());
    return {};
  }

 private:
  Bytes source_;
};

// The name in transformers; empty where it has none.
std::string own_name(const Architecture& architecture, std::string_view name) {
  std::string pattern(name), layer;
  if (name.starts_with("blk.")) {
    const std::size_t end = name.find('.', 4);
    if (end == std::string_view::npos) return {};
    layer = name.substr(4, end - 4);
    pattern = fmt::format("blk.{{}}{}", name.substr(end));
  }
  for (const auto& table : {architecture.first, architecture.names})
    for (const Rename& rename : table)
      if (rename.gguf == pattern) return fmt::format(fmt::runtime(rename.own), layer);
  return {};
}

std::int64_t whole(const Json& config, const char* key, std::int64_t otherwise) {
  const auto found = config.find(key);
  return found != config.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

// How many heads the rows of a tensor are put in pairs for; 0 where they are not.
std::int64_t paired_heads(const Architecture& architecture, std::string_view name, const Json& config,
                          const std::vector<std::int64_t>& dims) {
  const bool query = name.find(".q_proj.") != std::string_view::npos;
  if (!architecture.pairs || dims.empty() || (!query && name.find(".k_proj.") == std::string_view::npos)) return 0;
  const std::int64_t all = whole(config, "num_attention_heads", 1);
  const std::int64_t heads = query ? all : whole(config, "num_key_value_heads", all);
  return heads > 0 && dims[0] % (2 * heads) == 0 ? heads : 0;
}

void add_tensor(GgufWeights& weights, const GgufFile& file, const GgufTensor& stored, std::string name,
                const Architecture& architecture, const Json& config) {
  const GgufType& type = *find_gguf_type(stored.type);
  const Bytes blocks = file_bytes({file.file, stored.offset, stored.bytes});
  std::vector<std::int64_t> dims = stored.dims;
  const std::int64_t heads = paired_heads(architecture, name, config, dims);
  const auto in_order = [&](Bytes rows) -> Bytes {
    if (heads == 0 || rows == nullptr) return rows;
    const auto count = static_cast<std::uint64_t>(dims[0]);
    return std::make_shared<const Unpaired>(rows, rows->size() / count, count / static_cast<std::uint64_t>(heads));
  };
  const bool quantized = type.plain == DataType::undefined;
  const DataType element = quantized ? DataType::float32 : type.plain;
  Bytes data = in_order(quantized ? dequantized(blocks, type) : blocks);
  if (architecture.norm_plus && name.ends_with("norm.weight") && element == DataType::float32)
    data = std::make_shared<const LessOne>(std::move(data));
  if (architecture.conv1d && dims.size() == 2 && name.find(".h.") != std::string::npos) {
    data = transposed(std::move(data), 1, static_cast<std::uint64_t>(dims[0]), static_cast<std::uint64_t>(dims[1]),
                      static_cast<std::uint64_t>(bits_of(element)) / 8);
    std::swap(dims[0], dims[1]);
  } else if (quantized && dims.size() == 2) {
    if (auto kept = kept_codes(blocks, type, dims[0], dims[1])) {
      for (Bytes* part : {&kept->codes, &kept->scales, &kept->zero_points}) *part = in_order(std::move(*part));
      weights.quantized.emplace(name, std::move(*kept));
    }
  }
  weights.tensors.emplace(name, make_tensor(name, element, std::move(dims), std::move(data)));
}

}  // namespace

Result<Json> gguf_config(const GgufFile& file) {
  MK_TRY(const Architecture* architecture, architecture_of(file));
  const Facts facts(file, architecture->name);
  Json config{{"architectures", {architecture->class_name}}, {"model_type", architecture->model_type}};
  for (const Field& field : integer_fields)
    if (const auto value = facts.integer(field.key)) config[std::string(field.own)] = *value;
  for (const Field& field : number_fields)
    // Written in float32: its shortest form is the number that was meant.
    if (const auto value = facts.number(field.key))
      config[std::string(field.own)] = Json::parse(fmt::format("{}", static_cast<float>(*value)));
  for (const Field& field : token_fields)
    if (const auto* id = file.fact<std::int64_t>("tokenizer.ggml." + std::string(field.key)))
      config[std::string(field.own)] = *id;
  if (const GgufTensor* table = file.tensor("token_embd.weight"); table && table->dims.size() == 2)
    config["vocab_size"] = table->dims[0];
  config["tie_word_embeddings"] = file.tensor("output.weight") == nullptr;
  const std::string_view type = architecture->model_type;
  if (type == "llama" || type == "qwen3" || type == "smollm3")
    config["attention_bias"] = file.tensor("blk.0.attn_q.bias") != nullptr;
  if (type == "llama" || type == "smollm3") config["mlp_bias"] = file.tensor("blk.0.ffn_up.bias") != nullptr;
  if (type == "llama" && !config.contains("head_dim"))
    if (const auto rotated = facts.integer("rope.dimension_count")) config["head_dim"] = *rotated;
  if (type == "phi3" && config.contains("num_attention_heads")) {
    const std::int64_t size = whole(config, "hidden_size", 0), heads = whole(config, "num_attention_heads", 1);
    const auto rotated = facts.integer("rope.dimension_count");
    if (heads > 0 && size > 0 && rotated)
      config["partial_rotary_factor"] = static_cast<double>(*rotated) / static_cast<double>(size / heads);
  }
  if (type == "gpt2") {
    config["n_inner"] = config.value("intermediate_size", Json());
    config.erase("intermediate_size");
  }
  if (type == "gemma2" || type == "gemma3_text") add_gemma(config, facts, type);
  MK_CHECK(add_rope(config, facts));
  return config;
}

Result<GgufWeights> gguf_weights(const GgufFile& file) {
  MK_TRY(const Architecture* architecture, architecture_of(file));
  MK_TRY(const Json config, gguf_config(file));
  GgufWeights weights;
  for (const GgufTensor& stored : file.tensors)
    if (std::string name = own_name(*architecture, stored.name); !name.empty())
      add_tensor(weights, file, stored, std::move(name), *architecture, config);
  return weights;
}

Result<Path> gguf_of(const Path& folder) {
  if (is_gguf(folder)) return folder;
  const auto names = list_folder(folder);
  if (!names) return Path();
  std::vector<Path> found;
  for (const Path& name : *names)
    if (is_gguf(name)) found.push_back(folder / name);
  if (found.size() > 1)
    return fail(ErrorCode::usage, fmt::format("the folder has {} GGUF files", found.size()), to_utf8(folder),
                fmt::format("Name one of them: -m {}", to_utf8(found.front())));
  return found.empty() ? Path() : found.front();
}

}  // namespace mk
