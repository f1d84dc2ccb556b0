#pragma once
// Whose hardware is in this machine: processor, PCI devices, system on chip.

#include <set>
#include <string>
#include <vector>

#include "base/path.h"

namespace mk {

// Of "Intel", "AMD", "NVIDIA" and "Qualcomm", those found.
std::set<std::string> hardware_vendors();

// A graphics or neural processor on the PCI bus.
struct Accelerator {
  enum class Kind { npu, gpu };
  Kind kind = Kind::gpu;
  std::string name;    // "NVIDIA H200", or "Intel 8086:643e" where the driver gives no name
  std::string vendor;  // as above; empty for others
  std::string driver;  // "amdgpu"; empty where none is bound
};
// In order of bus addresses. `pci` and `nvidia` are for tests.
std::vector<Accelerator> accelerators(const Path& pci = "/sys/bus/pci/devices",
                                      const Path& nvidia = "/proc/driver/nvidia/gpus");

}  // namespace mk
