// Ravi et al. 2024, "SAM 2": a Hiera (Ryali et al. 2023) with a feature pyramid for an image encoder, and SAM's prompts
// and masks. A video's frame is segmented as an image is; its memory of other frames is no part of these graphs.

#include <fmt/format.h>

#include "models/families.h"
#include "models/sam2_vision.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct Sam2Config {
  Sam2VisionConfig vision;
  SamMaskConfig masks;
  static Sam2Config read(const Family& family, ConfigReader& fields) {
    Sam2Config c{Sam2VisionConfig::read(family, fields), SamMaskConfig::read(family.stem, true, fields)};
    if (c.vision.fpn_hidden_size != c.masks.prompt.hidden_size)
      fields.fail(ErrorCode::malformed,
                  fmt::format("fpn_hidden_size {} of the vision_config is not hidden_size {} of the "
                              "prompt_encoder_config",
                              c.vision.fpn_hidden_size, c.masks.prompt.hidden_size));
    return c;
  }
};

struct WholeInputs {
  ImageInputs image;
  SamPrompts prompts;
  static WholeInputs read(const Scope& root, HeadContext& context) {
    return {ImageInputs::read(root, context), read_sam_prompts(root, context)};
  }
};

struct DecoderInputs {
  Sam2Features image;
  SamPrompts prompts;
  static DecoderInputs read(const Scope& root, HeadContext& context) {
    return {
        {context.input("high_res_features0"), context.input("high_res_features1"), context.input("image_embeddings")},
        read_sam_prompts(root, context)};
  }
};

// The features as the decoder takes them: fewer channels in the finer ones, and a sign that there is no memory.
SamMasks masks_of(const Scope& root, const Sam2Config& c, const Sam2Features& image, const SamPrompts& prompts) {
  const std::int64_t width = c.masks.decoder.hidden_size, side = c.masks.prompt.side();
  expect_sam_features(root, image.coarse, "image_embeddings", width, side);
  expect_sam_features(root, image.middle, "high_res_features1", width, 2 * side);
  expect_sam_features(root, image.fine, "high_res_features0", width, 4 * side);
  if (!root.builder().ok()) return {};
  const Scope s = root("mask_decoder", c.masks.name("MaskDecoder"));
  const auto narrowed = [&](const char* name, Value x, std::int64_t channels) {
    return conv2d(s[name], x, {.channels = channels, .kernel = {1, 1}});
  };
  const Value no_memory = reshape(root, root.weight("no_memory_embedding", {1, 1, width}), {1, width, 1, 1});
  return sam_masks(root, c.masks,
                   {.embedding = add(root, image.coarse, no_memory),
                    .half = narrowed("conv_s1", image.middle, width / 4),
                    .quarter = narrowed("conv_s0", image.fine, width / 8)},
                   prompts);
}

Outputs whole(const Scope& root, const Sam2Config& c, const WholeInputs& in) {
  const Sam2Features image = sam2_vision(root("vision_encoder", "Sam2VisionModel"), c.vision, in.image);
  const SamMasks masks = masks_of(root, c, image, in.prompts);
  return {masks.masks, masks.scores};
}

Outputs image_encoder(const Scope& root, const Sam2VisionConfig& c, const ImageInputs& in) {
  const Sam2Features image = sam2_vision(root("vision_encoder", "Sam2VisionModel"), c, in);
  return {image.coarse, image.fine, image.middle};
}

Outputs image_encoder_alone(const Scope& root, const Sam2VisionConfig& c, const ImageInputs& in) {
  const Sam2Features image = sam2_vision(root, c, in);
  return {image.coarse, image.fine, image.middle};
}

Outputs mask_decoder(const Scope& root, const Sam2Config& c, const DecoderInputs& in) {
  const SamMasks masks = masks_of(root, c, in.image, in.prompts);
  return {sam_full_size(root, c.masks.prompt, masks.masks), masks.scores, masks.masks};
}

Result<std::vector<InputSpec>> encoder_inputs(InputRequest& request) {
  return image_input_specs(request, Sam2VisionConfig::read(request.family, request.config).limits());
}

Result<std::vector<InputSpec>> whole_inputs(InputRequest& request) {
  const Sam2Config c = Sam2Config::read(request.family, request.config);
  const std::int64_t size = c.masks.prompt.image_size;
  MK_TRY(std::vector<InputSpec> inputs,
         image_input_specs(request, {c.vision.num_channels, std::array{size, size}, true}));
  MK_TRY(const std::vector<InputSpec> points, sam_point_specs(request, c.masks.prompt));
  inputs.insert(inputs.end(), points.begin(), points.end());
  return inputs;
}

Result<std::vector<InputSpec>> decoder_inputs(InputRequest& request) {
  const Sam2Config c = Sam2Config::read(request.family, request.config);
  MK_TRY(std::vector<InputSpec> inputs, sam_point_specs(request, c.masks.prompt));
  const std::int64_t width = c.masks.prompt.hidden_size, side = c.masks.prompt.side();
  inputs.push_back(sam_feature_spec(request, "image_embeddings", width, side));
  const std::vector<InputSpec> mask = sam_mask_specs(request, c.masks.prompt);
  inputs.insert(inputs.end(), mask.begin(), mask.end());
  inputs.push_back(sam_feature_spec(request, "high_res_features0", width, 4 * side));
  inputs.push_back(sam_feature_spec(request, "high_res_features1", width, 2 * side));
  return inputs;
}

std::vector<std::string_view> all_inputs() {
  return {"pixel_values", "input_points",   "input_labels",       "image_embeddings",
          "mask_input",   "use_mask_input", "high_res_features0", "high_res_features1"};
}

std::vector<Head> heads() {
  return {
      {"mask-generation", "Model", {"masks", "iou_scores", "low_res_masks"}, head<mask_decoder>, decoder_inputs},
      {"image-segmentation", "Model", {"masks", "iou_scores"}, head<whole>},
      {"feature-extraction",
       "Model",
       {"image_embeddings", "high_res_features1", "high_res_features2"},
       head<image_encoder>,
       encoder_inputs},
  };
}

}  // namespace

const Family sam2{
    .model_type = "sam2",
    .stem = "Sam2",
    .prefix = "sam2",
    .inputs = all_inputs(),
    .default_inputs = whole_inputs,
    .heads = heads(),
};

const Family sam2_video{
    .model_type = "sam2_video",
    .stem = "Sam2Video",
    .prefix = "sam2_video",
    .inputs = all_inputs(),
    .default_inputs = whole_inputs,
    .heads = heads(),
};

const Family sam2_vision_model{
    .model_type = "sam2_vision_model",
    .stem = "Sam2Vision",
    .prefix = "vision_encoder",
    .inputs = {"pixel_values"},
    .default_inputs = encoder_inputs,
    .heads = {{"image-feature-extraction",
               "Model",
               {"image_embeddings", "high_res_features1", "high_res_features2"},
               head<image_encoder_alone>}},
};

}  // namespace mk::models
