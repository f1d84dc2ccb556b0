#pragma once
// A tensor whose dimensions are in another order, as the operator Transpose has it; made when it is read, in blocks.

#include <cstdint>
#include <vector>

#include "graph/tensor.h"

namespace mk {

// Dim i of the result is dim permutation[i] of the tensor. The permutation is one of the tensor's rank, and the
// elements have 8 bits or more.
Tensor permuted(const Tensor& tensor, const std::vector<std::int64_t>& permutation);

}  // namespace mk
