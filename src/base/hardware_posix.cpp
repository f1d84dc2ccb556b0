#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/file.h"
#include "base/hardware.h"
#include "base/system.h"
#include "base/text.h"

namespace mk {
namespace {

constexpr std::array<std::pair<const char*, const char*>, 6> pci_vendors{{{"0x8086", "Intel"},
                                                                          {"0x1002", "AMD"},
                                                                          {"0x1022", "AMD"},
                                                                          {"0x10de", "NVIDIA"},
                                                                          {"0x17cb", "Qualcomm"},
                                                                          {"0x5143", "Qualcomm"}}};
constexpr std::array<std::pair<const char*, const char*>, 4> cpu_vendors{
    {{"intel", "Intel"}, {"amd", "AMD"}, {"qualcomm", "Qualcomm"}, {"nvidia", "NVIDIA"}}};

// Files of /sys and /proc have other sizes than they say, so they are read to their end.
std::string first_line(const Path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string vendor_of(std::string_view number) {
  for (const auto& [known, vendor] : pci_vendors)
    if (number == known) return vendor;
  return {};
}

// "Model: <tab> NVIDIA H200" of the driver's file.
std::string nvidia_model(const Path& folder) {
  constexpr std::string_view label = "Model:";
  std::string line = first_line(folder / "information");
  if (!line.starts_with(label)) return {};
  line.erase(0, label.size());
  line.erase(0, line.find_first_not_of(" \t"));
  return line;
}

}  // namespace

std::vector<Accelerator> accelerators(const Path& pci, const Path& nvidia) {
  std::vector<Accelerator> found;
  const auto names = list_folder(pci);
  if (!names) return found;
  for (const Path& name : *names) {
    const Path device = pci / name.filename();
    // PCI class codes: 03 is a display controller, 12 a processing accelerator.
    const std::string code = first_line(device / "class");
    if (!code.starts_with("0x03") && !code.starts_with("0x12")) continue;
    const std::string vendor_id = first_line(device / "vendor"), device_id = first_line(device / "device");
    Accelerator accelerator{.kind = code.starts_with("0x12") ? Accelerator::Kind::npu : Accelerator::Kind::gpu,
                            .vendor = vendor_of(vendor_id)};
    std::error_code ignored;
    accelerator.driver = std::filesystem::read_symlink(device / "driver", ignored).filename().string();
    accelerator.name = nvidia_model(nvidia / name.filename());
    if (accelerator.name.empty() && vendor_id.size() > 2 && device_id.size() > 2) {
      accelerator.name = (accelerator.vendor.empty() ? "" : accelerator.vendor + " ") + vendor_id.substr(2) + ":" +
                         device_id.substr(2);
    }
    found.push_back(std::move(accelerator));
  }
  return found;
}

std::set<std::string> hardware_vendors() {
  std::set<std::string> found;
  const MachineInfo machine = machine_info();
  const std::string cpu = lower_case(machine.cpu_vendor + " " + machine.cpu_name);
  for (const auto& [word, vendor] : cpu_vendors)
    if (cpu.find(word) != std::string::npos) found.insert(vendor);

  const Path devices = "/sys/bus/pci/devices";
  if (const auto names = list_folder(devices)) {
    for (const Path& name : *names) {
      const std::string id = first_line(devices / name.filename() / "vendor");
      for (const auto& [number, vendor] : pci_vendors)
        if (id.starts_with(number)) found.insert(vendor);
    }
  }
  if (first_line("/sys/firmware/devicetree/base/compatible").find("qcom,") != std::string::npos)
    found.insert("Qualcomm");
  return found;
}

}  // namespace mk
