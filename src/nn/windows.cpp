#include "nn/windows.h"

#include <fmt/format.h>

#include <vector>

#include "nn/ops.h"

namespace mk::nn {

Value partition_windows(const Scope& s, Value x, std::int64_t window) {
  if (!x) return {};
  const std::int64_t columns = x.dim(2).value / window, channels = x.dim(3).value;
  x = reshape(s, x, {rest, window, columns, window * channels});
  return reshape(s, transpose(s, x, {0, 2, 1, 3}), {rest, window * window, channels});
}

Value merge_windows(const Scope& s, Value windows, std::int64_t window, Grid grid) {
  if (!windows) return {};
  const std::int64_t channels = windows.dim(2).value;
  Value x = reshape(s, windows, {rest, grid[1] / window, window, window * channels});
  return reshape(s, transpose(s, x, {0, 2, 1, 3}), {rest, grid[0], grid[1], channels});
}

Value pad_grid(const Scope& s, Value x, std::int64_t rows, std::int64_t columns) {
  if (!x || (rows == 0 && columns == 0)) return x;
  Builder& b = s.builder();
  return Op(s, "Pad", {x, b.integers({0, 0, 0, 0, 0, rows, columns, 0}), b.scalar(x.type(), 0)})
      .out(x.type(), {x.dim(0), Dim::known(x.dim(1).value + rows), Dim::known(x.dim(2).value + columns), x.dim(3)});
}

Value crop_grid(const Scope& s, Value x, Grid grid) {
  if (!x) return {};
  if (x.dim(1).value != grid[0]) x = slice(s, x, 1, 0, grid[0]);
  if (x && x.dim(2).value != grid[1]) x = slice(s, x, 2, 0, grid[1]);
  return x;
}

Value roll_grid(const Scope& s, Value x, std::int64_t shift) {
  for (const int axis : {1, 2}) {
    if (!x || shift == 0) return x;
    const std::int64_t size = x.dim(axis).value, first = ((shift % size) + size) % size;
    x = concat(s, {slice(s, x, axis, first, size), slice(s, x, axis, 0, first)}, axis);
  }
  return x;
}

Value shifted_window_mask(const Scope& s, Grid grid, std::int64_t window, std::int64_t shift, float value) {
  const auto region = [&](std::int64_t at, std::int64_t size) {
    return at < size - window ? 0 : at < size - shift ? 1 : 2;
  };
  const std::int64_t rows = grid[0] / window, columns = grid[1] / window, tokens = window * window;
  std::vector<float> mask;
  mask.reserve(static_cast<std::size_t>(rows * columns * tokens * tokens));
  std::vector<int> regions(static_cast<std::size_t>(tokens));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t i = 0; i < tokens; ++i)
        regions[static_cast<std::size_t>(i)] =
            3 * region(row * window + i / window, grid[0]) + region(column * window + i % window, grid[1]);
      for (const int from : regions)
        for (const int to : regions) mask.push_back(from == to ? 0 : value);
    }
  Builder& b = s.builder();
  Bytes data = owned_values(mask);
  if (b.float_type() != DataType::float32) data = cast(std::move(data), DataType::float32, b.float_type());
  return b.constant(fmt::format("constant/window_mask/{}x{}/{}/{}/{}", grid[0], grid[1], window, shift, value),
                    b.float_type(), {rows * columns, 1, tokens, tokens}, std::move(data));
}

Value window_distances(const Scope& s, Grid window) {
  const auto [rows, columns] = window;
  const std::int64_t tokens = rows * columns;
  std::vector<std::int64_t> index;
  index.reserve(static_cast<std::size_t>(tokens * tokens));
  for (std::int64_t from = 0; from < tokens; ++from)
    for (std::int64_t to = 0; to < tokens; ++to)
      index.push_back((from / columns - to / columns + rows - 1) * (2 * columns - 1) + from % columns - to % columns +
                      columns - 1);
  return s.builder().constant(fmt::format("constant/window_distances/{}x{}", rows, columns), DataType::int64,
                              {tokens * tokens}, owned_values(index));
}

Value merge_neighbours(const Scope& s, Value x) {
  if (!x) return {};
  const std::int64_t columns = x.dim(2).value / 2, channels = x.dim(3).value;
  const std::int64_t merged = x.dim(1).value / 2 * columns;
  x = transpose(s, reshape(s, x, {rest, 2, columns, 2, channels}), {0, 2, 3, 1, 4});
  return reshape(s, x, {rest, merged, 4 * channels});
}

}  // namespace mk::nn
