#pragma once
// Weight-only quantization by rounding to nearest: matrix products with constant weights become com.microsoft's
// MatMulNBits, with a scale (and a zero point) for each block of a column. Bytes as onnxruntime's
// matmul_nbits_quantizer packs them; made while they are written.
//
// MatMul with constant B, [K, N] or with leading 1s; Gemm with constant B, as MatMulNBits and Add. float32 and float16.
// Bodies of If, Loop and Scan too. A weight that several nodes share is packed once.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "quantize/node_filter.h"
#include "quantize/qdq.h"

namespace mk {

struct WeightOnlyOptions {
  int bits = 4;                   // 4 or 8
  std::int64_t block_size = 128;  // a power of two, 16 and up
  bool symmetric = true;
  int accuracy_level = 0;  // of MatMulNBits: 0 unset, 1 float32, 2 float16, 3 bfloat16, 4 int8
  NodeFilter exclude;
};

struct WeightOnlyReport {
  std::size_t nodes_quantized = 0;
  std::size_t weights = 0;
  std::uint64_t bytes_before = 0;  // of those weights; a weight that other nodes still read counts in both
  std::uint64_t bytes_after = 0;
  std::vector<SkippedNode> skipped;
  std::vector<std::string> warnings;
};

// usage for options outside of the above; unsupported for a compiled model; errors of shape inference and of reading.
// After an error the model is not usable.
Result<WeightOnlyReport> quantize_weights_only(Model& model, const WeightOnlyOptions& options);

}  // namespace mk
