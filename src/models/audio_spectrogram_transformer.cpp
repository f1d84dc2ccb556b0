// The Audio Spectrogram Transformer (Gong et al. 2021): ViT on a spectrogram, with two tokens in front.

#include <fmt/format.h>

#include "models/families.h"
#include "models/vit.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct AstConfig : ViTConfig {
  std::int64_t frequency_stride = 10, time_stride = 10;
  std::int64_t max_length = 1024, num_mel_bins = 128;

  static AstConfig read(const Family& family, ConfigReader& fields) {
    AstConfig c{ViTConfig::read(family, fields)};
    c.frequency_stride = fields.size("frequency_stride", c.frequency_stride);
    c.time_stride = fields.size("time_stride", c.time_stride);
    c.max_length = fields.size("max_length", c.max_length);
    c.num_mel_bins = fields.size("num_mel_bins", c.num_mel_bins);
    if (c.num_mel_bins < c.patch_size[0] || c.max_length < c.patch_size[0])
      fields.fail(ErrorCode::malformed, "num_mel_bins or max_length is below patch_size");
    return c;
  }
};

// Floats [batch, time, mel bins].
struct Spectrogram {
  Value input_values;

  static Spectrogram read(const Scope& root, HeadContext& context) {
    const Value x = context.input("input_values");
    if (!x || x.rank() != 3 || !is_float(x.type()))
      root.builder().fail(
          {ErrorCode::usage,
           fmt::format("{} needs input_values of floats [batch, time, mel bins]", root.module().class_name), "", ""});
    return {x};
  }
};

Value ast_model(const Scope& s, const AstConfig& c, const Spectrogram& in) {
  if (!in.input_values) return {};
  if (in.input_values.dim(1).value != c.max_length || in.input_values.dim(2).value != c.num_mel_bins) {
    s.builder().fail({ErrorCode::usage,
                      fmt::format("input_values has shape {}, and the model takes {} x {} only (time x mel bins)",
                                  to_string(in.input_values.shape()), c.max_length, c.num_mel_bins),
                      "", ""});
    return {};
  }
  const Scope embeddings = s("embeddings", "ASTEmbeddings"),
              patches = embeddings("patch_embeddings", "ASTPatchEmbeddings");
  const Value image = unsqueeze(patches, transpose(patches, in.input_values, {0, 2, 1}), 1);
  const std::int64_t side = c.patch_size[0];
  Value x = conv2d(patches["projection"], image,
                   {.channels = c.hidden_size, .kernel = {side, side}, .stride = {c.frequency_stride, c.time_stride}});
  x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
  const auto token = [&](const char* name) {
    return expand_batch(embeddings, embeddings.weight(name, {1, 1, c.hidden_size}), in.input_values);
  };
  x = concat(embeddings, {token("cls_token"), token("distillation_token"), x}, 1);
  x = add(embeddings, x, embeddings.weight("position_embeddings", {1, x.dim(1).value, c.hidden_size}));
  return layer_norm(s["layernorm"], vit_encoder(s, c, x), c.layer_norm_eps);
}

Outputs hidden_states(const Scope& root, const AstConfig& c, const Spectrogram& in) { return {ast_model(root, c, in)}; }

Outputs audio_classifier(const Scope& root, const AstConfig& c, const Spectrogram& in) {
  const Scope base = root("audio_spectrogram_transformer", "ASTModel");
  const Value x = ast_model(base, c, in);
  const Value pooled = div(base, add(base, take(base, x, 1, 0), take(base, x, 1, 1)), 2);
  const Scope head = root("classifier", "ASTMLPHead");
  return {vit_classifier(head["dense"], layer_norm(head["layernorm"], pooled, c.layer_norm_eps), c.num_labels)};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const AstConfig c = AstConfig::read(request.family, request.config);
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  return std::vector{InputSpec{"input_values", DataType::float32,
                               static_shape({request.shapes.batch_size, c.max_length, c.num_mel_bins}),
                               ValueRange{-1, 1}}};
}

}  // namespace

const Family audio_spectrogram_transformer{
    .model_type = "audio-spectrogram-transformer",
    .stem = "AST",
    .prefix = "audio_spectrogram_transformer",
    .inputs = {"input_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"audio-classification", "ForAudioClassification", {"logits"}, head<audio_classifier>},
        },
};

}  // namespace mk::models
