#include "models/resnet.h"

#include <fmt/format.h>

#include "models/families.h"
#include "models/image.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

ResNetConfig ResNetConfig::read(ConfigReader& fields) {
  ResNetConfig c;
  c.deep = fields.config().model_type() == "rt_detr_resnet";
  if (c.deep) c.stem = "RTDetrResNet";
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
  if (c.deep && c.embedding_size < 2)
    fields.fail(ErrorCode::malformed, fmt::format("embedding_size is {}, expected 2 or more", c.embedding_size));
  c.stages = backbone_stages(fields, static_cast<std::int64_t>(c.depths.size()));
  return c;
}

namespace {

Value norm(const Scope& s, const ResNetConfig& c, Value x) {
  return batch_norm(c.norm_class.empty() ? s["normalization"] : s("normalization", c.norm_class), x);
}

// Convolution without bias, batch norm, and an activation unless it is empty.
Value conv_layer(const Scope& s, const ResNetConfig& c, Value x, std::int64_t channels, std::int64_t kernel,
                 std::int64_t stride, std::string_view act = "relu") {
  x = conv2d(s["convolution"], x,
             {.channels = channels,
              .kernel = {kernel, kernel},
              .stride = {stride, stride},
              .padding = {kernel / 2, kernel / 2},
              .bias = false});
  x = norm(s, c, x);
  return act.empty() ? x : activation(s, "activation", act, x);
}

Value shortcut(const Scope& s, const ResNetConfig& c, Value x, std::int64_t channels, std::int64_t stride) {
  x = conv2d(s["convolution"], x, {.channels = channels, .kernel = {1, 1}, .stride = {stride, stride}, .bias = false});
  return norm(s, c, x);
}

// What is added to a layer's result. ResNet-D pools where a bottleneck has a stride, and where a basic layer has other
// channels, whatever its stride.
Value residual(const Scope& s, const ResNetConfig& c, Value x, std::int64_t channels, std::int64_t stride, bool first) {
  const bool wider = x.dim(1).value != channels;
  const std::string cut = c.name("ShortCut");
  if (!c.deep) return wider || stride != 1 ? shortcut(s("shortcut", cut), c, x, channels, stride) : x;
  if (c.bottleneck ? stride == 2 : wider && first)
    return shortcut(s("shortcut", 1, cut), c, average_pool2d(s["shortcut.0"], x, 2), channels, 1);
  return first && (!c.bottleneck || wider) ? shortcut(s("shortcut", cut), c, x, channels, stride) : x;
}

Value layer(const Scope& s, const ResNetConfig& c, Value x, std::int64_t channels, std::int64_t stride, bool first) {
  constexpr std::int64_t reduction = 4;
  const auto part = [&](std::int64_t index) { return s("layer", index, c.name("ConvLayer")); };
  Value y = x;
  if (c.bottleneck) {
    const std::int64_t at_once = c.downsample_in_bottleneck ? stride : 1;
    y = conv_layer(part(0), c, y, channels / reduction, 1, at_once);
    y = conv_layer(part(1), c, y, channels / reduction, 3, stride / at_once);
    y = conv_layer(part(2), c, y, channels, 1, 1, "");
  } else {
    y = conv_layer(part(0), c, y, channels, 3, stride);
    y = conv_layer(part(1), c, y, channels, 3, 1, "");
  }
  return activation(s, "activation", c.hidden_act, add(s, y, residual(s, c, x, channels, stride, first)));
}

Value stem(const Scope& s, const ResNetConfig& c, Value x) {
  const std::string conv = c.name("ConvLayer");
  if (c.deep) {
    const std::int64_t half = c.embedding_size / 2;
    x = conv_layer(s("embedder", 0, conv), c, x, half, 3, 2, c.hidden_act);
    x = conv_layer(s("embedder", 1, conv), c, x, half, 3, 1, c.hidden_act);
    x = conv_layer(s("embedder", 2, conv), c, x, c.embedding_size, 3, 1, c.hidden_act);
  } else {
    x = conv_layer(s("embedder", conv), c, x, c.embedding_size, 7, 2, c.hidden_act);
  }
  return max_pool2d(s["pooler"], x, 3, 2, 1);
}

}  // namespace

Value resnet_encoder(const Scope& s, const ResNetConfig& c, Value pixels, std::vector<Value>* states) {
  expect_image(s, pixels, {.channels = c.num_channels});
  Value x = stem(s("embedder", c.name("Embeddings")), c, pixels);
  if (states) states->push_back(x);
  const Scope encoder = s("encoder", c.name("Encoder"));
  const std::string layer_class = c.name(c.bottleneck ? "BottleNeckLayer" : "BasicLayer");
  for (std::size_t i = 0; i < c.depths.size(); ++i) {
    const Scope stage = encoder("stages", static_cast<std::int64_t>(i), c.name("Stage"));
    const std::int64_t stride = i > 0 || c.downsample_in_first_stage ? 2 : 1;
    for (std::int64_t j = 0; j < c.depths[i]; ++j)
      x = layer(stage("layers", j, layer_class), c, x, c.hidden_sizes[i], j == 0 ? stride : 1, j == 0);
    if (states) states->push_back(x);
  }
  return x;
}

FeatureMaps resnet_backbone(const Scope& s, const ResNetConfig& c, Value pixels) {
  std::vector<Value> states;
  resnet_encoder(s, c, pixels, &states);
  FeatureMaps maps{.maps = {}, .stages = c.stages};
  for (const std::int64_t stage : c.stages) maps.maps.push_back(states[static_cast<std::size_t>(stage)]);
  return maps;
}

namespace {

Outputs hidden_states(const Scope& root, const ResNetConfig& c, const ImageInputs& in) {
  return {resnet_encoder(root, c, in.pixel_values)};
}

Outputs image_classifier(const Scope& root, const ResNetConfig& c, const ImageInputs& in) {
  const Scope base = root("resnet", "ResNetModel");
  const Value pooled = global_average_pool(base["pooler"], resnet_encoder(base, c, in.pixel_values));
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
