#include "runtime/ep_devices.h"

#include "base/hardware.h"
#include "runtime/ort.h"

namespace mk {
namespace {

std::string text_or_empty(const char* text) { return text ? text : ""; }

DeviceKind kind_of(OrtHardwareDeviceType type) {
  if (type == OrtHardwareDeviceType_NPU) return DeviceKind::npu;
  return type == OrtHardwareDeviceType_GPU ? DeviceKind::gpu : DeviceKind::cpu;
}

std::string metadata(const OrtApi& api, const OrtKeyValuePairs* pairs, const char* key) {
  return pairs ? text_or_empty(api.GetKeyValue(pairs, key)) : "";
}

std::size_t count_devices(const Runtime& runtime) {
  const OrtEpDevice* const* list = nullptr;
  std::size_t count = 0;
  if (!ort::check(runtime.api(), runtime.api().GetEpDevices(runtime.env(), &list, &count), {})) return 0;
  return count;
}

bool is_cpu(const ExecutionProvider& ep) { return ep.short_name() == "cpu"; }

}  // namespace

EpDevices::EpDevices(LoadRuntime load, const PluginPlaces& places) : load_runtime_(std::move(load)) {
  for (EpPlugin& plugin : find_plugins(places)) candidates_.push_back({std::move(plugin), false, std::nullopt, {}});
}

void EpDevices::load(Candidate& candidate) {
  if (candidate.loaded) return;
  candidate.loaded = true;
  if (!runtime_) {
    auto loaded = load_runtime_();
    if (!loaded) {
      candidate.error = loaded.error();
      return;
    }
    runtime_ = std::move(*loaded);
  }
  const OrtApi& api = runtime_->api();
  const std::string where = to_utf8(candidate.plugin.library);
  const std::size_t before = count_devices(*runtime_);
  const std::string registration = "winml-" + where;
  const Status registered = ort::check(
      api,
      api.RegisterExecutionProviderLibrary(runtime_->env(), registration.c_str(), candidate.plugin.library.c_str()),
      where);
  if (!registered) {
    candidate.error = registered.error();
    return;
  }
  const OrtEpDevice* const* list = nullptr;
  std::size_t count = 0;
  if (const Status listed = ort::check(api, api.GetEpDevices(runtime_->env(), &list, &count), where); !listed) {
    candidate.error = listed.error();
    return;
  }
  for (std::size_t i = before; i < count; ++i) {  // new devices come after those known
    const auto* ep = find_ep(text_or_empty(api.EpDevice_EpName(list[i])));
    if (!ep) continue;
    const OrtHardwareDevice* hardware = api.EpDevice_Device(list[i]);
    const OrtKeyValuePairs* facts = api.EpDevice_EpMetadata(list[i]);
    OfferedDevice device{ep,
                         kind_of(api.HardwareDevice_Type(hardware)),
                         {},
                         {},
                         {},
                         candidate.plugin.library,
                         candidate.plugin.source,
                         list[i]};
    device.hardware_name = metadata(api, facts, "FULL_DEVICE_NAME");
    if (device.hardware_name.empty())
      device.hardware_name = metadata(api, api.HardwareDevice_Metadata(hardware), "Description");
    device.hardware_vendor = text_or_empty(api.HardwareDevice_Vendor(hardware));
    device.version = metadata(api, facts, "version");
    candidate.devices.push_back(std::move(device));
  }
  if (candidate.devices.empty()) {
    static_cast<void>(
        ort::check(api, api.UnregisterExecutionProviderLibrary(runtime_->env(), registration.c_str()), where));
    candidate.error = Error{ErrorCode::usage, "the plugin offers no device on this machine", where, {}};
  }
}

// A file that names no EP has to be loaded to know.
bool EpDevices::may_have(const Candidate& candidate, const ExecutionProvider& ep) {
  return !candidate.plugin.ep || candidate.plugin.ep == &ep;
}

Status EpDevices::bind(const ExecutionProvider& ep, DeviceKind device, const std::optional<std::string>& source,
                       const OfferedDevice** found) {
  if (is_cpu(ep)) return {};
  std::optional<Error> last;
  bool any = false;
  for (Candidate& candidate : candidates_) {
    if (!may_have(candidate, ep) || (source && candidate.plugin.source != *source)) continue;
    any = any || candidate.plugin.ep == &ep;
    load(candidate);
    if (candidate.error) {
      last = candidate.error;
      continue;
    }
    for (const OfferedDevice& offered : candidate.devices) {
      if (offered.ep != &ep) continue;
      any = true;
      last.reset();
      if (offered.kind != device) continue;
      if (found) *found = &offered;
      return {};
    }
  }
  const std::string name(ep.short_name());
  if (last && any) return tl::make_unexpected(*last);
  if (any)
    return fail(ErrorCode::usage, "no " + std::string(name_of(device)) + " that " + name + " can use in this machine");
  return fail(ErrorCode::usage, name + " is not installed" + (source ? " from " + *source : ""), {},
              "Install its plugin or set WINMLCLI_EP_PATH; 'winml sys --list-ep' shows what there is");
}

TargetProbe EpDevices::probe() {
  return {.discovered =
              [this](const ExecutionProvider& ep) {
                if (is_cpu(ep)) return true;
                for (Candidate& candidate : candidates_) {
                  if (candidate.plugin.ep == &ep) return true;
                  if (candidate.plugin.ep) continue;
                  load(candidate);
                  for (const OfferedDevice& device : candidate.devices)
                    if (device.ep == &ep) return true;
                }
                return false;
              },
          .has_vendor = [](std::string_view vendor) -> Result<bool> {
            return hardware_vendors().contains(std::string(vendor));
          },
          .binds = [this](const ExecutionProvider& ep, DeviceKind device,
                          const std::optional<std::string>& source) { return bind(ep, device, source, nullptr); }};
}

Result<const OfferedDevice*> EpDevices::find(const Target& target) {
  const OfferedDevice* device = nullptr;
  MK_CHECK(bind(*target.ep, target.device, target.source, &device));
  return device;
}

std::vector<PluginFinding> EpDevices::survey() {
  std::vector<PluginFinding> findings;
  for (Candidate& candidate : candidates_) {
    load(candidate);
    PluginFinding finding{candidate.plugin.ep, candidate.plugin, candidate.devices, candidate.error, false};
    if (!finding.ep && !finding.devices.empty()) finding.ep = finding.devices.front().ep;
    for (const PluginFinding& earlier : findings)
      finding.shadowed = finding.shadowed || (!earlier.error && earlier.ep == finding.ep);
    findings.push_back(std::move(finding));
  }
  return findings;
}

Result<Target> resolve_on_this_machine(const TargetRequest& request, EpDevices& devices, Progress& progress) {
  MK_TRY(auto target, resolve_target(request, devices.probe(), progress));
  MK_CHECK(devices.find(target));
  return target;
}

}  // namespace mk
