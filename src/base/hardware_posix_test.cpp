#include "base/hardware.h"

#include <gtest/gtest.h>

#include "base/system.h"

namespace mk {
namespace {

TEST(Hardware, TheProcessorsVendorIsAmongThem) {
  const std::string vendor = machine_info().cpu_vendor;
  const std::string name = vendor == "GenuineIntel" ? "Intel" : vendor == "AuthenticAMD" ? "AMD" : "";
  if (name.empty()) GTEST_SKIP() << vendor;
  EXPECT_TRUE(hardware_vendors().contains(name));
}

}  // namespace
}  // namespace mk
