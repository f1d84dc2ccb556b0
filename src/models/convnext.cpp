// ConvNeXt (Liu et al. 2022) and its second version (Woo et al. 2023) as transformers' ConvNextModel and
// ConvNextV2Model.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "models/families.h"
#include "models/image.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr double inner_layer_norm_eps = 1e-6;

struct ConvNextConfig {
  std::string stem;     // of class names: "ConvNext", "ConvNextV2"
  bool second = false;  // Woo et al. 2023: response normalization instead of a scale
  std::int64_t num_channels = 3;
  std::int64_t patch_size = 4;
  std::int64_t num_stages = 4;
  std::vector<std::int64_t> hidden_sizes{96, 192, 384, 768};
  std::vector<std::int64_t> depths{3, 3, 9, 3};
  std::int64_t image_size = 224;
  std::int64_t num_labels = 2;
  std::string hidden_act = "gelu";
  double layer_norm_eps = 1e-12;
  double layer_scale_init_value = 1e-6;

  static ConvNextConfig read(const Family& family, ConfigReader& fields) {
    ConvNextConfig c;
    c.stem = family.stem;
    c.second = family.stem == "ConvNextV2";
    c.num_channels = fields.size("num_channels", c.num_channels);
    c.patch_size = fields.size("patch_size", c.patch_size);
    c.num_stages = fields.size("num_stages", c.num_stages);
    c.hidden_sizes = fields.sizes("hidden_sizes", c.hidden_sizes);
    c.depths = fields.depths("depths", c.depths);
    c.image_size = fields.size("image_size", c.image_size);
    c.num_labels = fields.num_labels();
    c.hidden_act = fields.string("hidden_act", c.hidden_act);
    c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
    c.layer_scale_init_value = fields.number("layer_scale_init_value", c.layer_scale_init_value);
    const auto stages = static_cast<std::size_t>(c.num_stages);
    if (c.hidden_sizes.size() != stages || c.depths.size() != stages)
      fields.fail(ErrorCode::malformed, fmt::format("num_stages is {}, hidden_sizes has {} and depths {}", c.num_stages,
                                                    c.hidden_sizes.size(), c.depths.size()));
    return c;
  }
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
};

// Over the channels of [batch, channels, height, width].
Value channels_first_norm(const Scope& s, Value x) {
  x = transpose(s, x, {0, 2, 3, 1});
  return transpose(s, layer_norm(s, x, inner_layer_norm_eps), {0, 3, 1, 2});
}

// [batch, height, width, channels]: each channel by its share of the whole.
Value response_norm(const Scope& s, Value x) {
  if (!x) return {};
  const std::vector<std::int64_t> dims{1, 1, 1, x.dim(3).value};
  const Value length = reduce(s, "ReduceL2", x, {1, 2}, true);
  const Value share = div(s, length, add(s, reduce_mean(s, length, {-1}, true), 1e-6));
  return add(s, add(s, mul(s, s.weight("weight", dims), mul(s, x, share)), s.weight("bias", dims)), x);
}

Value layer(const Scope& s, const ConvNextConfig& c, Value x) {
  const std::int64_t width = x.dim(1).value;
  Value y = conv2d(s["dwconv"], x, {.channels = width, .kernel = {7, 7}, .padding = {3, 3}, .groups = width});
  y = transpose(s, y, {0, 2, 3, 1});
  y = layer_norm(s("layernorm", c.name("LayerNorm")), y, inner_layer_norm_eps);
  y = linear(s["pwconv1"], y, 4 * width);
  y = activation(s, "act", c.hidden_act, y);
  if (c.second) y = response_norm(s("grn", c.name("GRN")), y);
  y = linear(s["pwconv2"], y, width);
  if (c.layer_scale_init_value > 0 && !c.second) y = mul(s, s.weight("layer_scale_parameter", {width}), y);
  return add(s, x, transpose(s, y, {0, 3, 1, 2}));
}

Value stage(const Scope& s, const ConvNextConfig& c, std::size_t index, Value x) {
  if (index > 0) {
    x = channels_first_norm(s("downsampling_layer", 0, c.name("LayerNorm")), x);
    x = conv2d(s["downsampling_layer.1"], x, {.channels = c.hidden_sizes[index], .kernel = {2, 2}, .stride = {2, 2}});
  }
  for (std::int64_t i = 0; i < c.depths[index]; ++i) x = layer(s("layers", i, c.name("Layer")), c, x);
  return x;
}

Value convnext_model(const Scope& s, const ConvNextConfig& c, const ImageInputs& in) {
  expect_image(s, in.pixel_values, {.channels = c.num_channels});
  const Scope embeddings = s("embeddings", c.name("Embeddings"));
  const std::array patch{c.patch_size, c.patch_size};
  Value x = conv2d(embeddings["patch_embeddings"], in.pixel_values,
                   {.channels = c.hidden_sizes[0], .kernel = patch, .stride = patch});
  x = channels_first_norm(embeddings("layernorm", c.name("LayerNorm")), x);
  const Scope encoder = s("encoder", c.name("Encoder"));
  for (std::size_t i = 0; i < c.depths.size(); ++i)
    x = stage(encoder("stages", static_cast<std::int64_t>(i), c.name("Stage")), c, i, x);
  return x;
}

Outputs hidden_states(const Scope& root, const ConvNextConfig& c, const ImageInputs& in) {
  return {convnext_model(root, c, in)};
}

Outputs image_classifier(const Scope& root, const ConvNextConfig& c, const ImageInputs& in) {
  const Scope base = root(c.second ? "convnextv2" : "convnext", c.name("Model"));
  const Value mean = reduce_mean(base, convnext_model(base, c, in), {-2, -1}, false);
  const Value pooled = layer_norm(base["layernorm"], mean, c.layer_norm_eps);
  return {c.num_labels > 0 ? linear(root["classifier"], pooled, c.num_labels) : pooled};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const ConvNextConfig c = ConvNextConfig::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = std::array{c.image_size, c.image_size}});
}

Family family_of(std::string_view model_type, std::string_view stem) {
  return {
      .model_type = model_type,
      .stem = stem,
      .prefix = model_type,
      .inputs = {"pixel_values"},
      .default_inputs = default_inputs,
      .heads =
          {
              {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
              {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>},
          },
  };
}

}  // namespace

const Family convnext = family_of("convnext", "ConvNext");
const Family convnextv2 = family_of("convnextv2", "ConvNextV2");

}  // namespace mk::models
