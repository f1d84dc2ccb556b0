#pragma once
// float32 to float16, scope by scope: weights are stored in 16 bits, nodes compute in them, and a Cast stands only
// where the two types meet.
//
// What an operator admits comes from its schema at the model's opset: an input whose type cannot be float16 (the scales
// of a Resize) stays float32, and so does a node that has no float16 form. Bodies of If, Loop and Scan are converted
// with casts inside the body; calls of model-local functions that touch float32 are inlined first. What lies between
// integers (quantize and dequantize nodes, arithmetic on shapes) stays float32, and so do sums of integer products,
// sequences and optionals. Values are rounded to nearest even; past +-65504 (infinity too) they become +-65504, and
// what is nearer to zero than 2^-24 but not zero becomes +-2^-24, so that no epsilon vanishes: both are counted by
// tensor.
//
// Weights are not read here but when the model is written. A model of its own making is left as it is.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"

namespace mk {

class Float16Bytes;

struct Float16Options {
  bool keep_io_types = true;  // float32 inputs and outputs of the model stay so
  // Operators that stay float32, instead of default_float16_blocked_ops().
  std::optional<std::vector<std::string>> blocked_ops;
  // Names of nodes that stay float32 (of any output where a node has none), or globs with * and ?.
  std::vector<std::string> blocked_nodes;
};

// Operators of which implementations in float16 are rare or too coarse.
std::span<const std::string_view> default_float16_blocked_ops();

struct Float16KeptNode {
  std::string node;  // Node::label()
  std::string op_type;
  std::string reason;  // "blocked operator", "its schema at opset 13 has no float16" ...
};

// Elements of a tensor that float16 does not hold.
struct Float16OutOfRange {
  std::string tensor;
  std::uint64_t clipped = 0;   // finite, past +-65504
  std::uint64_t infinite = 0;  // became +-65504 as well
  std::uint64_t raised = 0;    // became +-2^-24
};

struct Float16Report {
  std::size_t converted_tensors = 0;  // initializers and constants
  std::size_t converted_nodes = 0;
  std::size_t casts_added = 0;
  std::vector<Float16KeptNode> kept;  // nodes with float32 values that stay so

  // The tensors with such elements, in the model's order. They are counted while the model is written: before that,
  // this reads the weights. The errors are those of reading.
  Result<std::vector<Float16OutOfRange>> out_of_range() const;

  std::vector<std::pair<std::string, std::shared_ptr<const Float16Bytes>>> conversions;  // by tensor
};

// The types of inner values, where the model states them, are inferred anew. malformed for a model without an ai.onnx
// opset or with a cycle, unsupported before opset 6, failed for a float32 tensor whose data is not there; the model is
// then as it was.
Result<Float16Report> convert_to_float16(Model& model, const Float16Options& options = {});

}  // namespace mk
