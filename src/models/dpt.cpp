// DPT (Ranftl et al. 2021) as transformers' DPTForDepthEstimation, on its own Vision Transformer or on a backbone.

#include "models/dpt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/beit.h"
#include "models/dinov2.h"
#include "models/families.h"
#include "models/vit.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct DptConfig {
  ViTConfig vit;
  std::vector<std::int64_t> layers;  // whose tokens the neck takes
  DptNeck neck;
  bool add_projection = false;
  std::string backbone;  // its model type, where there is one
  Dinov2Config dinov2;
  BeitConfig beit;

  static DptConfig read(const Family& family, ConfigReader& fields) {
    DptConfig c{.vit = ViTConfig::read(family, fields)};
    if (!fields.has("image_size")) c.vit.image_size = {384, 384};
    c.vit.stem = "DPTViT", c.vit.self_attention = "DPTSelfAttention";
    c.neck.stem = "DPT";
    c.neck.hidden_sizes = {96, 192, 384, 768};
    c.neck.read(fields);
    c.neck.batch_norm = fields.boolean("use_batch_norm_in_fusion_residual", false);
    c.neck.bias = fields.boolean("use_bias_in_fusion_residual", !c.neck.batch_norm);
    const std::string readout = fields.string("readout_type", "project");
    c.neck.project = readout == "project", c.neck.add = readout == "add";
    if (!c.neck.project && !c.neck.add && readout != "ignore")
      fields.fail(ErrorCode::malformed,
                  fmt::format("readout_type is \"{}\", expected project, add or ignore", readout));
    c.neck.hidden_act = c.vit.hidden_act;
    c.add_projection = fields.boolean("add_projection", false);
    if (fields.boolean("is_hybrid", false))
      fields.fail(ErrorCode::unsupported,
                  "is_hybrid is not supported: the BiT backbone is not among the architectures");
    if (fields.boolean("use_timm_backbone", false) || (fields.has("backbone") && !fields.has("backbone_config")))
      fields.fail(ErrorCode::unsupported, "use_timm_backbone and backbone are not supported; give a backbone_config");
    if (!fields.has("backbone_config")) {
      c.layers = fields.indices("backbone_out_indices", {2, 5, 8, 11});
      std::sort(c.layers.begin(), c.layers.end());
      if (!c.layers.empty() && c.layers.back() >= c.vit.num_hidden_layers)
        fields.fail(ErrorCode::malformed, fmt::format("backbone_out_indices has {}, and there are {} layers",
                                                      c.layers.back(), c.vit.num_hidden_layers));
      return c;
    }
    ConfigReader backbone = fields.section("backbone_config");
    c.backbone = backbone.config().model_type();
    if (c.backbone == "dinov2")
      c.dinov2 = Dinov2Config::read(backbone, false);
    else if (c.backbone == "beit")
      c.beit = BeitConfig::read(backbone);
    else
      fields.fail(ErrorCode::unsupported,
                  fmt::format("backbone_config has the model type \"{}\", expected dinov2 or beit", c.backbone));
    if (c.backbone == "dinov2" ? c.dinov2.reshape_hidden_states : c.beit.reshape_hidden_states)
      fields.fail(ErrorCode::unsupported, "backbone_config has reshape_hidden_states true, which DPT cannot take");
    return c;
  }
  ImageLimits limits() const {
    if (backbone == "dinov2") return {dinov2.num_channels, dinov2.image_size, false};
    if (backbone == "beit") return {beit.num_channels, beit.image_size, false};
    return {vit.num_channels, vit.image_size, false};
  }
  std::array<std::int64_t, 2> patch_size() const {
    return backbone == "dinov2" ? dinov2.patch_size : backbone == "beit" ? beit.patch_size : vit.patch_size;
  }
};

// Positions of a square, resized to a grid where that is another.
Value positions(const Scope& s, const ViTConfig& v, std::array<std::int64_t, 2> grid) {
  const std::int64_t patches = (v.image_size[0] / v.patch_size[0]) * (v.image_size[1] / v.patch_size[1]);
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(patches)));
  const Value table = s.weight("position_embeddings", {1, patches + 1, v.hidden_size});
  if (grid == std::array{side, side}) return table;
  Value x = reshape(s, transpose(s, slice(s, table, 1, 1, to_the_end), {0, 2, 1}), {keep, keep, side, side});
  x = reshape(s, resize(s, x, grid, Interpolation::bilinear), {keep, keep, rest});
  return concat(s, {slice(s, table, 1, 0, 1), transpose(s, x, {0, 2, 1})}, 1);
}

std::vector<Value> own_states(const Scope& s, const DptConfig& c, Value pixels, std::array<std::int64_t, 2> grid) {
  const ViTConfig& v = c.vit;
  if (grid[0] != grid[1]) {
    s.builder().fail({ErrorCode::usage,
                      fmt::format("the image has {} x {} patches, and DPT without a backbone_config takes squares only",
                                  grid[0], grid[1]),
                      "", "Ask for a height and width that are the same"});
    return {};
  }
  const Scope embeddings = s("embeddings", v.name("Embeddings"));
  const Scope patches = embeddings("patch_embeddings", v.name("PatchEmbeddings"));
  Value x = conv2d(patches["projection"], pixels,
                   {.channels = v.hidden_size, .kernel = v.patch_size, .stride = v.patch_size});
  x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
  x = concat(embeddings, {expand_batch(embeddings, embeddings.weight("cls_token", {1, 1, v.hidden_size}), pixels), x},
             1);
  x = add(embeddings, x, positions(embeddings, v, grid));
  const Scope encoder = s("encoder", v.name("Encoder"));
  std::vector<Value> states;
  for (std::int64_t i = 0; i < v.num_hidden_layers && states.size() < c.layers.size(); ++i) {
    x = vit_layer(encoder("layer", i, v.name("Layer")), v, i, x);
    if (std::binary_search(c.layers.begin(), c.layers.end(), i)) states.push_back(x);
  }
  return states;
}

Value fused(const Scope& root, const DptConfig& c, Value pixels) {
  expect_image(root, pixels, {.channels = c.limits().channels});
  const auto grid = patch_grid(root, pixels, c.patch_size());
  if (!grid) return {};
  std::vector<Value> states;
  if (c.backbone == "dinov2")
    states = dinov2_backbone(root("backbone", "Dinov2Backbone"), c.dinov2, pixels).maps;
  else if (c.backbone == "beit")
    states = beit_backbone(root("backbone", "BeitBackbone"), c.beit, pixels).maps;
  else
    states = own_states(root("dpt", "DPTModel"), c, pixels, *grid);
  return dpt_neck(root, c.neck, std::move(states), *grid);
}

std::array<std::int64_t, 2> twice(Value x) { return {2 * x.dim(2).value, 2 * x.dim(3).value}; }

Outputs depth(const Scope& root, const DptConfig& c, const ImageInputs& in) {
  Value x = fused(root, c, in.pixel_values);
  const Scope s = root("head", "DPTDepthEstimationHead");
  const std::int64_t width = c.neck.fusion_hidden_size;
  constexpr std::int64_t projected = 256, hidden = 32;
  if (c.add_projection)
    x = unary(s, "Relu", conv2d(s["projection"], x, {.channels = projected, .kernel = {3, 3}, .padding = {1, 1}}));
  x = conv2d(s["head.0"], x, {.channels = std::max<std::int64_t>(width / 2, 1), .kernel = {3, 3}, .padding = {1, 1}});
  if (!x) return {{}};
  x = resize_aligned(s["head.1"], x, twice(x));
  x = unary(s["head.3"], "Relu", conv2d(s["head.2"], x, {.channels = hidden, .kernel = {3, 3}, .padding = {1, 1}}));
  x = unary(s["head.5"], "Relu", conv2d(s["head.4"], x, {.channels = 1, .kernel = {1, 1}}));
  return {take(s, x, 1, 0)};
}

Outputs segmentation(const Scope& root, const DptConfig& c, const ImageInputs& in) {
  const Value map = fused(root, c, in.pixel_values);
  const Scope s = root("head", "DPTSemanticSegmentationHead");
  Value x = conv2d(s["head.0"], map,
                   {.channels = c.neck.fusion_hidden_size, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  x = unary(s["head.2"], "Relu", batch_norm(s["head.1"], x));
  x = conv2d(s["head.4"], x, {.channels = c.vit.num_labels, .kernel = {1, 1}});
  if (!x) return {{}};
  return {resize_aligned(s["head.5"], x, twice(x))};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const DptConfig c = DptConfig::read(request.family, request.config);
  return image_input_specs(request, c.limits());
}

}  // namespace

const Family dpt{
    .model_type = "dpt",
    .stem = "DPT",
    .prefix = "dpt",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"depth-estimation", "ForDepthEstimation", {"predicted_depth"}, head<depth>},
            {"image-segmentation", "ForSemanticSegmentation", {"logits"}, head<segmentation>},
        },
};

}  // namespace mk::models
