// LayoutLMv3 (Huang et al. 2022): words with their boxes and patches of the page's image in one sequence, with biases
// by how far apart they are, in the sequence and on the page.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/families.h"
#include "models/image.h"
#include "models/layout.h"
#include "nn/attention.h"
#include "nn/distances.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr std::int64_t page = 1000;  // boxes are in parts of it

struct LayoutLMv3Config : BertConfig {
  std::int64_t max_2d_position_embeddings = 1024;
  std::int64_t coordinate_size = 128, shape_size = 128;
  bool has_relative_attention_bias = true, has_spatial_attention_bias = true;
  std::int64_t rel_pos_bins = 32, max_rel_pos = 128;
  std::int64_t rel_2d_pos_bins = 64, max_rel_2d_pos = 256;
  bool visual_embed = true;
  std::int64_t input_size = 224, num_channels = 3, patch_size = 16;

  std::int64_t side() const { return input_size / patch_size; }  // patches of a row, and of a column
  ImageLimits image() const { return {.channels = num_channels, .size = {{input_size, input_size}}, .fixed = true}; }
  static LayoutLMv3Config read(const Family& family, ConfigReader& fields);
};

LayoutLMv3Config LayoutLMv3Config::read(const Family& family, ConfigReader& fields) {
  BertConfig defaults;
  defaults.vocab_size = 50265, defaults.layer_norm_eps = 1e-5;
  LayoutLMv3Config c{BertConfig::read(family, fields, defaults)};
  c.pad_token_id = fields.id("pad_token_id", 1);
  const auto size = [&](const char* key, std::int64_t& field) { field = fields.size(key, field); };
  size("max_2d_position_embeddings", c.max_2d_position_embeddings);
  size("coordinate_size", c.coordinate_size);
  size("shape_size", c.shape_size);
  c.has_relative_attention_bias = fields.boolean("has_relative_attention_bias", true);
  c.has_spatial_attention_bias = fields.boolean("has_spatial_attention_bias", true);
  size("rel_pos_bins", c.rel_pos_bins);
  size("max_rel_pos", c.max_rel_pos);
  size("rel_2d_pos_bins", c.rel_2d_pos_bins);
  size("max_rel_2d_pos", c.max_rel_2d_pos);
  c.visual_embed = fields.boolean("visual_embed", true);
  size("input_size", c.input_size);
  size("num_channels", c.num_channels);
  size("patch_size", c.patch_size);
  if (!fields.boolean("text_embed", true))
    fields.fail(ErrorCode::unsupported, "text_embed is false, and a model of images alone is not supported");
  if (!c.pruned_heads.empty()) fields.fail(ErrorCode::unsupported, "pruned_heads is not supported by LayoutLMv3");
  constexpr std::int64_t most = 1 << 20, most_patches = 1 << 12;
  if (c.max_2d_position_embeddings > most || c.max_position_embeddings > most)
    fields.fail(ErrorCode::malformed,
                fmt::format("max_2d_position_embeddings {} or max_position_embeddings {} is beyond {}",
                            c.max_2d_position_embeddings, c.max_position_embeddings, most));
  if (c.side() < 1 || c.side() > most_patches)
    fields.fail(ErrorCode::malformed, fmt::format("input_size {} over patch_size {} is {}, expected 1 to {}",
                                                  c.input_size, c.patch_size, c.side(), most_patches));
  return c;
}

Value text_embeddings(const Scope& s, const LayoutLMv3Config& c, const LayoutInputs& in) {
  const TextInputs& text = in.text;
  Value x = embedding(s["word_embeddings"], text.input_ids, c.vocab_size, c.hidden_size);
  const Scope types = s["token_type_embeddings"];
  x = add(s, x,
          text.token_type_ids ? embedding(types, text.token_type_ids, c.type_vocab_size, c.hidden_size)
                              : s.builder().rows(types.parameter("weight", {c.type_vocab_size, c.hidden_size}), 0, 1));
  const Value ids = text.position_ids ? text.position_ids : token_positions(s, text.input_ids, c.pad_token_id);
  x = add(s, x, embedding(s["position_embeddings"], ids, c.max_position_embeddings, c.hidden_size));

  const Value left = in.edge(s, 0), top = in.edge(s, 1), right = in.edge(s, 2), bottom = in.edge(s, 3);
  const auto of = [&](const char* name, Value at, std::int64_t width) {
    return embedding(s[name], at, c.max_2d_position_embeddings, width);
  };
  const auto length = [&](Value from, Value to) { return nn::clip(s, sub(s, to, from), 0, 1023); };
  const Value box = concat(
      s,
      {of("x_position_embeddings", left, c.coordinate_size), of("y_position_embeddings", top, c.coordinate_size),
       of("x_position_embeddings", right, c.coordinate_size), of("y_position_embeddings", bottom, c.coordinate_size),
       of("h_position_embeddings", length(top, bottom), c.shape_size),
       of("w_position_embeddings", length(left, right), c.shape_size)},
      -1);
  return bert_norm(s, c, add(s, x, box));
}

Value image_embeddings(const Scope& s, const LayoutLMv3Config& c, Value pixels) {
  expect_image(s, pixels, c.image());
  const Scope patches = s("patch_embed", c.name("PatchEmbeddings"));
  Value x = conv2d(
      patches["proj"], pixels,
      {.channels = c.hidden_size, .kernel = {c.patch_size, c.patch_size}, .stride = {c.patch_size, c.patch_size}});
  x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
  x = concat(s, {expand_batch(s, s.weight("cls_token", {1, 1, c.hidden_size}), x), x}, 1);
  x = add(s, x, s.weight("pos_embed", {1, c.side() * c.side() + 1, c.hidden_size}));
  return layer_norm(s["norm"], x, 1e-6);
}

// A constant of the type of `like`, [1, length].
Value row_of(const Scope& s, const char* name, const std::vector<std::int64_t>& values, Value like) {
  const auto length = static_cast<std::int64_t>(values.size());
  Bytes data = owned_values(values);
  if (like.type() != DataType::int64) data = cast(std::move(data), DataType::int64, like.type());
  return s.builder().constant(fmt::format("{}/{}", s.module().path, name), like.type(), {1, length}, std::move(data));
}

// One edge of the patches' boxes: the page for the class token, then the grid by columns (x) or rows.
std::vector<std::int64_t> grid(std::int64_t side, std::int64_t token, bool columns, bool far) {
  std::vector<std::int64_t> edges{token};
  for (std::int64_t i = 0; i < side * side; ++i)
    edges.push_back(((columns ? i % side : i / side) + (far ? 1 : 0)) * page / side);
  return edges;
}

// [.., heads, length, length]: a bias for each pair of `at` [.., length], by the bucket of their difference, which is
// `most` at most.
Value bias(const Scope& s, std::int64_t heads, std::int64_t bins, std::int64_t farthest, std::int64_t most, Value at) {
  if (!at) return {};
  s.is_a("Linear");
  std::vector<std::int64_t> buckets;
  for (std::int64_t d = -most; d <= most; ++d) buckets.push_back(two_sided_bucket(d, bins, farthest));
  const auto count = static_cast<std::int64_t>(buckets.size());
  const Value rows =
      s.builder().constant(s.module().path + "/buckets", DataType::int64, {count}, owned_values(buckets));
  const Value table = gather(s, s.builder().transposed(s.parameter("weight", {heads, bins})), rows);
  const int last = at.rank();
  const Value difference = sub(s, unsqueeze(s, at, last - 1), unsqueeze(s, at, last));
  const Value y = gather(s, table, add(s, difference, static_cast<double>(most)));
  return last == 1 ? transpose(s, y, {2, 0, 1}) : transpose(s, y, {0, 3, 1, 2});
}

// What the scores get, of all layers alike.
Value biases(const Scope& s, const LayoutLMv3Config& c, const LayoutInputs& in) {
  if (!c.has_relative_attention_bias || !in.bbox) return {};
  const std::int64_t heads = c.num_attention_heads, patches = c.side() * c.side() + 1;
  const Dim words = in.text.input_ids.dim(1);
  Value positions = ramp(s, in.text.input_ids);
  if (in.pixel_values) {
    std::vector<std::int64_t> of_patches;
    for (std::int64_t i = 0; i < patches; ++i) of_patches.push_back(i);
    positions = concat(s,
                       {positions, s.builder().constant(s.module().path + "/patches", DataType::int64, {patches},
                                                        owned_values(of_patches))},
                       0);
  }
  const std::int64_t longest = std::max(words.is_known() ? words.value : c.max_position_embeddings, patches) - 1;
  Value all = bias(s["rel_pos_bias"], heads, c.rel_pos_bins, c.max_rel_pos, longest, positions);
  if (!c.has_spatial_attention_bias) return all;

  Value x = in.edge(s, 0), y = in.edge(s, 3);
  if (in.pixel_values) {
    x = concat(s, {x, expand_batch(s, row_of(s, "left", grid(c.side(), 1, true, false), x), x)}, 1);
    y = concat(s, {y, expand_batch(s, row_of(s, "bottom", grid(c.side(), page - 1, false, true), y), y)}, 1);
  }
  const std::int64_t farthest = std::max(c.max_2d_position_embeddings - 1, page);
  const Value by_x = bias(s["rel_pos_x_bias"], heads, c.rel_2d_pos_bins, c.max_rel_2d_pos, farthest, x);
  const Value by_y = bias(s["rel_pos_y_bias"], heads, c.rel_2d_pos_bins, c.max_rel_2d_pos, farthest, y);
  return add(s, all, add(s, by_x, by_y));
}

Value self_attention(const Scope& s, const LayoutLMv3Config& c, Value x, Value mask) {
  const std::int64_t heads = c.num_attention_heads, width = c.hidden_size;
  const Value query = split_heads(s, linear(s["query"], x, width), heads);
  const Value key = split_keys(s, linear(s["key"], x, width), heads);
  const Value value = split_heads(s, linear(s["value"], x, width), heads);
  const Value scaled = div(s, query, std::sqrt(static_cast<double>(width / heads)));
  return attend(s, matmul(s, scaled, key), mask, value);
}

Value layoutlmv3_model(const Scope& s, const LayoutLMv3Config& c, const LayoutInputs& in) {
  Value x = text_embeddings(s("embeddings", c.name("TextEmbeddings")), c, in);
  Value seen = in.text.attention_mask;
  if (in.pixel_values) {
    x = bert_norm(s, c, concat(s, {x, image_embeddings(s, c, in.pixel_values)}, 1));
    const std::vector<std::int64_t> ones(static_cast<std::size_t>(c.side() * c.side() + 1), 1);
    if (seen) seen = concat(s, {seen, expand_batch(s, row_of(s, "ones", ones, seen), seen)}, 1);
  }
  Value mask = additive_mask(s, seen);
  const Scope encoder = s("encoder", c.name("Encoder"));
  if (const Value all = biases(encoder, c, in); all) {
    const auto size = static_cast<double>(c.hidden_size / c.num_attention_heads);
    const Value scaled = div(encoder, all, std::sqrt(size));
    mask = mask ? add(encoder, scaled, mask) : scaled;
  }
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const Scope layer = encoder("layer", i, c.name("Layer")), attention = layer("attention", c.name("Attention"));
    const Value y = self_attention(attention("self", c.name("SelfAttention")), c, x, mask);
    const Scope mixed = attention("output", c.name("SelfOutput"));
    x = bert_feed_forward(layer, c, bert_norm(mixed, c, add(mixed, linear(mixed["dense"], y, c.hidden_size), x)));
  }
  return x;
}

Value base(const Scope& root, const LayoutLMv3Config& c, const LayoutInputs& in) {
  return layoutlmv3_model(bert_base(root, c), c, in);
}

Value logits(const Scope& s, const LayoutLMv3Config& c, Value x) {
  return linear(s["out_proj"], unary(s, "Tanh", linear(s["dense"], x, c.hidden_size)), c.num_labels);
}

Outputs hidden_states(const Scope& root, const LayoutLMv3Config& c, const LayoutInputs& in) {
  return {layoutlmv3_model(root, c, in)};
}

Outputs sequence_classifier(const Scope& root, const LayoutLMv3Config& c, const LayoutInputs& in) {
  const Value first = take(root, base(root, c, in), 1, 0);
  return {logits(root("classifier", c.name("ClassificationHead")), c, first)};
}

Outputs token_classifier(const Scope& root, const LayoutLMv3Config& c, const LayoutInputs& in) {
  Value x = base(root, c, in);
  const Dim words = in.text.input_ids.dim(1);
  if (in.pixel_values && words.is_known()) x = slice(root, x, 1, 0, words.value);
  if (in.pixel_values && !words.is_known()) x = slice(root, x, 1, 0, -(c.side() * c.side() + 1));
  constexpr std::int64_t few = 10;  // labels that one layer is enough for
  if (c.num_labels < few) return token_logits(root, x, c.num_labels);
  return {logits(root("classifier", c.name("ClassificationHead")), c, x)};
}

// Of words and patches alike.
Outputs question_answering(const Scope& root, const LayoutLMv3Config& c, const LayoutInputs& in) {
  const Value x = logits(root("qa_outputs", c.name("ClassificationHead")), c, base(root, c, in));
  if (c.num_labels != 2)
    root.builder().fail({ErrorCode::malformed, fmt::format("question answering has {} labels", c.num_labels),
                         "config.json", "Set num_labels to 2"});
  return {take(root, x, -1, 0), take(root, x, -1, 1)};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const LayoutLMv3Config c = LayoutLMv3Config::read(request.family, request.config);
  const TextLimits limits{c.vocab_size, c.max_position_embeddings - c.pad_token_id - 1, 0};
  MK_TRY(auto inputs, layout_input_specs(request, limits, c.max_2d_position_embeddings));
  if (!c.visual_embed) return inputs;
  MK_TRY(auto image, image_input_specs(request, c.image()));
  inputs.insert(inputs.end(), image.begin(), image.end());
  return inputs;
}

}  // namespace

const Family layoutlmv3{
    .model_type = "layoutlmv3",
    .stem = "LayoutLMv3",
    .prefix = "layoutlmv3",
    .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids", "bbox", "pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>},
            {"token-classification", "ForTokenClassification", {"logits"}, head<token_classifier>},
            {"question-answering", "ForQuestionAnswering", {"start_logits", "end_logits"}, head<question_answering>},
        },
    .optional = {"token_type_ids", "position_ids"},
};

}  // namespace mk::models
