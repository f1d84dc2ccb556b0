// VisionEncoderDecoderModel: an encoder of images of any family that has one, and a decoder of text (cross_decoder.h).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "models/cross_decoder.h"
#include "models/families.h"
#include "models/image.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr const CrossDecoder* cross_decoders[] = {&bert_decoder,       &camembert_decoder, &gpt2_decoder,
                                                  &mbart_decoder,      &roberta_decoder,   &trocr_decoder,
                                                  &xlm_roberta_decoder};

constexpr std::string_view image_task = "image-feature-extraction";

// Of the two sections of the configuration, and what their types stand for.
struct Parts {
  ConfigReader encoder, decoder;
  const Family* family = nullptr;
  const Head* head = nullptr;  // of the family, that gives the encoder's states
  const CrossDecoder* kind = nullptr;
};

std::string type_of(ConfigReader& fields) { return fields.string("model_type", ""); }

const Family* family_of(std::string_view model_type) {
  const Family* found = nullptr;
#define MK_MATCH(name) \
  if (models::name.model_type == model_type) found = &models::name;
  MK_FAMILIES(MK_MATCH)
#undef MK_MATCH
  return found;
}

Parts parts_of(ConfigReader& fields) {
  Parts parts{fields.section("encoder"), fields.section("decoder")};
  const std::string encoder = type_of(parts.encoder), decoder = type_of(parts.decoder);
  parts.family = family_of(encoder);
  if (parts.family) {
    const auto& heads = parts.family->heads;
    const auto head = std::ranges::find_if(heads, [](const Head& h) { return h.task == image_task && h.is_base(); });
    if (head != heads.end()) parts.head = &*head;
  }
  if (!parts.head)
    fields.fail(ErrorCode::unsupported, fmt::format("an encoder of type \"{}\" is not supported", encoder),
                "encoder.model_type names an encoder of images, such as vit or deit");
  parts.kind = find_cross_decoder(decoder);
  if (!parts.kind)
    fields.fail(ErrorCode::unsupported, fmt::format("a decoder of type \"{}\" is not supported", decoder),
                fmt::format("decoder.model_type can be {}", cross_decoder_names()));
  return parts;
}

Outputs encoder_states(const Scope& root, HeadContext& context) {
  Parts parts = parts_of(context.config);
  if (!context.config.status()) {
    root.builder().fail(context.config.status().error());
    return {};
  }
  HeadContext inner{*parts.family, image_task, parts.encoder, context.inputs};
  Outputs outputs = parts.head->build(root("encoder", fmt::format("{}Model", parts.family->stem)), inner);
  outputs.resize(std::min<std::size_t>(outputs.size(), 1));
  return outputs;
}

Outputs decoder_step(const Scope& root, HeadContext& context) {
  Parts parts = parts_of(context.config);
  const StepInputs in = StepInputs::read(root, context);
  const bool projected = !parts.decoder.has("cross_attention_hidden_size");
  const std::int64_t width = parts.kind ? parts.kind->width(parts.decoder) : 0;
  if (!context.config.status()) root.builder().fail(context.config.status().error());
  if (!root.builder().ok()) return {};
  Value states = in.encoder_states;
  if (projected && states.dim(2).is_known() && states.dim(2).value != width)
    states = linear(root["enc_to_dec_proj"], states, width);
  return parts.kind->step(root, parts.decoder, in, states);
}

Result<std::vector<InputSpec>> image_inputs(InputRequest& request) {
  Parts parts = parts_of(request.config);
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  InputRequest inner{*parts.family, *parts.head, parts.encoder, image_task, request.shapes, request.preprocessor};
  return (parts.head->inputs ? parts.head->inputs : parts.family->default_inputs)(inner);
}

// The encoder's states for an image: a row per patch, of stages that halve the image the last one's, and the tokens in
// front of them.
struct States {
  std::int64_t length = 0, width = 0;
};
States states_of(ConfigReader& encoder, const InputSpec& image) {
  const std::string type = type_of(encoder);
  const std::array<std::int64_t, 2> patch = encoder.pair("patch_size", type.starts_with("swin") ? 4 : 16);
  std::int64_t rows = image.shape[2].value / patch[0], columns = image.shape[3].value / patch[1];
  if (type.starts_with("swin")) {
    const std::vector<std::int64_t> depths = encoder.depths("depths", {2, 2, 6, 2});
    std::int64_t width = encoder.size("embed_dim", 96);
    for (std::size_t stage = 1; stage < depths.size(); ++stage) {
      rows = (rows + 1) / 2, columns = (columns + 1) / 2;
      width *= 2;
    }
    return {rows * columns, width};
  }
  const std::int64_t tokens =
      type == "deit" ? 2 : 1 + (type.ends_with("registers") ? encoder.count("num_register_tokens", 4) : 0);
  return {rows * columns + tokens, encoder.size("hidden_size", 768)};
}

Result<std::vector<InputSpec>> step_inputs(InputRequest& request) {
  Parts parts = parts_of(request.config);
  MK_TRY(const std::vector<InputSpec> images, image_inputs(request));
  if (images.empty() || images.front().shape.size() != 4 || !images.front().shape[2].is_known() ||
      !images.front().shape[3].is_known())
    return fail(ErrorCode::unsupported, "the encoder does not take images of a fixed size",
                request.config.config().name());
  const States states = states_of(parts.encoder, images.front());
  StepLimits limits = parts.kind->limits(parts.decoder);
  limits.states = states.length;
  limits.states_width = states.width;
  limits.encoder_mask = false;
  return step_input_specs(request, limits);
}

std::int64_t decoder_layers(ConfigReader& fields) {
  Parts parts = parts_of(fields);
  return parts.kind ? parts.kind->limits(parts.decoder).layers : 0;
}

}  // namespace

const CrossDecoder* find_cross_decoder(std::string_view model_type) {
  for (const CrossDecoder* kind : cross_decoders)
    if (kind->model_type == model_type) return kind;
  return nullptr;
}

std::string cross_decoder_names() {
  std::vector<std::string_view> names;
  for (const CrossDecoder* kind : cross_decoders) names.push_back(kind->model_type);
  return fmt::format("{}", fmt::join(names, ", "));
}

const Family vision_encoder_decoder{
    .model_type = "vision-encoder-decoder",
    .stem = "VisionEncoderDecoder",
    .prefix = "vision_encoder_decoder",
    .inputs = {"pixel_values", "decoder_input_ids", "encoder_hidden_states", "decoder_attention_mask", "cache_position",
               "past_{}_key", "past_{}_value"},
    .default_inputs = image_inputs,
    .heads = {{image_task, "Model", {"encoder_hidden_states"}, encoder_states},
              {decoder_task, "Model", step_output_names(), decoder_step, step_inputs}},
    .composites = pair_of({"image-to-text"}, "Model", image_task),
    .cached_layers = decoder_layers,
};

}  // namespace mk::models
