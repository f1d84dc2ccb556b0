#include <algorithm>
#include <array>

#include "base/hardware.h"
#include "winml/sys.h"

namespace mk::cli {
namespace {

struct SourceRow {
  std::string_view tag;
  std::string_view kind;
};
constexpr std::array source_rows{
    SourceRow{"bundled", "BuiltinSource"},     SourceRow{"pypi", "PyPISource"},
    SourceRow{"nuget", "NuGetSource"},         SourceRow{"msix", "MSIXPackageSource"},
    SourceRow{"directory", "DirectorySource"}, SourceRow{"winml-catalog", "WinMLCatalogSource"},
};

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return result;
}

// Of a plugin that works but has nothing to run on here, the error's code is usage.
std::string status_of(const PluginFinding& finding) {
  if (finding.error) return finding.error->code == ErrorCode::usage ? "incompatible" : "failed";
  return finding.shadowed ? "shadowed" : "primary";
}

ProviderEntry plugin_entry(const PluginFinding& finding) {
  ProviderEntry entry{.provider = finding.ep ? std::string(finding.ep->name) : to_utf8(finding.plugin.library.stem()),
                      .source_tag = finding.plugin.source,
                      .status = status_of(finding),
                      .library = finding.plugin.library};
  const auto row = std::ranges::find(source_rows, entry.source_tag, &SourceRow::tag);
  if (row != source_rows.end()) entry.source_kind = row->kind;
  if (finding.error) entry.problem = finding.error->message;
  for (const OfferedDevice& device : finding.devices) {
    entry.version = device.version;
    entry.devices.push_back(
        {.type = upper(name_of(device.kind)), .hardware_name = device.hardware_name, .vendor = device.hardware_vendor});
  }
  return entry;
}

}  // namespace

std::vector<ProviderEntry> find_providers(const Runtime& runtime, EpDevices& plugins, const MachineInfo& machine) {
  std::vector<ProviderEntry> entries;
  for (const std::string& name : runtime.providers()) {
    if (find_ep(name) == nullptr) continue;  // Azure's, which runs nothing here
    ProviderEntry entry{.provider = name, .version = runtime.version()};
    if (name == "CPUExecutionProvider")
      entry.devices.push_back({.type = "CPU", .hardware_name = machine.cpu_name, .vendor = machine.cpu_vendor});
    entries.push_back(std::move(entry));
  }
  for (const PluginFinding& finding : plugins.survey()) entries.push_back(plugin_entry(finding));
  return entries;
}

std::vector<DeviceRow> find_devices(const MachineInfo& machine) {
  std::vector<DeviceRow> devices;
  for (const Accelerator& accelerator : accelerators()) {
    const bool npu = accelerator.kind == Accelerator::Kind::npu;
    DeviceRow row{.type = npu ? "NPU" : "GPU", .name = accelerator.name};
    if (!accelerator.driver.empty()) row.details.emplace_back("driver", accelerator.driver);
    if (!accelerator.vendor.empty()) row.details.emplace_back("manufacturer", accelerator.vendor);
    devices.push_back(std::move(row));
  }
  std::ranges::stable_sort(devices, [](const DeviceRow& a, const DeviceRow& b) { return a.type > b.type; });
  DeviceRow cpu{.type = "CPU", .name = machine.cpu_name.empty() ? "CPU" : machine.cpu_name};
  if (machine.cores > 0) cpu.details.emplace_back("cores", std::to_string(machine.cores));
  cpu.details.emplace_back("threads", std::to_string(machine.threads));
  cpu.details.emplace_back("architecture", machine.machine);
  devices.push_back(std::move(cpu));
  return devices;
}

}  // namespace mk::cli
