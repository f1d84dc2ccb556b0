#pragma once
// Where a model is to run and how precise, for commands that make configs (config, build).

#include <optional>
#include <string>

#include "base/path.h"
#include "base/result.h"
#include "build/target_policy.h"
#include "winml/command.h"
#include "winml/options.h"

namespace mk::cli {

struct TargetOptions {
  std::optional<std::string> device;
  std::optional<std::string> ep;
  std::optional<std::string> precision;
  std::optional<Path> ort;
  bool typed() const { return device || ep || precision; }
};

// -d, --ep, -p and --ort.
void target_options(OptionTable& options, TargetOptions& target);

// usage for unknown names, and for NAME@SOURCE, which has no meaning in a config.
Result<TargetPolicy> target_policy_of(const TargetOptions& target);

// Asks this machine; ONNX Runtime is loaded when a decision needs it. `context` must outlive it.
ResolveTarget target_resolver(const TargetOptions& target, Context& context);

}  // namespace mk::cli
