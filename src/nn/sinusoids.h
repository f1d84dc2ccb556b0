#pragma once
// Tables of sines and cosines that stand for positions.

#include <cstdint>

#include "graph/tensor.h"

namespace mk::nn {

// Vaswani et al. 2017, 3.5: column 2j is sin(row / 10000^(2j / width)), column 2j + 1 the cosine of the same.
// float32 [rows, width], computed when it is read.
Bytes interleaved_sinusoids(std::int64_t rows, std::int64_t width);
// The same columns in another order: all sines, then all cosines.
Bytes split_sinusoids(std::int64_t rows, std::int64_t width);
// As tensor2tensor has them: of width / 2 = h frequencies 10000^(-j / (h - 1)), all sines, then all cosines, a zero
// where the width is odd. The row `padding` is of zeros; negative: none is.
Bytes half_sinusoids(std::int64_t rows, std::int64_t width, std::int64_t padding = -1);

}  // namespace mk::nn
