#include "optimize/passes.h"

#include <algorithm>
#include <array>

namespace mk {

extern const Pass constants_to_initializers, eliminate_no_ops, gelu_fusion, dead_code;
extern const Pass conv_bn_fusion, conv_mul_fusion, conv_add_fusion, matmul_bn_fusion;
extern const Pass matmul_add_fusion, gemm_sum_fusion, gemm_transpose_fusion;
extern const Pass conv_activation_fusion, conv_add_activation_fusion, gemm_activation_fusion;
extern const Pass matmul_transpose_fusion, matmul_scale_fusion;

namespace {

constexpr std::array order{
    // What others need first: constants in one form, nothing in between that does nothing.
    &constants_to_initializers,
    &eliminate_no_ops,
    // Into weights.
    &conv_bn_fusion,
    &conv_mul_fusion,
    &conv_add_fusion,
    &matmul_bn_fusion,
    // Operators from their parts.
    &gelu_fusion,
    // What is left of products.
    &matmul_add_fusion,
    &gemm_sum_fusion,
    &gemm_transpose_fusion,
    &matmul_transpose_fusion,
    &matmul_scale_fusion,
    &conv_add_activation_fusion,
    &conv_activation_fusion,
    &gemm_activation_fusion,
    // Last.
    &dead_code,
};

}  // namespace

std::span<const Pass* const> all_passes() { return order; }

const Pass* pass_named(std::string_view name) {
  const auto found = std::find_if(order.begin(), order.end(), [&](const Pass* pass) { return pass->name == name; });
  return found == order.end() ? nullptr : *found;
}

}  // namespace mk
