#pragma once
// Windows of a grid of tokens (Liu et al. 2021, Swin): partition, its reverse, the cyclic shift and its mask, and the
// positions of a window's tokens to each other. Nothing here has more than five axes.

#include <array>
#include <cstdint>

#include "nn/builder.h"

namespace mk::nn {

using Grid = std::array<std::int64_t, 2>;  // height, width

// [batch, height, width, channels] -> [batch * windows, window * window, channels], and back. The grid must be a
// multiple of the window.
Value partition_windows(const Scope& s, Value x, std::int64_t window);
Value merge_windows(const Scope& s, Value windows, std::int64_t window, Grid grid);

// Zeros behind the rows and columns of [batch, height, width, channels].
Value pad_grid(const Scope& s, Value x, std::int64_t rows, std::int64_t columns);
// The first rows and columns.
Value crop_grid(const Scope& s, Value x, Grid grid);
// torch.roll by -shift along height and width; a negative shift rolls the other way.
Value roll_grid(const Scope& s, Value x, std::int64_t shift);

// [windows, 1, window * window, window * window]: `value` where two tokens of a window were not neighbours before the
// grid was rolled by `shift`, else 0.
Value shifted_window_mask(const Scope& s, Grid grid, std::int64_t window, std::int64_t shift, float value);

// Which of the (2 rows - 1) * (2 columns - 1) distances two tokens of a window have: int64 [tokens * tokens].
Value window_distances(const Scope& s, Grid window);

// 2 x 2 neighbours side by side in the channels, column by column: [batch, height, width, channels] ->
// [batch, height / 2 * width / 2, 4 * channels].
Value merge_neighbours(const Scope& s, Value x);

}  // namespace mk::nn
