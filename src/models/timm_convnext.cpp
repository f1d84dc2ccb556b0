// timm's ConvNeXt, of both versions.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "models/timm.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;
using nn::Value;

namespace {

constexpr double eps = 1e-6;

struct Size {
  std::string_view name;
  std::array<std::int64_t, 4> depths, dims;
  bool conv_mlp;
};
constexpr std::array sizes{Size{"atto", {2, 2, 6, 2}, {40, 80, 160, 320}, true},
                           Size{"femto", {2, 2, 6, 2}, {48, 96, 192, 384}, true},
                           Size{"pico", {2, 2, 6, 2}, {64, 128, 256, 512}, true},
                           Size{"nano", {2, 2, 8, 2}, {80, 160, 320, 640}, true},
                           Size{"tiny", {3, 3, 9, 3}, {96, 192, 384, 768}, false},
                           Size{"small", {3, 3, 27, 3}, {96, 192, 384, 768}, false},
                           Size{"base", {3, 3, 27, 3}, {128, 256, 512, 1024}, false},
                           Size{"large", {3, 3, 27, 3}, {192, 384, 768, 1536}, false},
                           Size{"xlarge", {3, 3, 27, 3}, {256, 512, 1024, 2048}, false},
                           Size{"huge", {3, 3, 27, 3}, {352, 704, 1408, 2816}, false}};

// Over the channels of [batch, channels, height, width].
Value norm2d(const Scope& s, Value x) {
  return transpose(s, layer_norm(s, transpose(s, x, {0, 2, 3, 1}), eps), {0, 3, 1, 2});
}

struct TimmConvNeXt final : TimmNetwork {
  std::vector<std::int64_t> depths, dims;
  bool conv_mlp = false, second = false, scaled = true;

  const char* class_name() const override { return "ConvNeXt"; }

  // Global response normalization of [batch, height, width, channels].
  Value grn(const Scope& s, Value x) const {
    const std::int64_t width = x.dim(-1).value;
    const Value norm = reduce(s, "ReduceL2", x, {1, 2}, true);
    const Value relative = div(s, norm, add(s, reduce_mean(s, norm, {-1}, true), eps));
    const Value y = add(s, mul(s, mul(s, x, relative), s.weight("weight", {width})), s.weight("bias", {width}));
    return add(s, x, y);
  }

  // In the order of channels last; kernels of 1 x 1 are brought into that of matrices by their shape.
  Value mlp(const Scope& s, Value x, std::int64_t width) const {
    const auto layer = [&](const char* name, Value y, std::int64_t channels) {
      if (!conv_mlp) return linear(s[name], y, channels);
      y = conv2d(s[name], transpose(s, y, {0, 3, 1, 2}), {.channels = channels, .kernel = {1, 1}});
      return transpose(s, y, {0, 2, 3, 1});
    };
    Value y = activate(s("act", "GELU"), "gelu", layer("fc1", x, 4 * width));
    if (second) y = grn(s("grn", "GlobalResponseNorm"), y);
    return layer("fc2", y, width);
  }

  Value block(const Scope& s, Value x) const {
    if (!x) return {};
    const std::int64_t width = x.dim(1).value;
    Value y = conv2d(s["conv_dw"], x, {.channels = width, .kernel = {7, 7}, .padding = {3, 3}, .groups = width});
    y = layer_norm(s("norm", conv_mlp ? "LayerNorm2d" : "LayerNorm"), transpose(s, y, {0, 2, 3, 1}), eps);
    y = mlp(s("mlp", second ? "GlobalResponseNormMlp" : "Mlp"), y, width);
    if (scaled) y = mul(s, y, s.weight("gamma", {width}));
    return add(s, transpose(s, y, {0, 3, 1, 2}), x);
  }

  Value features(const Scope& s, Value pixels) const override {
    Value x = conv2d(s["stem.0"], pixels, {.channels = dims[0], .kernel = {4, 4}, .stride = {4, 4}});
    x = norm2d(s("stem", 1, "LayerNorm2d"), x);
    for (std::size_t i = 0; i < depths.size(); ++i) {
      const Scope stage = s("stages", static_cast<std::int64_t>(i), "ConvNeXtStage");
      if (i > 0) {
        x = norm2d(stage("downsample", 0, "LayerNorm2d"), x);
        x = conv2d(stage["downsample.1"], x, {.channels = dims[i], .kernel = {2, 2}, .stride = {2, 2}});
      }
      for (std::int64_t j = 0; j < depths[i]; ++j) x = block(stage("blocks", j, "ConvNeXtBlock"), x);
    }
    return x;
  }

  Value classify(const Scope& s, Value x, std::int64_t classes) const override {
    const Scope head = s("head", "NormMlpClassifierHead");
    x = layer_norm(head("norm", "LayerNorm2d"), reduce_mean(head, x, {2, 3}, false), eps);
    return linear(head["fc"], x, classes);
  }
};

}  // namespace

std::unique_ptr<TimmNetwork> timm_convnext(const TimmRequest& request) {
  std::string_view name = request.name;
  const bool second = name.starts_with("convnextv2_");
  if (!second && !name.starts_with("convnext_")) return nullptr;
  name.remove_prefix(second ? 11 : 9);
  const auto size = std::find_if(sizes.begin(), sizes.end(), [&](const Size& row) { return row.name == name; });
  if (size == sizes.end() || (!second && size->name == "huge")) return nullptr;
  auto net = std::make_unique<TimmConvNeXt>();
  ConfigReader& given = request.arguments;
  only_arguments(given, {"depths", "dims", "conv_mlp", "in_chans"});
  net->depths = given.depths("depths", {size->depths.begin(), size->depths.end()});
  net->dims = given.sizes("dims", {size->dims.begin(), size->dims.end()});
  net->conv_mlp = given.boolean("conv_mlp", size->conv_mlp);
  net->second = second;
  net->scaled = !second;
  if (net->depths.size() != net->dims.size())
    given.fail(ErrorCode::malformed,
               fmt::format("model_args has {} depths and {} dims", net->depths.size(), net->dims.size()));
  return net;
}

}  // namespace mk::models
