#pragma once
// Values that are known before a model runs, seen through Constant nodes, Identity and Cast.

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/ir.h"

namespace mk {

// The tensor that a value always is: an initializer that no graph input overrides, or a Constant's. Its data is a view.
// Nothing where it is not constant, or is sparse, of strings, or its data is missing.
std::optional<Tensor> constant_of(const Value* value);
// The same without the tensor.
bool is_constant(const Value* value);

// The element of a constant of one element, whatever its rank.
std::optional<double> scalar_of(const Value* value);
// The elements of a constant of integers.
std::optional<std::vector<std::int64_t>> integers_of(const Value* value);

// Dims of a value whose shape is static.
std::optional<std::vector<std::int64_t>> static_dims(const Value* value);
// Whether two values are known to have one shape, symbols included.
bool same_shape(const Value* a, const Value* b);
// Rank, or -1 where it is not known.
int rank_of(const Value* value);
// The dimension at an axis (negative counts from the end); unknown where it is.
Dim dim_of(const Value* value, int axis);

}  // namespace mk
