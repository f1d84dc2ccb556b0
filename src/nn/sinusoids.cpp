#include "nn/sinusoids.h"

#include <cmath>
#include <cstring>

namespace mk::nn {

Bytes interleaved_sinusoids(std::int64_t rows, std::int64_t width) {
  const auto fill = [rows, width](std::span<std::byte> out) -> Status {
    std::byte* to = out.data();
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < width; ++column, to += sizeof(float)) {
        const std::int64_t even = column - column % 2;
        const double pair = static_cast<double>(even) / static_cast<double>(width);
        const double angle = static_cast<double>(row) / std::pow(10000.0, pair);
        const auto value = static_cast<float>(column % 2 == 0 ? std::sin(angle) : std::cos(angle));
        std::memcpy(to, &value, sizeof value);
      }
    }
    return {};
  };
  return computed(static_cast<std::uint64_t>(rows * width) * sizeof(float), fill);
}

}  // namespace mk::nn
