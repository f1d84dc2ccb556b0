#pragma once
// The precision of a model, as its tensors show it: "fp32", "fp16", "bf16", "w8a8", "w4a16" ...

#include <optional>
#include <string>

#include "graph/ir.h"

namespace mk {

// The first that applies: the bits of weights and of activations in Q/DQ nodes (the majority of each; a side that is
// not there is as the other), the least bits of MatMulNBits and GatherBlockQuantized with the width of the float
// weights, the float type that most weight values have (bfloat16 only without float16). None for a model without
// weights.
std::optional<std::string> detected_precision(const Model& model);

}  // namespace mk
