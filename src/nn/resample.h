#pragma once
// Learned tables of positions, resampled to another grid as torch.nn.functional.interpolate does it (align_corners
// false): two products with constant matrices, so that every opset and every filter of PyTorch is served.

#include <array>
#include <cstdint>

#include "nn/builder.h"

namespace mk::nn {

enum class Resampling { bilinear, bicubic, antialiased_bicubic };

// [from height * from width, channels] -> [to height * to width, channels]; the table itself where the grids agree.
Value resample(const Scope& s, Value table, std::array<std::int64_t, 2> from, std::array<std::int64_t, 2> to,
               Resampling kind);

}  // namespace mk::nn
