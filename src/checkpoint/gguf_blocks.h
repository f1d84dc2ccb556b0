#pragma once
// What ggml's tensor types hold (ggml, ggml-quants.c): plain numbers, or blocks that share scales.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "graph/data_type.h"
#include "graph/tensor.h"

namespace mk {

struct GgufType {
  std::uint32_t number;
  std::string_view name;
  std::uint32_t elements, bytes;                          // of a block
  DataType plain;                                         // undefined where it is quantized
  void (*values)(const std::byte* block, float* values);  // of a quantized block
};

// Null for types that are not read.
const GgufType* find_gguf_type(std::uint32_t number);
std::string gguf_type_names();

// The float32 values of a quantized tensor, computed as they are read: memory is a block.
Bytes dequantized(Bytes blocks, const GgufType& type);

}  // namespace mk
