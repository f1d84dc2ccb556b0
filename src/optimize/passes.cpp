#include "optimize/passes.h"

#include <algorithm>
#include <array>

namespace mk {

extern const Pass transpose_optimizer, merge_reshapes, pad_fusion, not_where_fusion, gather_to_slice_fusion;
extern const Pass dynamic_quantize_matmul_fusion, unsqueeze_elimination;
extern const Pass gather_slice_to_split_fusion, double_qdq_pairs_remover, concat_slice_elimination;
extern const Pass duplicate_initializers, expand_elimination, slice_elimination, common_subexpressions;
extern const Pass constant_folding, constants_to_initializers, eliminate_no_ops, dead_code;
extern const Pass conv_bn_fusion, conv_mul_fusion, conv_add_fusion, matmul_bn_fusion;
extern const Pass matmul_add_fusion, gemm_sum_fusion, gemm_transpose_fusion;
extern const Pass conv_activation_fusion, conv_add_activation_fusion, gemm_activation_fusion;
extern const Pass matmul_transpose_fusion, matmul_scale_fusion, matmul_column_scale;
extern const Pass layer_norm_fusion, simplified_layer_norm_fusion, embed_layer_norm_fusion, skip_layer_norm_fusion,
    residual_skip_layer_norm_fusion, bias_skip_layer_norm_fusion;
extern const Pass gelu_fusion, fast_gelu_fusion, quick_gelu_fusion, bias_gelu_fusion, gelu_approximation;
extern const Pass attention_fusion;

namespace {

constexpr std::array order{
    // What others need first: constants in one form, nothing in between that does nothing.
    &constants_to_initializers,
    &constant_folding,
    &eliminate_no_ops,
    &expand_elimination,
    &slice_elimination,
    &unsqueeze_elimination,
    &duplicate_initializers,
    &common_subexpressions,
    &double_qdq_pairs_remover,
    &concat_slice_elimination,
    &gather_slice_to_split_fusion,
    &gather_to_slice_fusion,
    &not_where_fusion,
    // Into weights and windows.
    &pad_fusion,
    &conv_bn_fusion,
    &conv_mul_fusion,
    &conv_add_fusion,
    &matmul_bn_fusion,
    // Operators from their parts.
    &layer_norm_fusion,
    &simplified_layer_norm_fusion,
    &gelu_fusion,
    &fast_gelu_fusion,
    &quick_gelu_fusion,
    &attention_fusion,
    // Operators with what stands around them.
    &embed_layer_norm_fusion,
    &skip_layer_norm_fusion,
    &residual_skip_layer_norm_fusion,
    &bias_skip_layer_norm_fusion,
    &bias_gelu_fusion,
    &gelu_approximation,
    // Layouts.
    &transpose_optimizer,
    &merge_reshapes,
    // What is left of products.
    &matmul_column_scale,
    &matmul_add_fusion,
    &gemm_sum_fusion,
    &gemm_transpose_fusion,
    &matmul_transpose_fusion,
    &matmul_scale_fusion,
    &dynamic_quantize_matmul_fusion,
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
