#pragma once
// Salimans and Kingma 2016: a weight given by its length and its direction.

#include <cstdint>
#include <vector>

#include "nn/builder.h"

namespace mk::nn {

// The weight [rows, columns, width] of torch's weight_norm(dim=2) of the layer s, multiplied out when it is written:
// direction * length / |direction|, with one length for each index of the last axis. Read from
// parametrizations.weight.original0 and original1, or weight_g and weight_v in older checkpoints.
Value normed_weight(const Scope& s, std::int64_t rows, std::int64_t columns, std::int64_t width);

}  // namespace mk::nn
