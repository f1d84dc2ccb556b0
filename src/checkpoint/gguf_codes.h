#pragma once
// Quantized GGUF tensors with their codes kept.

#include <optional>

#include "checkpoint/gguf_blocks.h"
#include "checkpoint/quantized_matrix.h"

namespace mk {

// The codes of a matrix [rows, columns] of blocks, repacked as they are read. Absent for types that MatMulNBits cannot
// hold (5 bits; plain numbers).
std::optional<QuantizedMatrix> kept_codes(const Bytes& blocks, const GgufType& type, std::int64_t rows,
                                          std::int64_t columns);

}  // namespace mk
