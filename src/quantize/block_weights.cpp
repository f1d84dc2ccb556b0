#include "quantize/block_weights.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "graph/float_formats.h"
#include "quantize/quantization_kernels.h"
#include "quantize/tensor_ranges.h"

namespace mk {
namespace {

struct Shape2 {
  std::uint64_t rows = 0;  // K
  std::uint64_t columns = 0;
  std::uint64_t blocks = 0;  // in a column
};

// Scales and zero points, [columns, blocks].
struct BlockParameters {
  std::vector<float> scales;
  std::vector<std::uint8_t> zero_points;
};

// Rows of the packed weight are columns of the matrix: read as such.
class PackedBytes final : public ByteSource {
 public:
  PackedBytes(Bytes columns, Shape2 shape, BlockFormat format, std::shared_ptr<const BlockParameters> parameters)
      : columns_(std::move(columns)),
        shape_(shape),
        format_(format),
        blob_(format.block_size * static_cast<std::uint64_t>(format.bits) / 8),
        parameters_(std::move(parameters)) {}

  std::uint64_t size() const override { return shape_.columns * shape_.blocks * blob_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t column_bytes = shape_.blocks * blob_;
    const std::uint64_t at_once = std::max<std::uint64_t>(1, (256u << 10) / (shape_.rows * sizeof(float)));
    std::vector<float> values;
    std::vector<std::byte> packed;
    while (!out.empty()) {
      const std::uint64_t first = offset / column_bytes;
      const std::uint64_t skip = offset % column_bytes;
      const std::uint64_t count = std::min((skip + out.size() + column_bytes - 1) / column_bytes, at_once);
      values.resize(static_cast<std::size_t>(count * shape_.rows));
      MK_CHECK(columns_->read(first * shape_.rows * sizeof(float), std::as_writable_bytes(std::span(values))));
      packed.assign(static_cast<std::size_t>(count * column_bytes), std::byte{0});
      for (std::uint64_t i = 0; i < count; ++i)
        pack(first + i, values.data() + i * shape_.rows, packed.data() + i * column_bytes);
      const auto length = std::min<std::size_t>(packed.size() - static_cast<std::size_t>(skip), out.size());
      std::copy_n(packed.begin() + static_cast<std::ptrdiff_t>(skip), length, out.begin());
      out = out.subspan(length);
      offset += length;
    }
    return {};
  }

 private:
  void pack(std::uint64_t column, const float* values, std::byte* to) const {
    for (std::uint64_t block = 0; block < shape_.blocks; ++block) {
      const std::uint64_t begin = block * format_.block_size;
      const auto count = static_cast<std::size_t>(std::min(format_.block_size, shape_.rows - begin));
      const std::uint64_t index = column * shape_.blocks + block;
      const float scale = parameters_->scales[index];
      const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
      const float zero_point = parameters_->zero_points[index];
      auto* blob = reinterpret_cast<std::uint8_t*>(to + block * blob_);
      if (format_.bits == 8) {
        round_steps(values + begin, count, inverse, zero_point, 255, blob);
        continue;
      }
      std::vector<std::uint8_t>& numbers = scratch();
      numbers.resize(count + 1);
      round_steps(values + begin, count, inverse, zero_point, 15, numbers.data());
      numbers[count] = parameters_->zero_points[index];
      for (std::size_t i = 0; i < count; i += 2)
        blob[i / 2] = static_cast<std::uint8_t>(numbers[i] | (numbers[i + 1] << 4));
    }
  }

  static std::vector<std::uint8_t>& scratch() {
    thread_local std::vector<std::uint8_t> numbers;
    return numbers;
  }

  Bytes columns_;  // float32, column after column
  Shape2 shape_;
  BlockFormat format_;
  std::uint64_t blob_;
  std::shared_ptr<const BlockParameters> parameters_;
};

// Scales are stored in the weight's type, and used as stored.
float stored(float scale, DataType type) {
  return type == DataType::float16 ? float16_value(float16_bits(scale)) : scale;
}

void set_parameters(TensorRange range, const BlockFormat& format, DataType type, float& scale,
                    std::uint8_t& zero_point) {
  const auto middle = static_cast<float>(1 << (format.bits - 1));
  if (format.symmetric) {
    const float extreme = std::abs(range.high) > std::abs(range.low) ? range.high : range.low;
    scale = stored(extreme / -middle, type);
    zero_point = static_cast<std::uint8_t>(middle);
    return;
  }
  const float most = 2 * middle - 1;
  const float wanted = (range.high - range.low) / most;
  const float shift = wanted != 0 ? -range.low / wanted : range.low;
  scale = stored(wanted, type);
  zero_point = static_cast<std::uint8_t>(std::clamp(std::round(shift), 0.0f, most));
}

// The ranges of all blocks, [columns, blocks], read row by row.
Result<std::vector<TensorRange>> ranges_of_rows(const ByteSource& source, const Shape2& shape,
                                                std::uint64_t block_size) {
  const auto columns = static_cast<std::size_t>(shape.columns);
  std::vector<float> lows(columns), highs(columns);
  std::vector<TensorRange> ranges(static_cast<std::size_t>(shape.columns * shape.blocks));
  const std::uint64_t at_once = std::max<std::uint64_t>(1, (256u << 10) / (shape.columns * sizeof(float)));
  std::vector<float> rows;
  for (std::uint64_t block = 0; block < shape.blocks; ++block) {
    std::fill(lows.begin(), lows.end(), 0.0f);
    std::fill(highs.begin(), highs.end(), 0.0f);
    const std::uint64_t end = std::min(shape.rows, (block + 1) * block_size);
    for (std::uint64_t row = block * block_size; row < end;) {
      const std::uint64_t count = std::min(at_once, end - row);
      rows.resize(static_cast<std::size_t>(count) * columns);
      MK_CHECK(source.read(row * shape.columns * sizeof(float), std::as_writable_bytes(std::span(rows))));
      for (std::uint64_t i = 0; i < count; ++i)
        widen_ranges(rows.data() + i * columns, columns, lows.data(), highs.data());
      row += count;
    }
    for (std::size_t column = 0; column < columns; ++column)
      ranges[column * static_cast<std::size_t>(shape.blocks) + block] = {lows[column], highs[column]};
  }
  return ranges;
}

// The same where columns lie one after the other.
Result<std::vector<TensorRange>> ranges_of_columns(const ByteSource& source, const Shape2& shape,
                                                   std::uint64_t block_size) {
  std::vector<TensorRange> ranges(static_cast<std::size_t>(shape.columns * shape.blocks));
  std::vector<float> values(static_cast<std::size_t>(shape.rows));
  for (std::uint64_t column = 0; column < shape.columns; ++column) {
    MK_CHECK(source.read(column * shape.rows * sizeof(float), std::as_writable_bytes(std::span(values))));
    for (std::uint64_t block = 0; block < shape.blocks; ++block) {
      const std::uint64_t begin = block * block_size;
      TensorRange& range = ranges[static_cast<std::size_t>(column * shape.blocks + block)];
      widen_range(values.data() + begin, static_cast<std::size_t>(std::min(block_size, shape.rows - begin)), range.low,
                  range.high);
    }
  }
  return ranges;
}

Tensor scales_of(const BlockParameters& parameters, DataType type) {
  const auto count = static_cast<std::int64_t>(parameters.scales.size());
  return make_tensor({}, type, {count}, cast(owned_values(parameters.scales), DataType::float32, type));
}

Tensor zero_points_of(const BlockParameters& parameters, const Shape2& shape, const BlockFormat& format) {
  const std::uint64_t row = format.bits == 8 ? shape.blocks : (shape.blocks + 1) / 2;
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(shape.columns * row));
  for (std::uint64_t column = 0; column < shape.columns; ++column) {
    const std::uint8_t* from = parameters.zero_points.data() + column * shape.blocks;
    std::uint8_t* to = packed.data() + column * row;
    for (std::uint64_t block = 0; block < shape.blocks; ++block) {
      if (format.bits == 8) {
        to[block] = from[block];
      } else if (block % 2 == 0) {
        to[block / 2] = static_cast<std::uint8_t>(from[block] | (8 << 4));
      } else {
        to[block / 2] = static_cast<std::uint8_t>((to[block / 2] & 15) | (from[block] << 4));
      }
    }
  }
  return make_tensor({}, DataType::uint8, {static_cast<std::int64_t>(packed.size())}, owned_values(packed));
}

}  // namespace

Result<BlockWeight> pack_blocks(const Tensor& weight, bool transposed_weight, const BlockFormat& format) {
  Shape2 shape;
  const std::size_t rank = weight.dims.size();
  shape.rows = static_cast<std::uint64_t>(weight.dims[rank - (transposed_weight ? 1 : 2)]);
  shape.columns = static_cast<std::uint64_t>(weight.dims[rank - (transposed_weight ? 2 : 1)]);
  shape.blocks = (shape.rows + format.block_size - 1) / format.block_size;
  const Bytes source = cast(weight.data, weight.type, DataType::float32);
  MK_TRY(const auto ranges, transposed_weight ? ranges_of_columns(*source, shape, format.block_size)
                                              : ranges_of_rows(*source, shape, format.block_size));
  const auto parameters = std::make_shared<BlockParameters>();
  parameters->scales.resize(ranges.size());
  parameters->zero_points.resize(ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i)
    set_parameters(ranges[i], format, weight.type, parameters->scales[i], parameters->zero_points[i]);

  BlockWeight made;
  const Bytes columns = transposed_weight ? source : transposed(source, 1, shape.rows, shape.columns, sizeof(float));
  const std::uint64_t blob = format.block_size * static_cast<std::uint64_t>(format.bits) / 8;
  made.packed = make_tensor({}, DataType::uint8,
                            {static_cast<std::int64_t>(shape.columns), static_cast<std::int64_t>(shape.blocks),
                             static_cast<std::int64_t>(blob)},
                            std::make_shared<PackedBytes>(columns, shape, format, parameters));
  made.scales = scales_of(*parameters, weight.type);
  if (!format.symmetric) made.zero_points = zero_points_of(*parameters, shape, format);
  return made;
}

}  // namespace mk
