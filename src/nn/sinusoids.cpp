#include "nn/sinusoids.h"

#include <cmath>
#include <cstring>

namespace mk::nn {

namespace {

template <typename At>
Bytes table(std::int64_t rows, std::int64_t width, At at) {
  const auto fill = [rows, width, at](std::span<std::byte> out) -> Status {
    std::byte* to = out.data();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < width; ++column, to += sizeof(float)) {
        const float value = at(row, column);
        std::memcpy(to, &value, sizeof value);
      }
    }
    return {};
  };
  return computed(static_cast<std::uint64_t>(rows * width) * sizeof(float), fill);
}

}  // namespace

Bytes interleaved_sinusoids(std::int64_t rows, std::int64_t width) {
  return table(rows, width, [=](std::int64_t row, std::int64_t column) {
    const double pair = static_cast<double>(column - column % 2) / static_cast<double>(width);
    const double angle = static_cast<double>(row) / std::pow(10000.0, pair);
    return static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
  });
}

Bytes split_sinusoids(std::int64_t rows, std::int64_t width) {
  const std::int64_t sines = (width + 1) / 2;
  return table(rows, width, [=](std::int64_t row, std::int64_t column) {
    const std::int64_t even = 2 * (column < sines ? column : column - sines);
    const double angle =
        static_cast<double>(row) / std::pow(10000.0, static_cast<double>(even) / static_cast<double>(width));
    return static_cast<float>(column < sines ? std::sin(angle) : std::cos(angle));
  });
}

Bytes half_sinusoids(std::int64_t rows, std::int64_t width, std::int64_t padding) {
  const std::int64_t half = width / 2;
  const auto step = static_cast<float>(std::log(10000.0) / static_cast<double>(half - 1));
  return table(rows, width, [=](std::int64_t row, std::int64_t column) {
    if (row == padding || column >= 2 * half) return 0.0F;
    // In float32, as the original rounds them.
    const float frequency = std::exp(-step * static_cast<float>(column % half));
    const float angle = static_cast<float>(row) * frequency;
    return column < half ? std::sin(angle) : std::cos(angle);
  });
}

}  // namespace mk::nn
