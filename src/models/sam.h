#pragma once
// Kirillov et al. 2023, "Segment Anything", and its successors' common part: prompts are embedded, and a decoder makes
// masks of them and of an image's embedding.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/image.h"

namespace mk::models {

struct SamPromptConfig {
  std::int64_t hidden_size = 256, image_size = 1024, patch_size = 16, mask_input_channels = 16;
  std::int64_t num_point_embeddings = 4, num_pos_feats = 128;
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-6;

  std::int64_t side() const { return image_size / patch_size; }  // of the image's embedding
};

struct SamDecoderConfig {
  std::int64_t hidden_size = 256, mlp_dim = 2048, num_hidden_layers = 2, num_attention_heads = 8;
  std::int64_t attention_downsample_rate = 2, block_downsample_rate = 2;
  std::int64_t num_multimask_outputs = 3, iou_head_depth = 3, iou_head_hidden_dim = 256;
  std::string hidden_act = "relu";
  double layer_norm_eps = 1e-6;
};

// How the mask decoders of the generations differ.
struct SamMaskConfig {
  std::string_view stem;
  bool second = false;  // SAM 2: finer features join in, object scores have a token
  SamPromptConfig prompt;
  SamDecoderConfig decoder;

  static SamMaskConfig read(std::string_view stem, bool second, ConfigReader& fields);
  std::string name(std::string_view suffix) const { return std::string(stem) + std::string(suffix); }
};

// Points [batch, sets, points, 2] in pixels, and labels [batch, sets, points]: 1 and 0 are points in and outside of the
// object, -1 is none at all, -10 is padding. A mask [batch, 1, height, width] of four times the embedding's size counts
// as far as use_mask [batch] says. All may be empty.
struct SamPrompts {
  Value points, labels, mask, use_mask;
};
struct SamMasks {
  Value masks, scores;  // [batch, sets, masks, height, width], [batch, sets, masks]
};
// What the image encoder makes, [batch, hidden_size, height, width]; the finer levels of SAM 2 as they enter the
// decoder.
struct SamImage {
  Value embedding, half, quarter;  // of half and of a quarter of the embedding's pixel size
};
SamMasks sam_masks(const Scope& root, const SamMaskConfig& c, const SamImage& image, const SamPrompts& prompts);

// input_points, input_labels, mask_input and use_mask_input as far as they are among the inputs; usage where their
// shapes do not fit.
SamPrompts read_sam_prompts(const Scope& root, HeadContext& context);
// Theirs, of one set of points in each image: 5 of them unless nb_points_per_image says otherwise, in a number of sets
// that point_batch_size says.
Result<std::vector<InputSpec>> sam_point_specs(const InputRequest& request, const SamPromptConfig& c);
std::vector<InputSpec> sam_mask_specs(const InputRequest& request, const SamPromptConfig& c);
// Features of an image encoder as an input, [batch, channels, side, side]; usage where it has another shape.
InputSpec sam_feature_spec(const InputRequest& request, const char* name, std::int64_t channels, std::int64_t side);
void expect_sam_features(const Scope& root, Value x, const char* name, std::int64_t channels, std::int64_t side);
// Masks of the size of the image, bilinear.
Value sam_full_size(const Scope& root, const SamPromptConfig& c, Value masks);

// [batch, height, width, channels] -> [batch * windows, size, size, channels], zeros after the last row and column;
// no tensor has more than four axes.
Value window_partition(const Scope& s, Value x, std::int64_t size);
// Back, to the height and width before.
Value window_merge(const Scope& s, Value windows, std::int64_t size, std::int64_t height, std::int64_t width);

// nn.LayerNorm over the channels of [batch, channels, height, width].
Value channels_layer_norm(const Scope& s, Value x, double epsilon);

}  // namespace mk::models
