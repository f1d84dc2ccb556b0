#pragma once
// What a scale for each output channel would do to the weights of a model that has one for each tensor.

#include "base/result.h"
#include "graph/ir.h"
#include "quantize/node_filter.h"

namespace mk {

// How much less noise, in decibels, rounding would leave in the constant weights of Conv, ConvTranspose, MatMul and
// Gemm (the square of the step, over all elements): 0 where there is no such weight. Reads the weights in blocks.
Result<double> per_channel_gain(const Model& model, DataType type, bool symmetric, const NodeFilter& exclude);

}  // namespace mk
