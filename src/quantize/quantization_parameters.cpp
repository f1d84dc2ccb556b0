#include "quantize/quantization_parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "graph/float_formats.h"
#include "quantize/quantization_kernels.h"

namespace mk {
namespace {

struct TypeRow {
  DataType type;
  QuantizedLimits full;
  QuantizedLimits symmetric;
  QuantizedLimits reduced;
};
constexpr std::array types{
    TypeRow{DataType::uint8, {0, 255}, {0, 255}, {0, 127}},
    TypeRow{DataType::int8, {-128, 127}, {-127, 127}, {-64, 64}},
    TypeRow{DataType::uint16, {0, 65535}, {0, 65535}, {0, 32767}},
    TypeRow{DataType::int16, {-32768, 32767}, {-32767, 32767}, {-16384, 16384}},
};

const TypeRow* row_of(DataType type) {
  const auto* row = std::find_if(types.begin(), types.end(), [&](const TypeRow& r) { return r.type == type; });
  return row == types.end() ? nullptr : row;
}

constexpr std::size_t block_elements = 64 * 1024;

// A tensor as [outer, channels, inner] around an axis; without one there is one channel.
struct Layout {
  std::uint64_t channels = 1;
  std::uint64_t inner = 1;
};

Layout layout_of(const Tensor& tensor, std::optional<std::size_t> axis) {
  if (!axis) return {1, tensor.element_count()};
  Layout layout{static_cast<std::uint64_t>(tensor.dims[*axis]), 1};
  for (std::size_t i = *axis + 1; i < tensor.dims.size(); ++i)
    layout.inner *= static_cast<std::uint64_t>(tensor.dims[i]);
  return layout;
}

// Calls visit(position in the block, length, channel) for runs of one channel in `count` elements from `first`.
template <typename Visit>
void for_each_run(const Layout& layout, std::uint64_t first, std::size_t count, Visit&& visit) {
  std::size_t done = 0;
  while (done < count) {
    const std::uint64_t element = first + done;
    const std::uint64_t inside = element % layout.inner;
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(layout.inner - inside, count - done));
    visit(done, length, static_cast<std::size_t>(element / layout.inner % layout.channels));
    done += length;
  }
}

// The same for rows of neighbouring channels, where inner is 1: visit(position, length, first channel).
template <typename Visit>
void for_each_row(const Layout& layout, std::uint64_t first, std::size_t count, Visit&& visit) {
  std::size_t done = 0;
  while (done < count) {
    const std::uint64_t channel = (first + done) % layout.channels;
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(layout.channels - channel, count - done));
    visit(done, length, static_cast<std::size_t>(channel));
    done += length;
  }
}

Bytes float_data(const Tensor& tensor) { return cast(tensor.data, tensor.type, DataType::float32); }

Status read_floats(const ByteSource& source, std::uint64_t first, std::span<float> values) {
  return source.read(first * sizeof(float), std::as_writable_bytes(values));
}

class QuantizedBytes final : public ByteSource {
 public:
  QuantizedBytes(const Tensor& tensor, DataType type, std::vector<QuantizationParameters> parameters,
                 std::optional<std::size_t> axis)
      : source_(float_data(tensor)),
        type_(type),
        limits_(quantized_limits(type, false)),
        layout_(layout_of(tensor, parameters.size() > 1 ? axis : std::nullopt)),
        elements_(tensor.element_count()),
        width_(static_cast<std::uint64_t>(bits_of(type) / 8)),
        parameters_(std::move(parameters)) {
    for (const QuantizationParameters& channel : parameters_) {
      scales_.push_back(channel.scale);
      zero_points_.push_back(channel.zero_point);
    }
  }

  std::uint64_t size() const override { return elements_ * width_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<float> values;
    std::vector<std::byte> whole;
    while (!out.empty()) {
      const std::uint64_t first = offset / width_;
      const std::uint64_t skip = offset % width_;
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>((skip + out.size() + width_ - 1) / width_, block_elements));
      values.resize(count);
      MK_CHECK(read_floats(*source_, first, values));
      whole.resize(count * width_);
      quantize(first, values, whole.data());
      const auto length = std::min<std::size_t>(whole.size() - skip, out.size());
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(skip), length, out.begin());
      out = out.subspan(length);
      offset += length;
    }
    return {};
  }

 private:
  void quantize(std::uint64_t first, std::span<const float> values, std::byte* to) const {
    switch (type_) {
      case DataType::int8:
        return quantize_as<std::int8_t>(first, values, to);
      case DataType::uint8:
        return quantize_as<std::uint8_t>(first, values, to);
      case DataType::int16:
        return quantize_as<std::int16_t>(first, values, to);
      default:
        return quantize_as<std::uint16_t>(first, values, to);
    }
  }

  template <typename Integer>
  void quantize_as(std::uint64_t first, std::span<const float> values, std::byte* bytes) const {
    auto* to = reinterpret_cast<Integer*>(bytes);
    if (layout_.inner == 1 && layout_.channels > 1) {
      for_each_row(layout_, first, values.size(), [&](std::size_t at, std::size_t length, std::size_t channel) {
        quantize_row(values.data() + at, length, scales_.data() + channel, zero_points_.data() + channel, limits_.low,
                     limits_.high, to + at);
      });
      return;
    }
    for_each_run(layout_, first, values.size(), [&](std::size_t at, std::size_t length, std::size_t channel) {
      const QuantizationStep step{scales_[channel], zero_points_[channel], limits_.low, limits_.high};
      quantize_run(values.data() + at, length, step, to + at);
    });
  }

  Bytes source_;
  DataType type_;
  QuantizedLimits limits_;
  Layout layout_;
  std::uint64_t elements_;
  std::uint64_t width_;
  std::vector<QuantizationParameters> parameters_;
  std::vector<float> scales_;
  std::vector<std::int32_t> zero_points_;
};

std::vector<std::int64_t> parameter_dims(std::size_t count, bool scalar) {
  if (scalar) return {};
  return {static_cast<std::int64_t>(count)};
}

}  // namespace

bool is_quantized_type(DataType type) { return row_of(type) != nullptr; }

QuantizedLimits quantized_limits(DataType type, bool symmetric, bool reduced) {
  const TypeRow* row = row_of(type);
  if (!row) return {};
  if (reduced) return row->reduced;
  return symmetric ? row->symmetric : row->full;
}

QuantizationParameters quantization_parameters(TensorRange range, DataType type, bool symmetric, bool reduced) {
  const QuantizedLimits limits = quantized_limits(type, symmetric, reduced);
  double low = std::min(range.low, 0.0f);
  double high = std::max(range.high, 0.0f);
  if (symmetric) {
    high = std::max(-low, high);
    low = -high;
  }
  const double steps = static_cast<double>(limits.high) - limits.low;
  const double scale = (high - low) / steps;
  if (!(scale >= std::numeric_limits<float>::min())) return {};
  // nearbyint rounds half to even, as the operators do.
  const double zero_point = symmetric ? std::nearbyint((static_cast<double>(limits.low) + limits.high) / 2)
                                      : std::nearbyint(limits.low - low / scale);
  return {static_cast<float>(scale), static_cast<std::int32_t>(zero_point)};
}

Result<std::vector<TensorRange>> weight_ranges(const Tensor& tensor, std::optional<std::size_t> axis) {
  if (!tensor.data) return fail(ErrorCode::failed, "the weight has no data", "tensor " + tensor.name);
  if (tensor.type != DataType::float32 && !float_conversion(tensor.type, DataType::float32))
    return fail(ErrorCode::unsupported, "a weight of " + std::string(name_of(tensor.type)), "tensor " + tensor.name);
  const Layout layout = layout_of(tensor, axis);
  std::vector<float> lows(static_cast<std::size_t>(layout.channels), 0.0f);
  std::vector<float> highs = lows;
  const Bytes source = float_data(tensor);
  const std::uint64_t elements = tensor.element_count();
  std::vector<float> block;
  for (std::uint64_t first = 0; first < elements; first += block.size()) {
    block.resize(static_cast<std::size_t>(std::min<std::uint64_t>(block_elements, elements - first)));
    MK_CHECK(read_floats(*source, first, block));
    if (layout.inner == 1) {
      for_each_row(layout, first, block.size(), [&](std::size_t at, std::size_t length, std::size_t channel) {
        widen_ranges(block.data() + at, length, lows.data() + channel, highs.data() + channel);
      });
    } else {
      for_each_run(layout, first, block.size(), [&](std::size_t at, std::size_t length, std::size_t channel) {
        widen_range(block.data() + at, length, lows[channel], highs[channel]);
      });
    }
  }
  std::vector<TensorRange> ranges(lows.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) ranges[i] = {lows[i], highs[i]};
  return ranges;
}

std::vector<QuantizationParameters> weight_parameters(std::span<const TensorRange> ranges, DataType type,
                                                      bool symmetric, bool reduced) {
  std::vector<QuantizationParameters> parameters;
  parameters.reserve(ranges.size());
  std::vector<std::size_t> dead;
  float largest = 0;
  for (const TensorRange& range : ranges) {
    const QuantizationParameters channel = quantization_parameters(range, type, symmetric, reduced);
    if (channel == QuantizationParameters{} && std::max(-range.low, range.high) < 1) {
      dead.push_back(parameters.size());
    } else {
      largest = std::max(largest, channel.scale);
    }
    parameters.push_back(channel);
  }
  const QuantizationParameters nothing = quantization_parameters({-1, 1}, type, symmetric, reduced);
  for (const std::size_t channel : dead) {
    if (ranges.size() > 1) parameters[channel] = {largest > 0 ? largest : 1.0f, symmetric ? nothing.zero_point : 0};
  }
  return parameters;
}

Bytes quantized_weight(const Tensor& tensor, DataType type, std::vector<QuantizationParameters> parameters,
                       std::optional<std::size_t> axis) {
  return std::make_shared<QuantizedBytes>(tensor, type, std::move(parameters), axis);
}

Tensor scale_tensor(std::string name, std::span<const QuantizationParameters> parameters, bool scalar) {
  std::vector<float> scales;
  for (const QuantizationParameters& channel : parameters) scales.push_back(channel.scale);
  return make_tensor(std::move(name), DataType::float32, parameter_dims(scales.size(), scalar), owned_values(scales));
}

Tensor zero_point_tensor(std::string name, std::span<const QuantizationParameters> parameters, DataType type,
                         bool scalar) {
  std::vector<std::int32_t> zero_points;
  for (const QuantizationParameters& channel : parameters) zero_points.push_back(channel.zero_point);
  return make_tensor(std::move(name), type, parameter_dims(zero_points.size(), scalar),
                     cast(owned_values(zero_points), DataType::int32, type));
}

}  // namespace mk
