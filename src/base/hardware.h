#pragma once
// Whose hardware is in this machine: processor, PCI devices, system on chip.

#include <set>
#include <string>

namespace mk {

// Of "Intel", "AMD", "NVIDIA" and "Qualcomm", those found.
std::set<std::string> hardware_vendors();

}  // namespace mk
