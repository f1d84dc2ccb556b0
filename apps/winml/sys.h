#pragma once
// What `winml sys` finds out about the machine and the installation (docs/commands/sys.md).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/system.h"
#include "runtime/ep_devices.h"
#include "runtime/locate.h"
#include "winml/command.h"

namespace mk::cli {

struct DeviceRow {
  std::string type;  // NPU, GPU, CPU
  std::string name;
  std::vector<std::pair<std::string, std::string>> details;  // numbers too, in order
};

// One place a provider comes from, and the devices it offers there.
struct ProviderDevice {
  std::string type;
  std::string hardware_name;
  std::string vendor;
  std::vector<std::string> facts;
};
struct ProviderEntry {
  std::string provider;  // "CPUExecutionProvider"
  std::string source_kind = "BuiltinSource";
  std::string source_tag = "bundled";
  std::string status = "primary";  // primary, shadowed, incompatible, failed
  std::string problem;             // of the last two
  std::optional<Path> library;     // null for built-in ones
  std::string version;
  std::vector<ProviderDevice> devices;
};

struct RuntimeFinding {
  std::optional<RuntimeCandidate> used;
  std::string version;                  // empty where none could be loaded
  std::vector<RuntimeCandidate> tried;  // in the order of the search
  std::string problem;                  // why there is none
};

struct SystemReport {
  bool whole = true;  // false: only the lists asked for
  bool devices_listed = true;
  bool providers_listed = true;
  int verbosity = 0;
  MachineInfo machine;
  Path executable;
  RuntimeFinding runtime;
  std::vector<DeviceRow> devices;
  std::vector<ProviderEntry> providers;
};

// NPUs, GPUs, then the processor.
std::vector<DeviceRow> find_devices(const MachineInfo& machine);
// Built-in providers, then those of plugins. The plugins are loaded to know what they offer.
std::vector<ProviderEntry> find_providers(const Runtime& runtime, EpDevices& plugins, const MachineInfo& machine);

Json to_json(const SystemReport& report);
std::string to_text(const SystemReport& report, const Context& context);

}  // namespace mk::cli
