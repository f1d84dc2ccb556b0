// ViTPose (Xu et al. 2022) and ViTPose++ as transformers' VitPoseForPoseEstimation.

#include <fmt/format.h>

#include <string>

#include "models/backbone.h"
#include "models/families.h"
#include "models/vit.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct VitPoseConfig {
  ViTConfig vit;
  std::int64_t mlp_width = 0;
  std::int64_t experts = 1;
  std::int64_t part_features = 256;
  std::int64_t layers = 0;  // whose result the head takes
  std::int64_t num_labels = 2;
  std::int64_t scale_factor = 4;
  bool simple = true;

  static VitPoseConfig read(const Family& family, ConfigReader& fields) {
    VitPoseConfig c;
    const bool given = fields.has("backbone_config");
    ConfigReader backbone = fields.section("backbone_config");
    const std::string type = backbone.config().model_type();
    if (given && type != "vitpose_backbone")
      fields.fail(ErrorCode::unsupported,
                  fmt::format("backbone_config has the model type \"{}\", expected vitpose_backbone", type));
    for (const char* field : {"use_timm_backbone", "use_pretrained_backbone"})
      if (fields.boolean(field, false)) fields.fail(ErrorCode::unsupported, fmt::format("{} is not supported", field));
    if (!given && fields.has("backbone"))
      fields.fail(ErrorCode::unsupported, "backbone is not supported without a backbone_config");
    c.vit = ViTConfig::read(family, backbone);
    c.vit.stem = "VitPoseBackbone";
    if (!backbone.has("image_size")) c.vit.image_size = {256, 192};
    const double ratio = backbone.number("mlp_ratio", 4);
    if (!(ratio > 0 && ratio < 1e4))
      fields.fail(ErrorCode::malformed, fmt::format("mlp_ratio is {}, expected 0 to 10000", ratio));
    else
      c.mlp_width = static_cast<std::int64_t>(static_cast<double>(c.vit.hidden_size) * ratio);
    c.experts = backbone.size("num_experts", 1);
    c.part_features = backbone.size("part_features", c.part_features);
    if (c.experts > 1 && c.part_features >= c.vit.hidden_size)
      fields.fail(ErrorCode::malformed,
                  fmt::format("part_features {} is not below hidden_size {}", c.part_features, c.vit.hidden_size));
    const std::vector<std::int64_t> stages = backbone_stages(backbone, c.vit.num_hidden_layers);
    c.layers = !given ? 4 : stages.empty() ? c.vit.num_hidden_layers : stages.back();
    c.num_labels = fields.num_labels();
    c.scale_factor = fields.size("scale_factor", c.scale_factor);
    c.simple = fields.boolean("use_simple_decoder", c.simple);
    return c;
  }
};

Value mlp(const Scope& s, const VitPoseConfig& c, Value x) {
  const bool plain = c.experts == 1;
  x = activation(s, plain ? "activation" : "act", c.vit.hidden_act, linear(s["fc1"], x, c.mlp_width));
  if (plain) return linear(s["fc2"], x, c.vit.hidden_size);
  const Value shared = linear(s["fc2"], x, c.vit.hidden_size - c.part_features);
  return concat(s, {shared, linear(s["experts.0"], x, c.part_features)}, -1);
}

// [batch, channels, height, width] -> [batch, hidden_size, height, width] of patches. Of several experts, those of the
// first data set.
Value backbone(const Scope& s, const VitPoseConfig& c, Value pixels) {
  const ViTConfig& v = c.vit;
  expect_image(s, pixels, v.limits());
  const Scope embeddings = s("embeddings", v.name("Embeddings"));
  const Scope patches = embeddings("patch_embeddings", v.name("PatchEmbeddings"));
  const auto [height, width] = std::array{v.image_size[0] / v.patch_size[0], v.image_size[1] / v.patch_size[1]};
  Value x = conv2d(patches["projection"], pixels,
                   {.channels = v.hidden_size, .kernel = v.patch_size, .stride = v.patch_size, .padding = {2, 2}});
  x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
  const Value positions = embeddings.weight("position_embeddings", {1, height * width + 1, v.hidden_size});
  x = add(embeddings, x, slice(embeddings, positions, 1, 1, to_the_end));
  x = add(embeddings, x, slice(embeddings, positions, 1, 0, 1));

  const Scope encoder = s("encoder", v.name("Encoder"));
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const Scope layer = encoder("layer", i, v.name("Layer"));
    const Value y = layer_norm(layer["layernorm_before"], x, v.layer_norm_eps);
    x = add(layer, vit_attention(layer("attention", v.name("Attention")), v, i, y), x);
    const Value z = layer_norm(layer["layernorm_after"], x, v.layer_norm_eps);
    x = add(layer, mlp(layer("mlp", v.name(c.experts == 1 ? "MLP" : "MoeMLP")), c, z), x);
  }
  x = layer_norm(s["layernorm"], x, v.layer_norm_eps);
  return reshape(s, transpose(s, x, {0, 2, 1}), {keep, keep, height, width});
}

Value simple_decoder(const Scope& s, const VitPoseConfig& c, Value x) {
  x = unary(s["activation"], "Relu", x);
  if (!x) return {};
  const std::array size{x.dim(2).value * c.scale_factor, x.dim(3).value * c.scale_factor};
  x = resize(s["upsampling"], x, size, Interpolation::bilinear);
  return conv2d(s["conv"], x, {.channels = c.num_labels, .kernel = {3, 3}, .padding = {1, 1}});
}

Value classic_decoder(const Scope& s, const VitPoseConfig& c, Value x) {
  for (const std::string part : {"1", "2"}) {
    x = transposed_conv2d(s["deconv" + part], x, 256, 4, 2, 1, false);
    x = unary(s["relu" + part], "Relu", batch_norm(s["batchnorm" + part], x));
  }
  return conv2d(s["conv"], x, {.channels = c.num_labels, .kernel = {1, 1}});
}

Outputs heatmaps(const Scope& root, const VitPoseConfig& c, const ImageInputs& in) {
  const Value x = backbone(root("backbone", "VitPoseBackbone"), c, in.pixel_values);
  return {c.simple ? simple_decoder(root("head", "VitPoseSimpleDecoder"), c, x)
                   : classic_decoder(root("head", "VitPoseClassicDecoder"), c, x)};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const VitPoseConfig c = VitPoseConfig::read(request.family, request.config);
  return image_input_specs(request, c.vit.limits());
}

}  // namespace

const Family vitpose{
    .model_type = "vitpose",
    .stem = "VitPose",
    .prefix = "vit",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads = {{"keypoint-detection", "ForPoseEstimation", {"heatmaps"}, head<heatmaps>}},
};

}  // namespace mk::models
