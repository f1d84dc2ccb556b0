#pragma once
// Tables of sines and cosines that stand for positions.

#include <cstdint>

#include "graph/tensor.h"

namespace mk::nn {

// Vaswani et al. 2017, 3.5: column 2j is sin(row / 10000^(2j / width)), column 2j + 1 the cosine of the same.
// float32 [rows, width], computed when it is read.
Bytes interleaved_sinusoids(std::int64_t rows, std::int64_t width);

}  // namespace mk::nn
