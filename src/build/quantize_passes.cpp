#include "build/quantize_passes.h"

#include "base/text.h"
#include "build/target_policy.h"

namespace mk {
namespace {

constexpr std::int64_t eight_bit_products = 4;  // accuracy_level of MatMulNBits

QuantConfig with_mode(QuantConfig config, std::string_view mode) {
  config.mode = mode;
  return config;
}

}  // namespace

Result<std::vector<QuantConfig>> quantize_passes(std::string_view precision, const QuantConfig& base) {
  const std::string name = lower_case(precision);
  if (name == "dynamic") return std::vector{with_mode(base, "dynamic")};
  MK_TRY(const Precision parsed, parse_precision(name));
  if (parsed.kind == Precision::Kind::float32)
    return fail(ErrorCode::usage, "fp32 is no precision to quantize to", "--precision",
                "Choose auto, int8, int16, int4, fp16, dynamic or w{4|8|16}a{8|16|32}");
  if (parsed.kind == Precision::Kind::automatic) return std::vector{with_mode(base, "static")};
  QuantConfig first = quant_for(parsed, base, {}).value_or(base);
  if (name == "w4a8" && first.rtn_accuracy_level == 0) first.rtn_accuracy_level = eight_bit_products;
  std::vector<QuantConfig> passes{std::move(first)};
  if (name == "w4a16") passes.push_back(with_mode(base, "fp16"));
  return passes;
}

}  // namespace mk
