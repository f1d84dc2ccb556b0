#pragma once
// Operators and how they are quantized.

#include <string_view>

namespace mk {

enum class QdqRule {
  convolution,    // Conv, ConvTranspose: data, weight, bias
  gemm,           // the same, with alpha, beta and a transposed weight
  matmul,         // either side may be the weight
  normalization,  // data, scale, bias
  elementwise,    // all inputs and outputs on their own
  softmax,        // as elementwise; the input may stay float
  removable,      // Relu, Clip: gone where the zero point clips as they do
  movement,       // output 0 has the parameters of input 0, where that one is quantized
  split,          // the same for all outputs
  pad,            // the same where it pads with 0 or from the data
  resize,         // the same where it interpolates within the range
  gather,         // the same; a constant table is quantized too
  select,         // Where: the output, where both choices are quantized
};

struct QdqRuleRow {
  std::string_view op_type;
  QdqRule rule;
  int opset = 1;          // older versions of the operator stay as they are
  bool weighted = false;  // has weights: among QdqScope::weighted
  // Of the output, where low < high: it does not depend on the samples, from so many bits on. With 8 bits Sigmoid's
  // values, which often all lie near one end, would lose theirs.
  float low = 0;
  float high = 0;
  int bits = 8;
};

// Null where it has none.
const QdqRuleRow* qdq_rule(std::string_view domain, std::string_view op_type);

}  // namespace mk
