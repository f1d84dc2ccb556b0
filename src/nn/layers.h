#pragma once
// torch.nn's layers. Each takes the scope of the layer itself, `linear(s["dense"], x, 768)`, reads its parameters there
// and checks their shapes against what is asked for.

#include <array>
#include <cstdint>
#include <optional>

#include "nn/builder.h"

namespace mk::nn {

// nn.Linear over the last axis. A matrix gives one Gemm with the weight as it is stored; more axes give MatMul with the
// transposed weight, and Add. A weight that is tied to another parameter is stored once and transposed in the graph.
Value linear(const Scope& s, Value x, std::int64_t features, bool bias = true);

// nn.Embedding: rows of `weight` [rows, width].
Value embedding(const Scope& s, Value ids, std::int64_t rows, std::int64_t width);
// Its first rows, as many as axis 1 of `like` is long: what positions 0, 1, 2 ... look up. [length, width]. The table
// has `unused` more rows in front of them. usage where `like` is longer than the table.
Value first_rows(const Scope& s, Value like, std::int64_t rows, std::int64_t width, std::int64_t unused = 0);

// nn.LayerNorm over the last axis.
Value layer_norm(const Scope& s, Value x, double epsilon);
// nn.GroupNorm with a group per channel, on [batch, channels, length ...].
Value channel_norm(const Scope& s, Value x, double epsilon = 1e-5);
// Zhang and Sennrich 2019: x over its root mean square over the last axis, times `weight`, or `weight` + 1. Computed in
// float32.
Value rms_norm(const Scope& s, Value x, double epsilon, bool from_one = false);
// nn.BatchNorm2d in evaluation mode.
Value batch_norm(const Scope& s, Value x, double epsilon = 1e-5);

struct Convolution {
  std::int64_t channels = 0;             // of the result
  std::array<std::int64_t, 2> kernel{};  // height, width
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> padding{};  // before, and after too unless the next says otherwise
  std::optional<std::array<std::int64_t, 2>> padding_after;
  std::array<std::int64_t, 2> dilation{1, 1};
  std::int64_t groups = 1;
  bool bias = true;
};
// nn.Conv2d on [batch, channels, height, width]. usage where the image is smaller than the kernel.
Value conv2d(const Scope& s, Value x, const Convolution& convolution);
// nn.ConvTranspose2d with a stride as wide as its kernel: each pixel becomes a square of kernel x kernel.
Value upscaling_conv2d(const Scope& s, Value x, std::int64_t channels, std::int64_t kernel, bool bias = true);

// nn.ConvTranspose2d with the same kernel, stride and padding both ways.
Value transposed_conv2d(const Scope& s, Value x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                        std::int64_t padding, bool bias = true);

struct Convolution1d {
  std::int64_t channels = 0;  // of the result
  std::int64_t kernel = 1, stride = 1, dilation = 1, groups = 1;
  std::array<std::int64_t, 2> padding{};  // before and after
  bool bias = true;
};
// nn.Conv1d on [batch, channels, length]. usage where the length is below the kernel's.
Value conv1d(const Scope& s, Value x, const Convolution1d& convolution);
// The same with a weight of its own making, [channels, channels of x / groups, kernel].
Value conv1d(const Scope& s, Value x, Value weight, const Convolution1d& convolution);

Value max_pool2d(const Scope& s, Value x, std::int64_t kernel, std::int64_t stride, std::int64_t padding);
// nn.AvgPool2d of squares side by side, with ceil_mode: what sticks out at the end does not count.
Value average_pool2d(const Scope& s, Value x, std::int64_t kernel);
// nn.functional.interpolate of [batch, channels, height, width] to a height and a width, without aligned corners.
enum class Interpolation { nearest, bilinear, bicubic };
Value resize(const Scope& s, Value x, std::array<std::int64_t, 2> size, Interpolation interpolation);
// nn.AdaptiveAvgPool2d((1, 1)): [batch, channels, 1, 1].
Value global_average_pool(const Scope& s, Value x);

}  // namespace mk::nn
