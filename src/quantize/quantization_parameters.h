#pragma once
// Scales and zero points, and weights in integers: real = scale * (quantized - zero point), as ONNX's QuantizeLinear
// and DequantizeLinear have it; values are rounded half to even and saturate.
//
// Weights are never copied: their ranges are read in blocks, and quantized bytes are made while they are written.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"
#include "quantize/tensor_ranges.h"

namespace mk {

// int8, uint8, int16, uint16.
bool is_quantized_type(DataType type);

struct QuantizedLimits {
  std::int32_t low = 0;
  std::int32_t high = 0;
};
// Symmetric signed types leave out their lowest number. `reduced` has one bit less, for processors whose 8-bit products
// saturate in 16 bits.
QuantizedLimits quantized_limits(DataType type, bool symmetric, bool reduced = false);

struct QuantizationParameters {
  float scale = 1;
  std::int32_t zero_point = 0;
  bool operator==(const QuantizationParameters&) const = default;
};

// The range is widened to contain 0; a symmetric one to [-m, m], with the zero point in the middle of the type. A range
// whose scale would not be a normal float32 (empty, denormal) has scale 1 and zero point 0.
QuantizationParameters quantization_parameters(TensorRange range, DataType type, bool symmetric, bool reduced = false);

// The range of each channel along `axis`, or the one range of the tensor. NaN and infinite elements do not count;
// ranges contain 0. For float32, float16, bfloat16 and float64.
Result<std::vector<TensorRange>> weight_ranges(const Tensor& tensor, std::optional<std::size_t> axis);

// One for each range. A channel without a usable scale (all zero, denormal) has the largest scale of the others, so
// that a bias of that channel keeps its precision.
std::vector<QuantizationParameters> weight_parameters(std::span<const TensorRange> ranges, DataType type,
                                                      bool symmetric, bool reduced = false);

// The tensor's elements in `type`, made when read. `parameters`: one, or one for each channel along `axis`.
Bytes quantized_weight(const Tensor& tensor, DataType type, std::vector<QuantizationParameters> parameters,
                       std::optional<std::size_t> axis);

// Scales and zero points as tensors: a scalar, or one dimension for several.
Tensor scale_tensor(std::string name, std::span<const QuantizationParameters> parameters, bool scalar);
Tensor zero_point_tensor(std::string name, std::span<const QuantizationParameters> parameters, DataType type,
                         bool scalar);

}  // namespace mk
