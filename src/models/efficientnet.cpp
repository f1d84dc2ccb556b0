// EfficientNet (Tan and Le 2019) as transformers' EfficientNetModel.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/families.h"
#include "models/image.h"
#include "models/mobile.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct EfficientNetConfig {
  std::int64_t num_channels = 3;
  std::int64_t image_size = 600;
  double width_coefficient = 2;
  double depth_coefficient = 3.1;
  std::int64_t depth_divisor = 8;
  std::vector<std::int64_t> kernel_sizes{3, 3, 5, 3, 5, 5, 3};
  std::vector<std::int64_t> in_channels{32, 16, 24, 40, 80, 112, 192};
  std::vector<std::int64_t> out_channels{16, 24, 40, 80, 112, 192, 320};
  std::vector<std::int64_t> depthwise_padding;  // blocks that are padded the same on both sides
  std::vector<std::int64_t> strides{1, 2, 2, 2, 1, 2, 1};
  std::vector<std::int64_t> num_block_repeats{1, 2, 2, 3, 3, 4, 1};
  std::vector<std::int64_t> expand_ratios{1, 6, 6, 6, 6, 6, 6};
  double squeeze_expansion_ratio = 0.25;
  std::string hidden_act = "swish";
  std::int64_t hidden_dim = 2560;
  std::string pooling_type = "mean";
  double batch_norm_eps = 0.001;
  std::int64_t num_labels = 2;

  static EfficientNetConfig read(const Family&, ConfigReader& fields) {
    EfficientNetConfig c;
    c.num_channels = fields.size("num_channels", c.num_channels);
    c.image_size = fields.size("image_size", c.image_size);
    c.width_coefficient = fields.number("width_coefficient", c.width_coefficient);
    c.depth_coefficient = fields.number("depth_coefficient", c.depth_coefficient);
    c.depth_divisor = fields.size("depth_divisor", c.depth_divisor);
    c.kernel_sizes = fields.sizes("kernel_sizes", c.kernel_sizes);
    c.in_channels = fields.sizes("in_channels", c.in_channels);
    c.out_channels = fields.sizes("out_channels", c.out_channels);
    c.depthwise_padding = fields.indices("depthwise_padding", {});
    c.strides = fields.sizes("strides", c.strides);
    c.num_block_repeats = fields.depths("num_block_repeats", c.num_block_repeats);
    c.expand_ratios = fields.sizes("expand_ratios", c.expand_ratios);
    c.squeeze_expansion_ratio = fields.number("squeeze_expansion_ratio", c.squeeze_expansion_ratio);
    c.hidden_act = fields.string("hidden_act", c.hidden_act);
    c.hidden_dim = fields.size("hidden_dim", c.hidden_dim);
    c.pooling_type = fields.string("pooling_type", c.pooling_type);
    c.batch_norm_eps = fields.number("batch_norm_eps", c.batch_norm_eps);
    c.num_labels = fields.num_labels();
    const std::size_t stages = c.in_channels.size();
    for (const auto* list : {&c.kernel_sizes, &c.out_channels, &c.strides, &c.num_block_repeats, &c.expand_ratios})
      if (list->size() < stages)
        fields.fail(ErrorCode::malformed,
                    fmt::format("in_channels has {} stages, and another list has {}", stages, list->size()));
    if (!(c.depth_coefficient > 0 && c.depth_coefficient < 100) ||
        !(c.width_coefficient > 0 && c.width_coefficient < 100))
      fields.fail(ErrorCode::malformed, fmt::format("depth_coefficient is {} and width_coefficient {}",
                                                    c.depth_coefficient, c.width_coefficient));
    if (c.pooling_type != "mean" && c.pooling_type != "max")
      fields.fail(ErrorCode::malformed, fmt::format("pooling_type is {}, expected mean or max", c.pooling_type));
    return c;
  }
  std::int64_t width(std::int64_t channels) const {
    return make_divisible(static_cast<double>(channels) * width_coefficient, depth_divisor, depth_divisor);
  }
  std::int64_t repeats(std::int64_t count) const {
    return static_cast<std::int64_t>(std::ceil(depth_coefficient * static_cast<double>(count)));
  }
};

struct Block {
  std::int64_t in = 0, out = 0, stride = 1, expand = 1, kernel = 3;
  bool first = false;   // of its stage: no way around it
  bool adjust = false;  // one row and column less in front, for images of even size
};

Value squeeze_excite(const Scope& s, const EfficientNetConfig& c, const Block& b, Value x) {
  if (!x) return {};
  const std::int64_t width = x.dim(1).value;
  const auto narrow = static_cast<std::int64_t>(static_cast<double>(b.in) * c.squeeze_expansion_ratio);
  Value y = global_average_pool(s["squeeze"], x);
  y = conv2d(s["reduce"], y, {.channels = std::max<std::int64_t>(1, narrow), .kernel = {1, 1}});
  y = conv2d(s["expand"], activation(s, "act_reduce", c.hidden_act, y), {.channels = width, .kernel = {1, 1}});
  return mul(s, x, activation(s, "act_expand", "sigmoid", y));
}

Value block(const Scope& s, const EfficientNetConfig& c, const Block& b, Value x) {
  const std::int64_t width = b.in * b.expand;
  Value y = x;
  if (b.expand != 1) {
    const Scope e = s("expansion", "EfficientNetExpansionLayer");
    y = conv2d(e["expand_conv"], y, {.channels = width, .kernel = {1, 1}, .bias = false});
    y = activation(e, "expand_act", c.hidden_act, batch_norm(e["expand_bn"], y, c.batch_norm_eps));
  }
  const Scope d = s("depthwise_conv", "EfficientNetDepthwiseLayer");
  Convolution deep{.channels = width,
                   .kernel = {b.kernel, b.kernel},
                   .stride = {b.stride, b.stride},
                   .groups = width,
                   .bias = false};
  if (b.stride == 2) {
    const std::int64_t half = b.kernel / 2, before = b.adjust ? half - 1 : half;
    deep.padding = {before, before};
    deep.padding_after = {half, half};
  } else {
    const std::int64_t before = (b.kernel - 1) / 2, after = b.kernel - 1 - before;
    deep.padding = {before, before};
    deep.padding_after = {after, after};
  }
  y = conv2d(d("depthwise_conv", "EfficientNetDepthwiseConv2d"), y, deep);
  y = activation(d, "depthwise_act", c.hidden_act, batch_norm(d["depthwise_norm"], y, c.batch_norm_eps));
  y = squeeze_excite(s("squeeze_excite", "EfficientNetSqueezeExciteLayer"), c, b, y);
  const Scope p = s("projection", "EfficientNetFinalBlockLayer");
  y = conv2d(p["project_conv"], y, {.channels = b.out, .kernel = {1, 1}, .bias = false});
  y = batch_norm(p["project_bn"], y, c.batch_norm_eps);
  return b.stride == 1 && !b.first ? add(p, y, x) : y;
}

Value model(const Scope& s, const EfficientNetConfig& c, const ImageInputs& in) {
  expect_image(s, in.pixel_values, {.channels = c.num_channels});
  const Scope e = s("embeddings", "EfficientNetEmbeddings"), encoder = s("encoder", "EfficientNetEncoder");
  Value x = conv2d(e["convolution"], in.pixel_values,
                   {.channels = c.width(32),
                    .kernel = {3, 3},
                    .stride = {2, 2},
                    .padding_after = std::array<std::int64_t, 2>{1, 1},
                    .bias = false});
  x = activation(e, "activation", c.hidden_act, batch_norm(e["batchnorm"], x, c.batch_norm_eps));
  std::int64_t index = 0;
  for (std::size_t i = 0; i < c.in_channels.size(); ++i) {
    const std::int64_t out = c.width(c.out_channels[i]);
    for (std::int64_t j = 0; j < c.repeats(c.num_block_repeats[i]) && x; ++j, ++index) {
      const bool same = std::ranges::find(c.depthwise_padding, index) != c.depthwise_padding.end();
      x = block(encoder("blocks", index, "EfficientNetBlock"), c,
                {j > 0 ? out : c.width(c.in_channels[i]), out, j > 0 ? 1 : c.strides[i], c.expand_ratios[i],
                 c.kernel_sizes[i], j == 0, !same},
                x);
    }
  }
  x = conv2d(encoder["top_conv"], x, {.channels = c.width(1280), .kernel = {1, 1}, .bias = false});
  return activation(encoder, "top_activation", c.hidden_act, batch_norm(encoder["top_bn"], x, c.batch_norm_eps));
}

Outputs hidden_states(const Scope& root, const EfficientNetConfig& c, const ImageInputs& in) {
  return {model(root, c, in)};
}

// The pooling window is larger than any map, so that it takes all of it.
Outputs image_classifier(const Scope& root, const EfficientNetConfig& c, const ImageInputs& in) {
  const Scope base = root("efficientnet", "EfficientNetModel");
  const Value x = model(base, c, in);
  const Value pooled =
      c.pooling_type == "mean" ? reduce_mean(base, x, {2, 3}, false) : reduce(base, "ReduceMax", x, {2, 3}, false);
  return {c.num_labels > 0 ? linear(root["classifier"], pooled, c.num_labels) : pooled};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const EfficientNetConfig c = EfficientNetConfig::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = std::array{c.image_size, c.image_size}});
}

}  // namespace

const Family efficientnet{
    .model_type = "efficientnet",
    .stem = "EfficientNet",
    .prefix = "efficientnet",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>},
        },
};

}  // namespace mk::models
