#include "winml/target_options.h"

#include <fmt/format.h>

#include "runtime/ep_devices.h"
#include "winml/shared_options.h"

namespace mk::cli {

void target_options(OptionTable& options, TargetOptions& target) {
  device_option(options, target.device);
  ep_option(options, target.ep);
  precision_option(options, target.precision);
  ort_option(options, target.ort);
}

Result<TargetPolicy> target_policy_of(const TargetOptions& target) {
  TargetPolicy policy;
  MK_TRY(policy.target, parse_target(target.ep.value_or(""), target.device.value_or("")));
  if (policy.target.source)
    return fail(ErrorCode::usage, fmt::format("a config does not say where a provider comes from: '{}'", *target.ep),
                "--ep", fmt::format("Use --ep {}", policy.target.ep->short_name()));
  MK_TRY(policy.precision, parse_precision(target.precision.value_or("auto")));
  return policy;
}

ResolveTarget target_resolver(const TargetOptions& target, Context& context) {
  return [ort = target.ort, &context](const TargetRequest& request) -> Result<Target> {
    const auto load = [&] {
      return Runtime::load({.ort = ort, .progress = &context.progress, .verbosity = context.verbosity});
    };
    EpDevices devices(load);
    return resolve_target(request, devices.probe(), context.progress);
  };
}

}  // namespace mk::cli
