// ResNet (He et al. 2015) as transformers' ResNetModel.

#include <fmt/format.h>

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

struct ResNetConfig {
  std::int64_t num_channels = 3;
  std::int64_t embedding_size = 64;
  std::vector<std::int64_t> hidden_sizes{256, 512, 1024, 2048};
  std::vector<std::int64_t> depths{3, 4, 6, 3};
  std::int64_t num_labels = 2;
  std::string hidden_act = "relu";
  bool bottleneck = true;
  bool downsample_in_first_stage = false;
  bool downsample_in_bottleneck = false;

  static ResNetConfig read(const Family&, ConfigReader& fields) {
    ResNetConfig c;
    c.num_channels = fields.size("num_channels", c.num_channels);
    c.embedding_size = fields.size("embedding_size", c.embedding_size);
    c.hidden_sizes = fields.sizes("hidden_sizes", c.hidden_sizes);
    c.depths = fields.depths("depths", c.depths);
    c.num_labels = fields.num_labels();
    c.hidden_act = fields.string("hidden_act", c.hidden_act);
    c.downsample_in_first_stage = fields.boolean("downsample_in_first_stage", c.downsample_in_first_stage);
    c.downsample_in_bottleneck = fields.boolean("downsample_in_bottleneck", c.downsample_in_bottleneck);
    const std::string layer_type = fields.string("layer_type", "bottleneck");
    c.bottleneck = layer_type == "bottleneck";
    if (!c.bottleneck && layer_type != "basic")
      fields.fail(ErrorCode::malformed, fmt::format("layer_type is \"{}\", expected basic or bottleneck", layer_type));
    if (c.depths.size() != c.hidden_sizes.size())
      fields.fail(ErrorCode::malformed,
                  fmt::format("depths has {} stages and hidden_sizes {}", c.depths.size(), c.hidden_sizes.size()));
    return c;
  }
};

// Convolution without bias, batch norm, and an activation unless it is empty.
Value conv_layer(const Scope& s, Value x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                 std::string_view act = "relu") {
  x = conv2d(s["convolution"], x,
             {.channels = channels,
              .kernel = {kernel, kernel},
              .stride = {stride, stride},
              .padding = {kernel / 2, kernel / 2},
              .bias = false});
  x = batch_norm(s["normalization"], x);
  return act.empty() ? x : activation(s, "activation", act, x);
}

Value shortcut(const Scope& s, Value x, std::int64_t channels, std::int64_t stride) {
  x = conv2d(s["convolution"], x, {.channels = channels, .kernel = {1, 1}, .stride = {stride, stride}, .bias = false});
  return batch_norm(s["normalization"], x);
}

Value layer(const Scope& s, const ResNetConfig& c, Value x, std::int64_t channels, std::int64_t stride) {
  constexpr std::int64_t reduction = 4;
  const auto part = [&](std::int64_t index) { return s("layer", index, "ResNetConvLayer"); };
  Value y = x;
  if (c.bottleneck) {
    const std::int64_t first = c.downsample_in_bottleneck ? stride : 1;
    y = conv_layer(part(0), y, channels / reduction, 1, first);
    y = conv_layer(part(1), y, channels / reduction, 3, stride / first);
    y = conv_layer(part(2), y, channels, 1, 1, "");
  } else {
    y = conv_layer(part(0), y, channels, 3, stride);
    y = conv_layer(part(1), y, channels, 3, 1, "");
  }
  if (x.dim(1).value != channels || stride != 1) x = shortcut(s("shortcut", "ResNetShortCut"), x, channels, stride);
  return activation(s, "activation", c.hidden_act, add(s, y, x));
}

Value resnet_model(const Scope& s, const ResNetConfig& c, const ImageInputs& in) {
  expect_image(s, in.pixel_values, {.channels = c.num_channels});
  const Scope stem = s("embedder", "ResNetEmbeddings");
  Value x = conv_layer(stem("embedder", "ResNetConvLayer"), in.pixel_values, c.embedding_size, 7, 2, c.hidden_act);
  x = max_pool2d(stem["pooler"], x, 3, 2, 1);

  const Scope encoder = s("encoder", "ResNetEncoder");
  const char* layer_class = c.bottleneck ? "ResNetBottleNeckLayer" : "ResNetBasicLayer";
  for (std::size_t i = 0; i < c.depths.size(); ++i) {
    const Scope stage = encoder("stages", static_cast<std::int64_t>(i), "ResNetStage");
    const std::int64_t stride = i > 0 || c.downsample_in_first_stage ? 2 : 1;
    for (std::int64_t j = 0; j < c.depths[i]; ++j)
      x = layer(stage("layers", j, layer_class), c, x, c.hidden_sizes[i], j == 0 ? stride : 1);
  }
  return x;
}

Outputs hidden_states(const Scope& root, const ResNetConfig& c, const ImageInputs& in) {
  return {resnet_model(root, c, in)};
}

Outputs image_classifier(const Scope& root, const ResNetConfig& c, const ImageInputs& in) {
  const Scope base = root("resnet", "ResNetModel");
  const Value pooled = global_average_pool(base["pooler"], resnet_model(base, c, in));
  const Value x = flatten(root["classifier.0"], pooled, 1);
  return {c.num_labels > 0 ? linear(root["classifier.1"], x, c.num_labels) : x};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const ResNetConfig c = ResNetConfig::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels});
}

}  // namespace

const Family resnet{
    .model_type = "resnet",
    .stem = "ResNet",
    .prefix = "resnet",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"image-classification", "ForImageClassification", {"logits"}, head<image_classifier>},
        },
};

}  // namespace mk::models
