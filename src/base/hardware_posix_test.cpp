#include "base/hardware.h"

#include "base/system.h"
#include "testing/testing.h"

namespace mk {
namespace {

// A bus as Linux shows it: a network card, a GPU with and one without a name of its driver's, an NPU.
TEST(Hardware, AcceleratorsAreToldByTheirPciClass) {
  const testing::TemporaryFolder bus;
  const auto device = [&](const std::string& address, const char* code, const char* vendor, const char* id) {
    bus.write("pci/" + address + "/class", std::string(code) + "\n");
    bus.write("pci/" + address + "/vendor", std::string(vendor) + "\n");
    bus.write("pci/" + address + "/device", std::string(id) + "\n");
  };
  device("0000:00:02.0", "0x030000", "0x8086", "0x64a0");
  device("0000:00:0b.0", "0x120000", "0x8086", "0x643e");
  device("0000:01:00.0", "0x030200", "0x10de", "0x2335");
  device("0000:02:00.0", "0x020000", "0x8086", "0x1234");
  bus.write("nvidia/0000:01:00.0/information", "Model: \t\t NVIDIA H200\nIRQ: 1\n");
  bus.write("drivers/xe/uevent", "");
  std::filesystem::create_directory_symlink(bus / "drivers/xe", bus / "pci/0000:00:02.0/driver");

  const auto found = accelerators(bus / "pci", bus / "nvidia");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].kind, Accelerator::Kind::gpu);
  EXPECT_EQ(found[0].name, "Intel 8086:64a0");
  EXPECT_EQ(found[0].driver, "xe");
  EXPECT_EQ(found[1].kind, Accelerator::Kind::npu);
  EXPECT_EQ(found[1].vendor, "Intel");
  EXPECT_EQ(found[2].name, "NVIDIA H200");
  EXPECT_EQ(found[2].driver, "");
  EXPECT_TRUE(accelerators(bus / "nowhere", bus / "nowhere").empty());
}

// As the kernel shows this machine: its files say a size of a page.
TEST(Hardware, WhatIsOnThisMachine) {
  const std::string vendor = machine_info().cpu_vendor;
  const std::string name = vendor == "GenuineIntel" ? "Intel" : vendor == "AuthenticAMD" ? "AMD" : "";
  if (!name.empty()) {
    EXPECT_TRUE(hardware_vendors().contains(name));
  }
  for (const Accelerator& accelerator : accelerators()) EXPECT_FALSE(accelerator.name.empty());
}

}  // namespace
}  // namespace mk
