// timm's EfficientNet: efficientnet_b0 to b8, and those with TensorFlow's padding.

#include <cmath>
#include <memory>

#include "models/mobile.h"
#include "models/timm.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;
using nn::Value;

namespace {

struct Stage {
  std::int64_t repeats, kernel, stride, expand, channels;
};
constexpr std::array stages{Stage{1, 3, 1, 1, 16}, Stage{2, 3, 2, 6, 24},  Stage{2, 5, 2, 6, 40},
                            Stage{3, 3, 2, 6, 80}, Stage{3, 5, 1, 6, 112}, Stage{4, 5, 2, 6, 192},
                            Stage{1, 3, 1, 6, 320}};

struct Multipliers {
  double width, depth;
};
constexpr std::array multipliers{Multipliers{1, 1},     Multipliers{1, 1.1},   Multipliers{1.1, 1.2},
                                 Multipliers{1.2, 1.4}, Multipliers{1.4, 1.8}, Multipliers{1.6, 2.2},
                                 Multipliers{1.8, 2.6}, Multipliers{2, 3.1},   Multipliers{2.2, 3.6}};

struct TimmEfficientNet final : TimmNetwork {
  Multipliers by{1, 1};
  bool same = false;  // TensorFlow's padding and epsilon

  const char* class_name() const override { return "EfficientNet"; }
  std::int64_t scaled(std::int64_t channels) const {
    return make_divisible(static_cast<double>(channels) * by.width, 8, 8);
  }

  // A convolution and the norm behind it.
  Value conv(const Scope& s, const char* name, const char* norm, Value x, const Convolution& shape, bool act) const {
    if (!x) return {};
    Convolution c = shape;
    c.bias = false;
    std::array<std::int64_t, 2> after{};
    for (const std::size_t axis : {0U, 1U}) {
      const std::int64_t kernel = c.kernel[axis], stride = c.stride[axis];
      const Dim size = x.dim(static_cast<int>(axis) + 2);
      if (!same || stride == 1) {
        c.padding[axis] = after[axis] = (stride + kernel - 2) / 2;
        continue;
      }
      if (!size.is_known()) {
        s.builder().fail({ErrorCode::usage,
                          "height and width of pixel_values are dynamic, and padding needs them fixed", "",
                          "Give them sizes; the batch may be dynamic"});
        return {};
      }
      const std::int64_t all =
          std::max<std::int64_t>(((size.value + stride - 1) / stride - 1) * stride + kernel - size.value, 0);
      c.padding[axis] = all / 2;
      after[axis] = all - all / 2;
    }
    c.padding_after = after;
    const Scope layer = same && c.stride[0] > 1 ? s(name, "Conv2dSame") : s[name];
    const Scope bn = s(norm, "BatchNormAct2d");
    x = batch_norm(bn, conv2d(layer, x, c), same ? 1e-3 : 1e-5);
    return act ? activate(bn["act"], "silu", x) : x;
  }

  Value squeeze_excite(const Scope& s, Value x, std::int64_t narrow) const {
    if (!x) return {};
    Value y = conv2d(s["conv_reduce"], reduce_mean(s, x, {2, 3}, true), {.channels = narrow, .kernel = {1, 1}});
    y = conv2d(s["conv_expand"], activate(s["act1"], "silu", y), {.channels = x.dim(1).value, .kernel = {1, 1}});
    return mul(s, x, unary(s["gate"], "Sigmoid", y));
  }

  Value block(const Scope& s, const Stage& stage, std::int64_t stride, Value x) const {
    if (!x) return {};
    const std::int64_t from = x.dim(1).value, width = from * stage.expand, to = scaled(stage.channels);
    const bool expands = stage.expand > 1;
    Value y = x;
    if (expands) y = conv(s, "conv_pw", "bn1", y, {.channels = width, .kernel = {1, 1}}, true);
    y = conv(s, "conv_dw", expands ? "bn2" : "bn1", y,
             {.channels = width, .kernel = {stage.kernel, stage.kernel}, .stride = {stride, stride}, .groups = width},
             true);
    y = squeeze_excite(s("se", "SqueezeExcite"), y,
                       std::max<std::int64_t>(rounded(static_cast<double>(from) * 0.25), 1));
    y = conv(s, expands ? "conv_pwl" : "conv_pw", expands ? "bn3" : "bn2", y, {.channels = to, .kernel = {1, 1}},
             false);
    return stride == 1 && from == to ? add(s, y, x) : y;
  }

  Value features(const Scope& s, Value pixels) const override {
    Value x = conv(s, "conv_stem", "bn1", pixels, {.channels = scaled(32), .kernel = {3, 3}, .stride = {2, 2}}, true);
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const Scope stage = s["blocks"][std::to_string(i)];
      const auto repeats = static_cast<std::int64_t>(std::ceil(static_cast<double>(stages[i].repeats) * by.depth));
      const char* name = stages[i].expand > 1 ? "InvertedResidual" : "DepthwiseSeparableConv";
      for (std::int64_t j = 0; j < repeats; ++j)
        x = block(stage(std::to_string(j), name), stages[i], j == 0 ? stages[i].stride : 1, x);
    }
    return conv(s, "conv_head", "bn2", x, {.channels = scaled(1280), .kernel = {1, 1}}, true);
  }

  Value classify(const Scope& s, Value x, std::int64_t classes) const override {
    return linear(s["classifier"], reduce_mean(s("global_pool", "SelectAdaptivePool2d"), x, {2, 3}, false), classes);
  }
};

}  // namespace

std::unique_ptr<TimmNetwork> timm_efficientnet(const TimmRequest& request) {
  std::string_view name = request.name;
  const bool same = name.starts_with("tf_");
  if (same) name.remove_prefix(3);
  constexpr std::string_view stem = "efficientnet_b";
  if (!name.starts_with(stem) || name.size() != stem.size() + 1) return nullptr;
  const int index = name.back() - '0';
  if (index < 0 || index >= static_cast<int>(multipliers.size())) return nullptr;
  auto net = std::make_unique<TimmEfficientNet>();
  only_arguments(request.arguments, {"in_chans"});
  net->by = multipliers[static_cast<std::size_t>(index)];
  net->same = same;
  return net;
}

}  // namespace mk::models
