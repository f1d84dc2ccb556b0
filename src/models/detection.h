#pragma once
// What DETR (Carion et al. 2020) and its successors share.

#include <array>
#include <cstdint>
#include <vector>

#include "nn/builder.h"

namespace mk::models {

// Linear layers with relu between them: `layers` of them, of width `hidden` but for the last.
nn::Value detection_mlp(const nn::Scope& s, nn::Value x, std::int64_t hidden, std::int64_t features,
                        std::int64_t layers);

// Attention with projections q_proj, k_proj, v_proj and out_proj, on [batch, length, width].
nn::Value detection_attention(const nn::Scope& s, std::int64_t heads, nn::Value query, nn::Value key, nn::Value value);

// Whether a computed constant of that many rows is of a size that makes sense; malformed into the builder if not.
bool expect_affordable(const nn::Scope& s, std::int64_t rows, std::int64_t width);

// A constant of the model's float type.
nn::Value float_constant(const nn::Scope& s, std::string name, std::vector<std::int64_t> dims,
                         const std::vector<float>& values);

}  // namespace mk::models
