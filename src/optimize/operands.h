#pragma once
// What fusions ask about the operands and users of a match, beyond what a pattern says.

#include <optional>
#include <string_view>

#include "optimize/constants.h"
#include "optimize/patch.h"

namespace mk {

// The only node that uses a value, where it is no graph output and the node is of that operator (ai.onnx) in the same
// graph; null otherwise.
Node* only_user(const Value* value, std::string_view op_type);

// Whether two dimensions are known to be one.
bool same_dim(const Dim& a, const Dim& b);

// The dimension that a shape computation of one element takes from another tensor's shape; unknown where it is another.
Dim dimension_read(const Value* value);

// Whether the shape of `value` is known to be that of `x` from `axis` on.
bool has_shape_from(const Value* value, const Value* x, int axis);

// `value` with exactly the shape of `x` from `axis` on: itself, or a view of a constant that has ones before (a scale
// of [1, 1, C]). Nothing where that is not proven.
std::optional<PatchValue> trailing_operand(Patch& patch, Value* value, const Value* x, int axis);

// Whether `value` is a constant vector with one element for each of the last axis of `x`.
bool is_row_constant(const Value* value, const Value* x);

// Whether a value is of a type that com.microsoft's kernels compute in: float32, or 16 bits that stand for it.
bool is_kernel_float(const Value* value);

// A number or bool as int32: itself, a Cast that is there already, or a new one.
PatchValue as_int32(Patch& patch, Value* value);

// The first of the axes that a ReduceMean goes over (from the front), where they are all the last ones; nothing
// otherwise.
std::optional<int> trailing_axis(const Node& reduction);

// What follows a normalization: Mul by a scale, then Add of a bias, each of the shape that is normalized over. One that
// does not fit is left where it is.
struct Affine {
  Value* result = nullptr;
  PatchValue scale, bias;
  bool has_scale = false, has_bias = false;
};
// After `normalized`, or after a Cast of it. Operands are of the type of the result.
Affine affine_after(Patch& patch, Value* normalized, const Value* x, int axis, bool with_bias);

// `like`'s element type, ones of the shape of `x` from `axis` on; nothing where that is not static.
std::optional<PatchValue> ones(Patch& patch, const Value* x, int axis);

}  // namespace mk
