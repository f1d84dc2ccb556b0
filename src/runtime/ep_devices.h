#pragma once
// What execution providers offer on this machine. Plugins are found when this is made, and loaded only when one has to
// be asked, so a machine without plugins is known without ONNX Runtime.
//
// Not thread-safe. A plugin that fails to load is remembered with its reason.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/ep_plugins.h"
#include "runtime/library.h"
#include "runtime/target.h"

struct OrtEpDevice;

namespace mk {

struct OfferedDevice {
  const ExecutionProvider* ep = nullptr;
  DeviceKind kind = DeviceKind::cpu;
  std::string hardware_name;  // may be empty
  std::string hardware_vendor;
  std::string version;  // of the plugin; may be empty
  Path library;
  std::string source;
  const OrtEpDevice* handle = nullptr;  // lives as long as the Runtime
};

// One plugin library, as `winml sys` lists it.
struct PluginFinding {
  const ExecutionProvider* ep = nullptr;  // null where neither its name nor its devices tell
  EpPlugin plugin;
  std::vector<OfferedDevice> devices;
  std::optional<Error> error;  // why it offers none
  bool shadowed = false;       // an earlier one of the same EP is used
};

class EpDevices {
 public:
  using LoadRuntime = std::function<Result<std::shared_ptr<Runtime>>()>;
  explicit EpDevices(LoadRuntime load, const PluginPlaces& places = plugin_places());

  // The machine, for resolve_target(). Lives no longer than this.
  TargetProbe probe();

  // The device of a resolved target; null for the CPU EP, which needs none. usage when the EP is not installed or has
  // no such device here.
  Result<const OfferedDevice*> find(const Target& target);

  // Loads every plugin and says what came of it, in the order of the search.
  std::vector<PluginFinding> survey();

 private:
  struct Candidate {
    EpPlugin plugin;
    bool loaded = false;
    std::optional<Error> error;
    std::vector<OfferedDevice> devices;
  };
  bool may_have(const Candidate& candidate, const ExecutionProvider& ep);
  void load(Candidate& candidate);
  Status bind(const ExecutionProvider& ep, DeviceKind device, const std::optional<std::string>& source,
              const OfferedDevice** found);

  LoadRuntime load_runtime_;
  std::shared_ptr<Runtime> runtime_;
  std::vector<Candidate> candidates_;
};

// The common case: parse, resolve, and see that the target is there.
Result<Target> resolve_on_this_machine(const TargetRequest& request, EpDevices& devices, Progress& progress);

}  // namespace mk
