#include <array>
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

}  // namespace

std::set<std::string> hardware_vendors() {
  std::set<std::string> found;
  const MachineInfo machine = machine_info();
  const std::string cpu = lower_case(machine.cpu_vendor + " " + machine.cpu_name);
  for (const auto& [word, vendor] : cpu_vendors)
    if (cpu.find(word) != std::string::npos) found.insert(vendor);

  const Path devices = "/sys/bus/pci/devices";
  if (const auto names = list_folder(devices)) {
    for (const Path& name : *names) {
      const auto id = read_text(devices / name.filename() / "vendor");
      for (const auto& [number, vendor] : pci_vendors)
        if (id && id->starts_with(number)) found.insert(vendor);
    }
  }
  const auto board = read_text("/sys/firmware/devicetree/base/compatible");
  if (board && board->find("qcom,") != std::string::npos) found.insert("Qualcomm");
  return found;
}

}  // namespace mk
