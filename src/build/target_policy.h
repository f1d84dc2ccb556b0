#pragma once
// What precision and target make of a config's quant and compile sections (spec: config, precision policy and provider
// factory).

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "build/build_config.h"
#include "runtime/target.h"

namespace mk {

// What --precision names: auto, fp32, fp16, int4, int8, int16, or w{W}a{A}.
struct Precision {
  enum class Kind { automatic, float32, float16, integer, weight_only };
  Kind kind = Kind::automatic;
  std::string weight_type;      // of integer: uint8, int16
  std::string activation_type;  // of integer: uint8, uint16
  std::int64_t bits = 0;        // of weight_only
};
// In any case; usage for anything else.
Result<Precision> parse_precision(std::string_view text);

// What a quant section that is made anew says of its model.
struct QuantIdentity {
  std::optional<std::string> task;
  std::optional<std::string> model_id;
  std::optional<std::string> model_type;
};

struct TargetPolicy {
  TargetRequest target;
  Precision precision;
  bool compile = false;  // make a compile section where the target's EP compiles
  bool applies() const {
    return target.ep != nullptr || target.device || precision.kind != Precision::Kind::automatic || compile;
  }
};

// Asked only when a decision depends on the machine.
using ResolveTarget = std::function<Result<Target>(const TargetRequest&)>;

// Sets quant (its other fields stay) and, where asked for, compile. Nothing where the policy does not apply. A target
// that this machine lacks is no error unless the compile section depends on it: what was asked for is taken instead.
Status apply_target_policy(BuildConfig& config, const TargetPolicy& policy, const QuantIdentity& identity,
                           const ResolveTarget& resolve, Progress& progress);

// The quant section of a precision; null where there is none. `quant` is what there was.
std::optional<QuantConfig> quant_for(const Precision& precision, std::optional<QuantConfig> quant,
                                     const QuantIdentity& identity);

// The compile section that an EP owns; null for EPs without an offline compiler.
std::optional<CompileConfig> compile_for(const ExecutionProvider& ep, std::optional<DeviceKind> device);

}  // namespace mk
