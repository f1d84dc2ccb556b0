#pragma once
// Matrices in blocks of few bits, as MatMulNBits reads them. For a weight of K rows and N columns: packed
// uint8[N, blocks, block_size * bits / 8] (two 4-bit numbers in a byte, the first one low), scales [N * blocks], zero
// points uint8[N * ceil(blocks * bits / 8)]. Symmetric: scale = the extreme value / -2^(bits - 1), zero point
// 2^(bits - 1), which is not stored.

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "graph/tensor.h"

namespace mk {

struct BlockFormat {
  int bits = 4;
  std::uint64_t block_size = 128;
  bool symmetric = true;
};

struct BlockWeight {
  Tensor packed;
  Tensor scales;       // of the weight's type
  Tensor zero_points;  // without data where symmetric
};

// `weight`: [K, N], or [N, K] where `transposed_weight`; float32 or float16, neither size 0. Names are left empty.
Result<BlockWeight> pack_blocks(const Tensor& weight, bool transposed_weight, const BlockFormat& format);

}  // namespace mk
