// Depth Anything (Yang et al. 2024) as transformers' DepthAnythingForDepthEstimation: DINOv2 and DPT's neck.

#include <fmt/format.h>

#include "models/dinov2.h"
#include "models/dpt.h"
#include "models/families.h"
#include "models/image.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct DepthAnythingConfig {
  Dinov2Config backbone;
  DptNeck neck;
  std::int64_t patch_size = 14;
  std::int64_t head_hidden_size = 32;
  bool metric = false;
  double max_depth = 1;

  static DepthAnythingConfig read(const Family&, ConfigReader& fields) {
    DepthAnythingConfig c;
    const bool given = fields.has("backbone_config");
    ConfigReader backbone = fields.section("backbone_config");
    const std::string type = backbone.config().model_type();
    if (given && type != "dinov2")
      fields.fail(ErrorCode::unsupported,
                  fmt::format("backbone_config has the model type \"{}\", expected dinov2", type));
    if (fields.boolean("use_timm_backbone", false) || (fields.has("backbone") && !given))
      fields.fail(ErrorCode::unsupported, "use_timm_backbone and backbone are not supported; give a backbone_config");
    c.backbone = Dinov2Config::read(backbone, false);
    if (!given) {
      c.backbone.image_size = {518, 518};
      c.backbone.hidden_size = 384, c.backbone.num_attention_heads = 6;
      c.backbone.stages = {9, 10, 11, 12};
      c.backbone.reshape_hidden_states = false;
    }
    if (c.backbone.reshape_hidden_states)
      fields.fail(ErrorCode::unsupported,
                  "backbone_config has reshape_hidden_states true, which Depth Anything cannot take");
    c.neck.stem = "DepthAnything";
    c.neck.hidden_sizes = {48, 96, 192, 384};
    c.neck.fusion_hidden_size = 64;
    c.neck.to_next = true;
    c.neck.read(fields);
    c.patch_size = fields.size("patch_size", c.patch_size);
    if (c.backbone.patch_size != std::array{c.patch_size, c.patch_size})
      fields.fail(ErrorCode::malformed, fmt::format("patch_size is {}, and the backbone's is another", c.patch_size));
    c.head_hidden_size = fields.size("head_hidden_size", c.head_hidden_size);
    const std::string kind = fields.string("depth_estimation_type", "relative");
    c.metric = kind == "metric";
    if (!c.metric && kind != "relative")
      fields.fail(ErrorCode::malformed,
                  fmt::format("depth_estimation_type is \"{}\", expected relative or metric", kind));
    c.max_depth = fields.number("max_depth", 1);
    return c;
  }
};

Outputs depth(const Scope& root, const DepthAnythingConfig& c, const ImageInputs& in) {
  expect_image(root, in.pixel_values, {.channels = c.backbone.num_channels});
  const auto grid = patch_grid(root, in.pixel_values, c.backbone.patch_size);
  if (!grid) return {{}};
  FeatureMaps maps = dinov2_backbone(root("backbone", "Dinov2Backbone"), c.backbone, in.pixel_values);
  Value x = dpt_neck(root, c.neck, std::move(maps.maps), *grid);
  const Scope s = root("head", "DepthAnythingDepthEstimationHead");
  const std::int64_t width = std::max<std::int64_t>(c.neck.fusion_hidden_size / 2, 1);
  x = conv2d(s["conv1"], x, {.channels = width, .kernel = {3, 3}, .padding = {1, 1}});
  x = resize_aligned(s, x, {(*grid)[0] * c.patch_size, (*grid)[1] * c.patch_size});
  x = conv2d(s["conv2"], x, {.channels = c.head_hidden_size, .kernel = {3, 3}, .padding = {1, 1}});
  x = conv2d(s["conv3"], unary(s["activation1"], "Relu", x), {.channels = 1, .kernel = {1, 1}});
  x = unary(s["activation2"], c.metric ? "Sigmoid" : "Relu", x);
  if (c.max_depth != 1) x = mul(s, x, c.max_depth);
  return {take(s, x, 1, 0)};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const DepthAnythingConfig c = DepthAnythingConfig::read(request.family, request.config);
  return image_input_specs(request, {c.backbone.num_channels, c.backbone.image_size, false});
}

}  // namespace

const Family depth_anything{
    .model_type = "depth_anything",
    .stem = "DepthAnything",
    .prefix = "depth_anything",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads = {{"depth-estimation", "ForDepthEstimation", {"predicted_depth"}, head<depth>}},
};

}  // namespace mk::models
