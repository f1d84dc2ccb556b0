#pragma once
// Every fact about execution providers (EPs), in one table: names, devices, vendors, plugin libraries, who compiles.
// Everything else (options, policies, discovery, help) asks here.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace mk {

// In order of preference.
enum class DeviceKind { npu, gpu, cpu };

std::string_view name_of(DeviceKind device);                    // "npu", "gpu", "cpu"
std::optional<DeviceKind> device_named(std::string_view name);  // in any case; none for "auto"
inline constexpr std::array<DeviceKind, 3> all_devices{DeviceKind::npu, DeviceKind::gpu, DeviceKind::cpu};

struct ExecutionProvider {
  std::string_view name;                             // "QNNExecutionProvider"
  std::array<std::string_view, 3> aliases;           // the first is its short name; unused ones are empty
  std::array<std::optional<DeviceKind>, 3> devices;  // that a user may ask for; the first is the default
  std::string_view vendor;                           // of the hardware it needs; empty for none
  std::string_view plugin;                           // stem of its plugin library; empty where it is built in
  bool compiles = false;                             // it has an offline EPContext compiler
  bool quantizes_itself = false;                     // hand it the float model

  std::string_view short_name() const { return aliases[0]; }
  bool supports(DeviceKind device) const;
  std::string device_list() const;  // "npu, gpu"
};

std::span<const ExecutionProvider> execution_providers();

// By full name or alias, in any case.
const ExecutionProvider* find_ep(std::string_view name);

// usage, with the known names and the nearest one as the hint.
Result<const ExecutionProvider*> ep_named(std::string_view name);

// What the automatic choice walks through, in order of preference.
struct TargetRow {
  std::string_view ep;  // its short name
  DeviceKind device;
  // Options that the session gets unless the user says otherwise.
  std::array<std::pair<std::string_view, std::string_view>, 2> options{};
  bool needs_vendor = true;  // OpenVINO's CPU row runs on any processor
};
std::span<const TargetRow> target_rows();

// Where a plugin came from, in `--ep name@source`.
inline constexpr std::array<std::string_view, 6> ep_sources{"bundled", "pypi",          "nuget",
                                                            "msix",    "winml-catalog", "directory"};

}  // namespace mk
