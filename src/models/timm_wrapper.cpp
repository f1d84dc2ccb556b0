// transformers' TimmWrapperModel and TimmWrapperForImageClassification: networks of the timm library.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/json.h"
#include "models/families.h"
#include "models/image.h"
#include "models/timm.h"
#include "models/timm_resnet.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

void only_arguments(ConfigReader& arguments, std::initializer_list<std::string_view> known) {
  if (!arguments.config().json().is_object()) return;
  for (const auto& [key, value] : arguments.config().json().items())
    if (std::find(known.begin(), known.end(), key) == known.end() && !value.is_null())
      arguments.fail(ErrorCode::unsupported, fmt::format("model_args has {}, which is not supported", key));
}

namespace {

struct Resnet final : TimmNetwork {
  TimmResNet net;

  const char* class_name() const override { return "ResNet"; }
  Value features(const Scope& s, Value pixels) const override { return net.last_map(s, "", pixels); }
  Value classify(const Scope& s, Value x, std::int64_t classes) const override {
    return linear(s["fc"], reduce_mean(s("global_pool", "SelectAdaptivePool2d"), x, {2, 3}, false), classes);
  }
};

std::unique_ptr<TimmNetwork> timm_resnet(const TimmRequest& request) {
  const auto known = TimmResNet::find(request.name);
  if (!known) return nullptr;
  auto net = std::make_unique<Resnet>();
  net->net = *known;
  only_arguments(request.arguments, {"layers", "in_chans"});
  net->net.depths = request.arguments.depths("layers", net->net.depths);
  if (net->net.depths.size() != 4)
    request.arguments.fail(ErrorCode::malformed,
                           fmt::format("model_args has {} layers, expected 4 numbers", net->net.depths.size()));
  return net;
}

struct TimmConfig {
  std::shared_ptr<const TimmNetwork> network;
  std::int64_t channels = 3, classes = 0;
  std::optional<std::array<std::int64_t, 2>> size;

  static TimmConfig read(const Family&, ConfigReader& fields);
  ImageLimits limits() const {
    if (network && network->fixed_size()) return {channels, network->fixed_size(), true};
    return {channels, size};
  }
};

TimmConfig TimmConfig::read(const Family&, ConfigReader& fields) {
  TimmConfig c;
  const std::string full = fields.string("architecture", "resnet50");
  ConfigReader arguments = fields.section("model_args");
  c.classes = fields.has("num_classes") ? fields.integer("num_classes", 0) : fields.num_labels();
  c.channels = arguments.size("in_chans", 3);
  // The rest of the name says how it was trained.
  const TimmRequest request{full.substr(0, full.find('.')), arguments, c.classes};
  for (const auto make : {timm_resnet, timm_vit, timm_convnext, timm_efficientnet})
    if (!c.network) c.network = make(request);
  if (!c.network)
    fields.fail(ErrorCode::unsupported,
                fmt::format("architecture is \"{}\": of timm's networks only resnet18 to resnet152, vit_*_patch*_*, "
                            "deit_*_patch*_*, convnext_*, convnextv2_* and (tf_)efficientnet_b* are supported",
                            full));
  if (c.classes < 0 || c.classes > std::int64_t{1} << 31)
    fields.fail(ErrorCode::malformed, fmt::format("num_classes is {}", c.classes));
  // Channels, height and width.
  const std::vector<double> input = fields.section("pretrained_cfg").numbers("input_size");
  if (input.size() == 3 && input[1] >= 1 && input[2] >= 1 && input[1] <= 1e6 && input[2] <= 1e6)
    c.size = std::array{static_cast<std::int64_t>(input[1]), static_cast<std::int64_t>(input[2])};
  else
    c.size = std::array<std::int64_t, 2>{224, 224};
  return c;
}

Scope network_of(const Scope& root, const TimmConfig& c) { return root("timm_model", c.network->class_name()); }

Outputs hidden_states(const Scope& root, const TimmConfig& c, const ImageInputs& in) {
  expect_image(root, in.pixel_values, c.limits());
  if (!root.builder().ok()) return {};
  return {c.network->features(network_of(root, c), in.pixel_values)};
}

Outputs image_classifier(const Scope& root, const TimmConfig& c, const ImageInputs& in) {
  if (c.classes < 1)
    root.builder().fail({ErrorCode::malformed, "num_classes is 0: the network has no classifier", "",
                         "Choose the task image-feature-extraction"});
  expect_image(root, in.pixel_values, c.limits());
  if (!root.builder().ok()) return {};
  const Scope s = network_of(root, c);
  return {c.network->classify(s, c.network->features(s, in.pixel_values), c.classes)};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  return image_input_specs(request, TimmConfig::read(request.family, request.config).limits());
}

}  // namespace

// Checkpoints have timm's own names, without "timm_model.", for either class: neither is the other's base model.
const Family timm_wrapper{
    .model_type = "timm_wrapper",
    .stem = "Timm",
    .prefix = "timm_model",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-classification", "WrapperForImageClassification", {"logits"}, head<image_classifier>},
            {"image-feature-extraction", "WrapperModel", {"last_hidden_state"}, head<hidden_states>},
        },
};

}  // namespace mk::models
