#include "models/mobile.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

std::int64_t make_divisible(double value, std::int64_t divisor, std::int64_t least) {
  const auto near = static_cast<std::int64_t>(value + static_cast<double>(divisor) / 2) / divisor * divisor;
  std::int64_t result = std::max(least, near);
  if (static_cast<double>(result) < 0.9 * value) result += divisor;
  return result;
}

Value mobile_layer(const Scope& s, const MobileLayer& layer, Value x) {
  if (!x) return {};
  Convolution c{.channels = layer.channels,
                .kernel = {layer.kernel, layer.kernel},
                .stride = {layer.stride, layer.stride},
                .dilation = {layer.dilation, layer.dilation},
                .groups = layer.groups,
                .bias = false};
  if (layer.tf_padding) {
    std::array<std::int64_t, 2> after{};
    for (std::size_t axis = 0; axis < 2; ++axis) {
      const std::int64_t over = x.dim(static_cast<int>(axis) + 2).value % layer.stride;
      const std::int64_t along = std::max<std::int64_t>(layer.kernel - (over == 0 ? layer.stride : over), 0);
      c.padding[axis] = along / 2 * layer.dilation;
      after[axis] = (along - along / 2) * layer.dilation;
    }
    c.padding_after = after;
  } else {
    const std::int64_t padding = (layer.kernel - 1) / 2 * layer.dilation;
    c.padding = {padding, padding};
  }
  x = conv2d(s["convolution"], x, c);
  if (layer.normalized) x = batch_norm(s["normalization"], x, layer.epsilon);
  return layer.act.empty() ? x : activation(s, "activation", layer.act, x);
}

Value inverted_residual(const Scope& s, const InvertedResidual& b, Value x) {
  if (!x) return {};
  const bool residual = b.stride == 1 && x.dim(1).value == b.channels;
  const MobileLayer wide{.channels = b.expanded, .act = b.act, .epsilon = b.epsilon, .tf_padding = b.tf_padding};
  MobileLayer deep = wide, narrow = wide;
  deep.kernel = 3;
  deep.stride = b.stride;
  deep.dilation = b.dilation;
  deep.groups = b.expanded;
  narrow.channels = b.channels;
  narrow.act = {};
  Value y = mobile_layer(s("expand_1x1", b.layer_class), wide, x);
  y = mobile_layer(s("conv_3x3", b.layer_class), deep, y);
  y = mobile_layer(s("reduce_1x1", b.layer_class), narrow, y);
  return residual ? add(s, x, y) : y;
}

}  // namespace mk::models
