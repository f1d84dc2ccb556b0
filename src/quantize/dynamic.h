#pragma once
// Dynamic quantization: weights are 8-bit integers, activations become uint8 while the model runs. No calibration.
//
//   MatMul, Gemm  DynamicQuantizeLinear, MatMulInteger, Cast, Mul by the scales (and Add of the bias)
//   Conv          the same with ConvInteger
//   Gather        from a table of integers, then DequantizeLinear
// where the weight is a float32 constant. Bodies of If, Loop and Scan too. The form is that of onnxruntime's
// quantize_dynamic, which ONNX Runtime fuses.

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "quantize/node_filter.h"
#include "quantize/qdq.h"

namespace mk {

struct DynamicOptions {
  DataType weight_type = DataType::uint8;  // int8 or uint8; 16 bits become int8, with a warning
  bool per_channel = false;                // not Gather; weights are symmetric then
  bool weight_symmetric = false;
  bool reduce_range = false;          // 7 bits, for processors whose 8-bit products saturate in 16 bits
  std::vector<std::string> op_types;  // where there are some, only these
  NodeFilter exclude;
};

struct DynamicReport {
  std::size_t nodes_quantized = 0;  // of the original model
  std::size_t dynamic_quantize_linear = 0;
  std::size_t matmul_integer = 0;
  std::size_t conv_integer = 0;
  std::size_t dequantize_linear = 0;
  std::size_t weights = 0;
  std::vector<SkippedNode> skipped;
  std::vector<std::string> warnings;
};

// usage for other types; unsupported for a compiled model and below opset 11, which has no DynamicQuantizeLinear;
// errors of shape inference and of reading. After an error the model is not usable.
Result<DynamicReport> quantize_dynamic(Model& model, const DynamicOptions& options);

}  // namespace mk
