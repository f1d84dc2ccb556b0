// MobileNetV2 (Sandler et al. 2018) as transformers' MobileNetV2Model.

#include <fmt/format.h>

#include <array>
#include <string>

#include "models/families.h"
#include "models/image.h"
#include "models/mobile.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr std::array<std::int64_t, 17> widths{16, 24, 24, 32, 32, 32, 64, 64, 64, 64, 96, 96, 96, 160, 160, 160, 320};
constexpr std::array<std::int64_t, 16> strides{2, 1, 2, 1, 1, 2, 1, 1, 1, 1, 1, 1, 2, 1, 1, 1};
constexpr const char* layer_class = "MobileNetV2ConvLayer";

struct MobileNetV2Config {
  std::int64_t num_channels = 3;
  std::int64_t image_size = 224;
  double depth_multiplier = 1;
  std::int64_t depth_divisible_by = 8;
  std::int64_t min_depth = 8;
  double expand_ratio = 6;
  std::int64_t output_stride = 32;
  bool first_layer_is_expansion = true;
  bool finegrained_output = true;
  std::string hidden_act = "relu6";
  bool tf_padding = true;
  double layer_norm_eps = 0.001;
  std::int64_t num_labels = 2;

  static MobileNetV2Config read(const Family&, ConfigReader& fields) {
    MobileNetV2Config c;
    c.num_channels = fields.size("num_channels", c.num_channels);
    c.image_size = fields.size("image_size", c.image_size);
    c.depth_multiplier = fields.number("depth_multiplier", c.depth_multiplier);
    c.depth_divisible_by = fields.size("depth_divisible_by", c.depth_divisible_by);
    c.min_depth = fields.size("min_depth", c.min_depth);
    c.expand_ratio = fields.number("expand_ratio", c.expand_ratio);
    c.output_stride = fields.size("output_stride", c.output_stride);
    c.first_layer_is_expansion = fields.boolean("first_layer_is_expansion", c.first_layer_is_expansion);
    c.finegrained_output = fields.boolean("finegrained_output", c.finegrained_output);
    c.hidden_act = fields.string("hidden_act", c.hidden_act);
    c.tf_padding = fields.boolean("tf_padding", c.tf_padding);
    c.layer_norm_eps = fields.number("layer_norm_eps", c.layer_norm_eps);
    c.num_labels = fields.num_labels();
    if (!(c.depth_multiplier > 0 && c.depth_multiplier < 1000))
      fields.fail(ErrorCode::malformed, fmt::format("depth_multiplier is {}", c.depth_multiplier));
    if (!(c.expand_ratio > 0 && c.expand_ratio < 1000))
      fields.fail(ErrorCode::malformed, fmt::format("expand_ratio is {}", c.expand_ratio));
    return c;
  }
  std::int64_t width(std::int64_t channels) const {
    const std::int64_t wanted = rounded(static_cast<double>(channels) * depth_multiplier);
    return make_divisible(static_cast<double>(wanted), depth_divisible_by, min_depth);
  }
  MobileLayer layer(std::int64_t channels) const {
    return {.channels = channels, .act = hidden_act, .epsilon = layer_norm_eps, .tf_padding = tf_padding};
  }
};

Value stem(const Scope& s, const MobileNetV2Config& c, Value x) {
  const std::int64_t expanded = c.width(32);
  MobileLayer first = c.layer(expanded), deep = first, narrow = c.layer(c.width(widths[0]));
  first.kernel = deep.kernel = 3;
  first.stride = 2;
  deep.groups = expanded;
  narrow.act = {};
  x = mobile_layer(s("first_conv", layer_class), first, x);
  if (!c.first_layer_is_expansion) x = mobile_layer(s("expand_1x1", layer_class), c.layer(expanded), x);
  x = mobile_layer(s("conv_3x3", layer_class), deep, x);
  return mobile_layer(s("reduce_1x1", layer_class), narrow, x);
}

Value model(const Scope& s, const MobileNetV2Config& c, const ImageInputs& in) {
  expect_image(s, in.pixel_values, {.channels = c.num_channels});
  if (c.tf_padding && !expect_fixed_size(s, in.pixel_values, "paddings")) return {};
  Value x = stem(s("conv_stem", "MobileNetV2Stem"), c, in.pixel_values);
  std::int64_t stride = 2, dilation = 1;
  for (std::size_t i = 0; i < strides.size() && x; ++i) {
    InvertedResidual block{.layer_class = layer_class,
                           .channels = c.width(widths[i + 1]),
                           .act = c.hidden_act,
                           .epsilon = c.layer_norm_eps,
                           .tf_padding = c.tf_padding};
    const std::int64_t wanted = rounded(static_cast<double>(x.dim(1).value) * c.expand_ratio);
    block.expanded = make_divisible(static_cast<double>(wanted), c.depth_divisible_by, c.min_depth);
    if (stride == c.output_stride) {  // no smaller: further apart instead
      block.dilation = dilation;
      dilation *= strides[i];
    } else {
      block.stride = strides[i];
      stride *= strides[i];
    }
    x = inverted_residual(s("layer", static_cast<std::int64_t>(i), "MobileNetV2InvertedResidual"), block, x);
  }
  const std::int64_t last = c.finegrained_output && c.depth_multiplier < 1 ? 1280 : c.width(1280);
  return mobile_layer(s("conv_1x1", layer_class), c.layer(last), x);
}

Outputs hidden_states(const Scope& root, const MobileNetV2Config& c, const ImageInputs& in) {
  return {model(root, c, in)};
}

Outputs image_classifier(const Scope& root, const MobileNetV2Config& c, const ImageInputs& in) {
  const Scope base = root("mobilenet_v2", "MobileNetV2Model");
  const Value pooled = flatten(base, global_average_pool(base["pooler"], model(base, c, in)), 1);
  return {c.num_labels > 0 ? linear(root["classifier"], pooled, c.num_labels) : pooled};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const MobileNetV2Config c = MobileNetV2Config::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = std::array{c.image_size, c.image_size}});
}

}  // namespace

const Family mobilenet_v2{
    .model_type = "mobilenet_v2",
    .stem = "MobileNetV2",
    .prefix = "mobilenet_v2",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>},
        },
};

}  // namespace mk::models
