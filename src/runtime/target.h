#pragma once
// The one function that decides where a model runs. What was asked for and what was found are two values, and stay two:
// policies about the model's form follow the request, everything about running follows the target.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/progress.h"
#include "base/result.h"
#include "runtime/ep_table.h"

namespace mk {

struct TargetRequest {
  const ExecutionProvider* ep = nullptr;  // null is auto
  std::optional<DeviceKind> device;       // none is auto
  std::optional<std::string> source;      // where the plugin must come from: `--ep qnn@pypi`

  bool operator==(const TargetRequest&) const = default;
};

struct Target {
  const ExecutionProvider* ep = nullptr;  // never null
  DeviceKind device = DeviceKind::cpu;
  std::optional<std::string> source;

  std::string to_string() const;  // "qnn/npu"
  bool operator==(const Target&) const = default;
};

// From `--ep NAME[@SOURCE]` and `--device NAME`; empty and "auto" are auto. usage for anything unknown.
Result<TargetRequest> parse_target(std::string_view ep, std::string_view device);

// What the machine says; each is asked only when the walk needs it.
struct TargetProbe {
  std::function<bool(const ExecutionProvider&)> discovered;         // is there such an EP at all
  std::function<Result<bool>(std::string_view vendor)> has_vendor;  // is there hardware of that vendor
  // Does it offer such a device; the error says why not.
  std::function<Status(const ExecutionProvider&, DeviceKind, const std::optional<std::string>& source)> binds;
};

// - both named: the EP must know the device; no hardware is asked.
// - one or none named: the first row of target_rows() that fits, is discovered, has its vendor and binds.
// usage when nothing does. A failing vendor query leaves the rows that need no vendor (only CPU rows when both are
// auto), with a warning.
Result<Target> resolve_target(const TargetRequest& request, const TargetProbe& probe, Progress& progress);

}  // namespace mk
