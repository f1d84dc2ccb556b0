#pragma once
// A weight matrix in groups of codes along its rows, as com.microsoft.MatMulNBits takes it: value = scale * (code -
// zero point).

#include <cstdint>

#include "graph/tensor.h"

namespace mk {

struct QuantizedMatrix {
  std::int64_t rows = 0, columns = 0;
  int bits = 4, group = 32;
  Bytes codes;        // uint8 [rows, columns / group, group * bits / 8]; of two in a byte the first is the lower half
  Bytes scales;       // float32 [rows, columns / group]
  Bytes zero_points;  // float32 like the scales; null: 8 of 4 bits, 128 of 8
};

}  // namespace mk
