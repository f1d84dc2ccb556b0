#include "nn/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "nn/ops.h"

namespace mk::nn {
namespace {

std::vector<std::int64_t> both_sides(const std::array<std::int64_t, 2>& padding) {
  return {padding[0], padding[1], padding[0], padding[1]};
}

Dim window_count(const Scope& s, const Dim& size, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  if (!size.is_known()) return {};
  const std::int64_t room = size.value + 2 * padding - kernel;
  if (room < 0) {
    s.builder().fail({ErrorCode::usage,
                      fmt::format("the input is too small: a window of {} does not fit into {}", kernel, size.value),
                      s.module().path, "Ask for a larger height and width"});
    return Dim::known(1);
  }
  return Dim::known(room / stride + 1);
}

// com.microsoft.MatMulNBits over the codes that the checkpoint has.
Value quantized_product(const Scope& s, Value x, const Parameter& weight) {
  Builder& b = s.builder();
  const QuantizedMatrix& matrix = *weight.quantized;
  const std::int64_t groups = matrix.columns / matrix.group, bytes = matrix.group * matrix.bits / 8;
  const auto floats = [&](const char* name, const Bytes& values) {
    return b.constant(fmt::format("{}.{}", weight.name, name), b.float_type(), {matrix.rows * groups},
                      cast(values, DataType::float32, b.float_type()));
  };
  std::vector<Value> inputs{
      x, b.constant(weight.name + ".codes", DataType::uint8, {matrix.rows, groups, bytes}, matrix.codes),
      floats("scales", matrix.scales)};
  if (matrix.zero_points) inputs.push_back(floats("zero_points", matrix.zero_points));
  Shape shape = x.shape();
  shape.back() = Dim::known(matrix.rows);
  return Op(s, "MatMulNBits", inputs)
      .of("com.microsoft")
      .with("K", matrix.columns)
      .with("N", matrix.rows)
      .with("bits", static_cast<std::int64_t>(matrix.bits))
      .with("block_size", static_cast<std::int64_t>(matrix.group))
      .out(x.type(), std::move(shape));
}

}  // namespace

Value linear(const Scope& s, Value x, std::int64_t features, bool bias) {
  if (!x) return {};
  s.is_a("Linear");
  Builder& b = s.builder();
  const Parameter& weight = s.parameter("weight", {features, x.dim(-1).value});
  if (x.rank() == 2) {
    std::vector<Value> inputs{x, b.initializer(weight)};
    if (bias) inputs.push_back(s.weight("bias", {features}));
    return Op(s, "Gemm", inputs).with("transB", 1).out(x.type(), {x.dim(0), Dim::known(features)});
  }
  const bool tied = b.weights().is_tied(s.module().path + ".weight");
  if (b.keeps_quantized() && weight.quantized && weight.data && !tied) {
    const Value y = quantized_product(s, x, weight);
    return bias ? add(s, y, s.weight("bias", {features})) : y;
  }
  const Value matrix = tied ? transpose(s, b.initializer(weight), {1, 0}) : b.transposed(weight);
  const Value y = matmul(s, x, matrix);
  return bias ? add(s, y, s.weight("bias", {features})) : y;
}

Value embedding(const Scope& s, Value ids, std::int64_t rows, std::int64_t width) {
  s.is_a("Embedding");
  return gather(s, s.weight("weight", {rows, width}), ids);
}

Value first_rows(const Scope& s, Value like, std::int64_t rows, std::int64_t width, std::int64_t unused) {
  if (!like) return {};
  s.is_a("Embedding");
  Builder& b = s.builder();
  const Dim length = like.dim(1);
  if (length.is_known()) {
    if (length.value > rows) {
      b.fail({ErrorCode::usage, fmt::format("a length of {} is beyond the model's {} positions", length.value, rows),
              s.module().path, "Ask for a shorter one with --shape-config or --input-specs"});
      return {};
    }
    return b.rows(s.parameter("weight", {rows + unused, width}), unused, length.value);
  }
  const Value all = unused == 0 ? s.weight("weight", {rows, width})
                                : b.rows(s.parameter("weight", {rows + unused, width}), unused, rows);
  return Op(s, "Slice", {all, b.integers({0}), size(s, like, 1), b.integers({0})})
      .out(all.type(), {length, Dim::known(width)});
}

Value layer_norm(const Scope& s, Value x, double epsilon) {
  if (!x) return {};
  s.is_a("LayerNorm");
  const std::int64_t width = x.dim(-1).value;
  const Value scale = s.weight("weight", {width}), bias = s.weight("bias", {width});
  if (s.builder().opset() >= 17)
    return Op(s, "LayerNormalization", {x, scale, bias})
        .with("axis", -1)
        .with("epsilon", static_cast<float>(epsilon))
        .like(x);
  const Value centered = sub(s, x, reduce_mean(s, x, {-1}, true));
  const Value variance = reduce_mean(s, pow(s, centered, 2), {-1}, true);
  const Value normal = div(s, centered, unary(s, "Sqrt", add(s, variance, epsilon)));
  return add(s, mul(s, normal, scale), bias);
}

Value channel_norm(const Scope& s, Value x, double epsilon) {
  if (!x) return {};
  s.is_a("GroupNorm");
  const std::int64_t channels = x.dim(1).value;
  return Op(s, "InstanceNormalization", {x, s.weight("weight", {channels}), s.weight("bias", {channels})})
      .with("epsilon", static_cast<float>(epsilon))
      .like(x);
}

Value rms_norm(const Scope& s, Value x, double epsilon, bool from_one) {
  if (!x) return {};
  Value scale = cast(s, s.weight("weight", {x.dim(-1).value}), DataType::float32);
  if (from_one) scale = add(s, scale, 1);
  if (s.builder().opset() >= 23)
    return Op(s, "RMSNormalization", {x, cast(s, scale, x.type())})
        .with("axis", -1)
        .with("epsilon", static_cast<float>(epsilon))
        .like(x);
  const Value wide = cast(s, x, DataType::float32);
  const Value square = reduce_mean(s, pow(s, wide, 2), {-1}, true);
  const Value normal = div(s, wide, unary(s, "Sqrt", add(s, square, epsilon)));
  return cast(s, mul(s, normal, scale), x.type());
}

Value batch_norm(const Scope& s, Value x, double epsilon) {
  if (!x) return {};
  s.is_a("BatchNorm2d");
  const std::int64_t channels = x.dim(1).value;
  return Op(s, "BatchNormalization",
            {x, s.weight("weight", {channels}), s.weight("bias", {channels}), s.weight("running_mean", {channels}),
             s.weight("running_var", {channels})})
      .with("epsilon", static_cast<float>(epsilon))
      .like(x);
}

Value conv2d(const Scope& s, Value x, const Convolution& c) {
  if (!x) return {};
  s.is_a("Conv2d");
  if (c.groups <= 0 || x.dim(1).value % c.groups != 0 || c.channels % c.groups != 0) {
    s.builder().fail({ErrorCode::malformed,
                      fmt::format("{} input and {} output channels do not divide into {} groups", x.dim(1).value,
                                  c.channels, c.groups),
                      s.module().path, ""});
    return {};
  }
  std::vector<Value> inputs{x, s.weight("weight", {c.channels, x.dim(1).value / c.groups, c.kernel[0], c.kernel[1]})};
  if (c.bias) inputs.push_back(s.weight("bias", {c.channels}));
  const auto after = c.padding_after.value_or(c.padding);
  Op conv(s, "Conv", inputs);
  conv.with("kernel_shape", std::vector<std::int64_t>(c.kernel.begin(), c.kernel.end()))
      .with("strides", std::vector<std::int64_t>(c.stride.begin(), c.stride.end()))
      .with("pads", std::vector<std::int64_t>{c.padding[0], c.padding[1], after[0], after[1]})
      .with("group", c.groups);
  if (c.dilation != std::array<std::int64_t, 2>{1, 1})
    conv.with("dilations", std::vector<std::int64_t>(c.dilation.begin(), c.dilation.end()));
  const auto count = [&](std::size_t axis) {
    const std::int64_t kernel = (c.kernel[axis] - 1) * c.dilation[axis] + 1;
    return window_count(s, x.dim(static_cast<int>(axis) + 2), kernel - c.padding[axis] - after[axis], c.stride[axis],
                        0);
  };
  return conv.out(x.type(), {x.dim(0), Dim::known(c.channels), count(0), count(1)});
}

Value upscaling_conv2d(const Scope& s, Value x, std::int64_t channels, std::int64_t kernel, bool bias) {
  return transposed_conv2d(s, x, channels, kernel, kernel, 0, bias);
}

Value transposed_conv2d(const Scope& s, Value x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                        std::int64_t padding, bool bias) {
  if (!x) return {};
  s.is_a("ConvTranspose2d");
  std::vector<Value> inputs{x, s.weight("weight", {x.dim(1).value, channels, kernel, kernel})};
  if (bias) inputs.push_back(s.weight("bias", {channels}));
  const auto larger = [&](const Dim& dim) {
    return dim.is_known() ? Dim::known((dim.value - 1) * stride + kernel - 2 * padding) : Dim{};
  };
  Op op(s, "ConvTranspose", inputs);
  op.with("kernel_shape", std::vector<std::int64_t>{kernel, kernel})
      .with("strides", std::vector<std::int64_t>{stride, stride});
  if (padding != 0) op.with("pads", both_sides({padding, padding}));
  return op.out(x.type(), {x.dim(0), Dim::known(channels), larger(x.dim(2)), larger(x.dim(3))});
}

Value conv1d(const Scope& s, Value x, const Convolution1d& c) {
  if (!x) return {};
  const std::int64_t groups = std::max<std::int64_t>(c.groups, 1);
  return conv1d(s, x, s.weight("weight", {c.channels, x.dim(1).value / groups, c.kernel}), c);
}

Value conv1d(const Scope& s, Value x, Value weight, const Convolution1d& c) {
  if (!x) return {};
  s.is_a("Conv1d");
  Builder& b = s.builder();
  if (c.groups < 1 || x.dim(1).value % c.groups != 0 || c.channels % c.groups != 0) {
    b.fail({ErrorCode::malformed,
            fmt::format("{} input and {} output channels do not divide into {} groups", x.dim(1).value, c.channels,
                        c.groups),
            s.module().path, ""});
    return {};
  }
  Dim length = x.dim(2);
  if (length.is_known()) {
    const std::int64_t room = length.value + c.padding[0] + c.padding[1] - c.dilation * (c.kernel - 1) - 1;
    if (room < 0) {
      b.fail({ErrorCode::usage,
              fmt::format("the input is too short: a window of {} does not fit into {}",
                          c.dilation * (c.kernel - 1) + 1, length.value),
              s.module().path, "Ask for a longer one with --shape-config or --input-specs"});
      return {};
    }
    length = Dim::known(room / c.stride + 1);
  } else {
    length = Dim{};
  }
  std::vector<Value> inputs{x, weight};
  if (c.bias) inputs.push_back(s.weight("bias", {c.channels}));
  return Op(s, "Conv", inputs)
      .with("kernel_shape", std::vector<std::int64_t>{c.kernel})
      .with("strides", std::vector<std::int64_t>{c.stride})
      .with("dilations", std::vector<std::int64_t>{c.dilation})
      .with("pads", std::vector<std::int64_t>(c.padding.begin(), c.padding.end()))
      .with("group", c.groups)
      .out(x.type(), {x.dim(0), Dim::known(c.channels), length});
}

Value max_pool2d(const Scope& s, Value x, std::int64_t kernel, std::int64_t stride, std::int64_t padding) {
  if (!x) return {};
  s.is_a("MaxPool2d");
  Op pool(s, "MaxPool", {x});
  pool.with("kernel_shape", std::vector<std::int64_t>{kernel, kernel})
      .with("strides", std::vector<std::int64_t>{stride, stride})
      .with("pads", both_sides({padding, padding}));
  return pool.out(x.type(), {x.dim(0), x.dim(1), window_count(s, x.dim(2), kernel, stride, padding),
                             window_count(s, x.dim(3), kernel, stride, padding)});
}

Value average_pool2d(const Scope& s, Value x, std::int64_t kernel) {
  if (!x) return {};
  s.is_a("AvgPool2d");
  const auto count = [&](const Dim& dim) {
    return dim.is_known() ? Dim::known((dim.value + kernel - 1) / kernel) : Dim{};
  };
  const auto excess = [&](const Dim& dim) { return dim.is_known() ? (kernel - dim.value % kernel) % kernel : 0; };
  return Op(s, "AveragePool", {x})
      .with("kernel_shape", std::vector<std::int64_t>{kernel, kernel})
      .with("strides", std::vector<std::int64_t>{kernel, kernel})
      .with("pads", std::vector<std::int64_t>{0, 0, excess(x.dim(2)), excess(x.dim(3))})
      .with("count_include_pad", 0)
      .out(x.type(), {x.dim(0), x.dim(1), count(x.dim(2)), count(x.dim(3))});
}

Value resize(const Scope& s, Value x, std::array<std::int64_t, 2> size, Interpolation interpolation) {
  if (!x) return {};
  Builder& b = s.builder();
  const auto [height, width] = size;
  if (x.dim(2).value == height && x.dim(3).value == width) return x;
  const std::int64_t batch = x.dim(0).value, channels = x.dim(1).value;
  const Value sizes = x.dim(0).is_known() ? b.integers({batch, channels, height, width})
                                          : concat(s, {nn::size(s, x, 0), b.integers({channels, height, width})}, 0);
  const bool nearest = interpolation == Interpolation::nearest;
  if (!sizes) return {};
  Op op(s, "Resize", {x});
  op.at(3, sizes)
      .with("mode", nearest                                    ? "nearest"
                    : interpolation == Interpolation::bilinear ? "linear"
                                                               : "cubic")
      .with("coordinate_transformation_mode", nearest ? "asymmetric" : "half_pixel");
  if (nearest) op.with("nearest_mode", "floor");
  if (interpolation == Interpolation::bicubic) op.with("cubic_coeff_a", -0.75F);
  return op.out(x.type(), {x.dim(0), x.dim(1), Dim::known(height), Dim::known(width)});
}

Value global_average_pool(const Scope& s, Value x) {
  s.is_a("AdaptiveAvgPool2d");
  return Op(s, "GlobalAveragePool", {x}).out(x.type(), {x.dim(0), x.dim(1), Dim::known(1), Dim::known(1)});
}

}  // namespace mk::nn
