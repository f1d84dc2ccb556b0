#pragma once
// From a precision to the passes that make it.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "quantize/quant_config.h"

namespace mk {

// `precision` as parse_precision() takes it, or "dynamic"; what it does not decide is as in `base`. Several passes
// where one is not enough: w4a16 is int4 weights, then float16. auto is a static pass in base's types. usage for fp32
// and anything unknown.
//   w4a8   4-bit weights, products in 8 bits where the runtime can (accuracy level 4)
//   int4, w4a32  4-bit weights, activations as they are
Result<std::vector<QuantConfig>> quantize_passes(std::string_view precision, const QuantConfig& base);

}  // namespace mk
