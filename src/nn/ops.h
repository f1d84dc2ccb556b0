#pragma once
// The operators of ONNX that layers are made of, each with the type and shape of its result. All take the scope of the
// module that computes them. Opset differences are dealt with here, down to opset 13.
//
// Sizes that do not fit together put a malformed error into the builder: they come from the model's configuration.

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "nn/builder.h"

namespace mk::nn {

// Element-wise, with numpy's broadcasting. A number becomes a constant of the other operand's type.
Value add(const Scope& s, Value a, Value b);
Value sub(const Scope& s, Value a, Value b);
Value mul(const Scope& s, Value a, Value b);
Value div(const Scope& s, Value a, Value b);
Value pow(const Scope& s, Value a, double exponent);
Value add(const Scope& s, Value a, double b);
Value sub(const Scope& s, double a, Value b);
Value sub(const Scope& s, Value a, double b);
Value mul(const Scope& s, Value a, double b);
Value div(const Scope& s, Value a, double b);
Value minimum(const Scope& s, Value a, Value b);
Value equal(const Scope& s, Value a, Value b);    // bool
Value greater(const Scope& s, Value a, Value b);  // bool
Value where(const Scope& s, Value condition, Value a, Value b);
Value clip(const Scope& s, Value x, double low, double high);
// Operators of one input and no attributes, whose result is like it: "Relu", "Erf", "Tanh", "Sqrt", "Not" ...
Value unary(const Scope& s, const char* type, Value x);
Value cast(const Scope& s, Value x, DataType type);  // x itself where it has that type

Value matmul(const Scope& s, Value a, Value b);
Value softmax(const Scope& s, Value x, int axis = -1);
// "ReduceSum", "ReduceL2", "ReduceMax" ...
Value reduce(const Scope& s, const char* type, Value x, std::vector<std::int64_t> axes, bool keep_axes);
Value reduce_mean(const Scope& s, Value x, std::vector<std::int64_t> axes, bool keep_axes);
// Where the largest value is, the first of equal ones; int64.
Value first_largest(const Scope& s, Value x, int axis, bool keep_axis);
Value cumsum(const Scope& s, Value x, int axis);

Value transpose(const Scope& s, Value x, std::vector<std::int64_t> permutation);
// New sizes: numbers, `keep` (the size that x has at that index) and at most one `rest` (what remains).
inline constexpr std::int64_t keep = 0, rest = -1;
Value reshape(const Scope& s, Value x, std::vector<std::int64_t> sizes);
Value flatten(const Scope& s, Value x, int axis);  // to a matrix: axes before `axis`, and those from it on
Value unsqueeze(const Scope& s, Value x, int axis);
Value concat(const Scope& s, std::initializer_list<Value> parts, int axis);
// [begin, end) along an axis; `end` negative or beyond counts as numpy does.
inline constexpr std::int64_t to_the_end = INT64_MAX;
Value slice(const Scope& s, Value x, int axis, std::int64_t begin, std::int64_t end);
Value slice(const Scope& s, Value x, int axis, Value begin, Value end);  // int64 of one element each
// x[:, index] along an axis, which goes away.
Value take(const Scope& s, Value x, int axis, std::int64_t index);
// Rows of a table; the shape of the indices, then that of a row.
Value gather(const Scope& s, Value table, Value indices);
// x[i, index[i]] of x [batch, length, ...] and index [batch, 1].
Value pick(const Scope& s, Value x, Value index);

// The size of an axis as int64 of one element: a constant where it is known, else a Shape node.
Value size(const Scope& s, Value x, int axis);
// x of batch 1, repeated along its first axis as often as `like` has rows.
Value expand_batch(const Scope& s, Value x, Value like);

}  // namespace mk::nn
