#pragma once
// What MobileNetV2 and MobileViT share: convolution with its norm and activation, and widths rounded to what hardware
// likes.

#include <cstdint>
#include <string>
#include <string_view>

#include "models/family.h"

namespace mk::models {

// `value` to the nearest multiple of `divisor`, at least `least`, and at most a tenth below it.
std::int64_t make_divisible(double value, std::int64_t divisor, std::int64_t least);
// Python's round().
std::int64_t rounded(double value);

struct MobileLayer {
  std::int64_t channels = 0;
  std::int64_t kernel = 1, stride = 1, dilation = 1, groups = 1;
  bool normalized = true;
  std::string_view act;     // none where empty
  double epsilon = 1e-5;    // of the norm
  bool tf_padding = false;  // as TensorFlow's SAME: the odd row and column after, not before
};
// `s` is a ...ConvLayer: convolution, normalization, activation.
Value mobile_layer(const Scope& s, const MobileLayer& layer, Value x);

// Sandler et al. 2018: wider, depthwise, narrower. `s` is a ...InvertedResidual whose layers have the class `layer`.
struct InvertedResidual {
  std::string layer_class;
  std::int64_t channels = 0, expanded = 0;
  std::int64_t stride = 1, dilation = 1;
  std::string_view act;
  double epsilon = 1e-5;
  bool tf_padding = false;
};
Value inverted_residual(const Scope& s, const InvertedResidual& block, Value x);

}  // namespace mk::models
