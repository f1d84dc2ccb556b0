#include "nn/resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/ops.h"

namespace mk::nn {
namespace {

// Keys' cubic convolution kernel.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// Row i has what each of `from` samples gives to sample i of `to`.
std::vector<float> weights(std::int64_t from, std::int64_t to, Resampling kind) {
  std::vector<float> matrix(static_cast<std::size_t>(from * to), 0);
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (std::int64_t i = 0; i < to; ++i) {
    const auto give = [&](std::int64_t at, double weight) {
      at = std::clamp<std::int64_t>(at, 0, from - 1);
      matrix[static_cast<std::size_t>(i * from + at)] += static_cast<float>(weight);
    };
    const double center = (static_cast<double>(i) + 0.5) * scale;
    if (kind == Resampling::antialiased_bicubic) {  // Pillow's: wider where it makes smaller, and normalized
      const double stretch = std::max(scale, 1.0), support = 2 * stretch;
      const auto first = std::max<std::int64_t>(static_cast<std::int64_t>(center - support + 0.5), 0);
      const auto last = std::min<std::int64_t>(static_cast<std::int64_t>(center + support + 0.5), from);
      double total = 0;
      for (std::int64_t j = first; j < last; ++j)
        total += cubic((static_cast<double>(j) - center + 0.5) / stretch, -0.5);
      for (std::int64_t j = first; j < last; ++j)
        give(j, cubic((static_cast<double>(j) - center + 0.5) / stretch, -0.5) / total);
      continue;
    }
    const double source = kind == Resampling::bilinear ? std::max(center - 0.5, 0.0) : center - 0.5;
    const double below = std::floor(source), part = source - below;
    const auto at = static_cast<std::int64_t>(below);
    if (kind == Resampling::bilinear) {
      give(at, 1 - part);
      give(at + 1, part);
      continue;
    }
    for (std::int64_t tap = -1; tap <= 2; ++tap) give(at + tap, cubic(part - static_cast<double>(tap), -0.75));
  }
  return matrix;
}

Value matrix(const Scope& s, DataType type, std::int64_t from, std::int64_t to, Resampling kind) {
  Bytes data = owned_values(weights(from, to, kind));
  if (type != DataType::float32) data = cast(std::move(data), DataType::float32, type);
  return s.builder().constant(fmt::format("constant/resample/{}/{}/{}", from, to, static_cast<int>(kind)), type,
                              {to, from}, std::move(data));
}

}  // namespace

Value resample(const Scope& s, Value table, std::array<std::int64_t, 2> from, std::array<std::int64_t, 2> to,
               Resampling kind) {
  if (!table || from == to) return table;
  const std::int64_t channels = table.dim(-1).value;
  Value x = matmul(s, matrix(s, table.type(), from[0], to[0], kind), reshape(s, table, {from[0], from[1] * channels}));
  x = matmul(s, matrix(s, table.type(), from[1], to[1], kind), reshape(s, x, {to[0], from[1], channels}));
  return reshape(s, x, {to[0] * to[1], channels});
}

}  // namespace mk::nn
