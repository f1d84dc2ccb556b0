#pragma once
// Static quantization: QuantizeLinear and DequantizeLinear (Q and DQ) around the operators, from the ranges that
// calibration saw. Which tensors get them follows onnxruntime.quantization's QDQ format, so that execution providers
// fuse what they fuse of its models.
//
// Weights become integers behind a DQ, biases int32 with the scale of the product, operators that only move data keep
// the parameters of what they move. Only float32 tensors are touched. What is quantized already stays as it is. Nodes
// in the bodies of If, Loop and Scan are quantized where their tensors have ranges.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "quantize/node_filter.h"
#include "quantize/tensor_ranges.h"

namespace mk {

enum class QdqScope {
  automatic,  // weighted for 8-bit activations of a transformer, whose norms and residuals 8 bits do not hold; else all
  all,        // every operator that quantize/qdq_rules.h lists
  weighted,   // Conv, ConvTranspose, Gemm and MatMul with a constant weight, of the last two the inputs only; and the
              // tables of Gather
};

struct QdqOptions {
  DataType weight_type = DataType::uint8;  // int8, uint8, int16, uint16
  DataType activation_type = DataType::uint8;
  bool per_channel = false;       // weights; they are symmetric then
  bool weight_symmetric = false;  // zero point 0, or the middle of an unsigned type
  bool activation_symmetric = false;
  QdqScope scope = QdqScope::automatic;
  std::vector<std::string> op_types;  // where there are some, only these; others than the listed ones too
  NodeFilter exclude;
  bool quantize_outputs = true;  // Q and DQ on outputs of the model too, where the operators' outputs have them
};

struct SkippedNode {
  std::string node;  // its label
  std::string op_type;
  std::string reason;
};

struct QdqReport {
  std::size_t nodes_quantized = 0;
  std::size_t quantize_linear = 0;
  std::size_t dequantize_linear = 0;
  std::size_t weights = 0;
  std::size_t biases = 0;
  std::size_t activations_removed = 0;        // Relu and Clip whose work the zero point does
  QdqScope scope = QdqScope::all;             // what automatic came to
  std::string domain;                         // of Q and DQ: "" or "com.microsoft"
  std::vector<SkippedNode> skipped;           // that the options asked for
  std::map<std::string, std::size_t> others;  // nodes of operators that are not quantized, by type
  std::vector<std::string> warnings;
};

// usage for types that are not among those above; unsupported below opset 10, which has no QuantizeLinear, and for a
// model that is compiled already (EPContext);
// malformed and failed as shape inference and the reading of weights say. After an error the model is not usable.
Result<QdqReport> insert_qdq(Model& model, const TensorRanges& ranges, const QdqOptions& options);

// What the functions here do first, and which changes nothing where it was done: types are inferred, constants folded,
// masks made small.
Status prepare_qdq(Model& model);

// What automatic comes to for a model; other scopes stay. Where op_types are given, it is all.
QdqScope chosen_scope(Model& model, const QdqOptions& options);

// The values whose ranges insert_qdq() would use, in the main graph, sorted: what calibration has to observe. The
// model's constants are folded as insert_qdq() does it.
Result<std::vector<std::string>> tensors_to_observe(Model& model, const QdqOptions& options);

}  // namespace mk
