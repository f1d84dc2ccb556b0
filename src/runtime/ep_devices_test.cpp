#include "runtime/ep_devices.h"

#include "testing/testing.h"

namespace mk {
namespace {

EpDevices::LoadRuntime never() {
  return []() -> Result<std::shared_ptr<Runtime>> {
    ADD_FAILURE() << "the library was loaded without need";
    return fail(ErrorCode::inference, "not to be loaded");
  };
}

Result<Target> resolve(EpDevices& devices, std::string_view ep, std::string_view device) {
  MK_TRY(const auto request, parse_target(ep, device));
  return resolve_on_this_machine(request, devices, silent_progress());
}

TEST(EpDevices, WithoutPluginsTheCpuNeedsNoRuntime) {
  EpDevices devices(never(), {});
  ASSERT_OK_AND(const auto target, resolve(devices, "", ""));
  EXPECT_EQ(target.to_string(), "cpu/cpu");
  ASSERT_OK_AND(const auto* device, devices.find(target));
  EXPECT_EQ(device, nullptr);
  const auto absent = resolve(devices, "qnn", "npu");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::usage);
  EXPECT_NE(absent.error().to_string().find("qnn is not installed"), std::string::npos) << absent.error().to_string();
  EXPECT_NE(absent.error().hint.find("WINMLCLI_EP_PATH"), std::string::npos);
  EXPECT_FALSE(resolve(devices, "openvino", ""));
  EXPECT_FALSE(resolve(devices, "", "npu"));
}

#ifdef __linux__
TEST(EpPlugins, FoundByTheirFileNames) {
  testing::TemporaryFolder folder;
  folder.write("named/libonnxruntime_providers_qnn.so", "");
  folder.write("named/libonnxruntime_providers_other.so", "");
  folder.write("shim.so", "");
  folder.write(
      "venv/lib/python3.11/site-packages/onnxruntime_ep_openvino/libs/libonnxruntime_providers_openvino_plugin.so", "");
  folder.write("venv/lib/python3.11/site-packages/other/libonnxruntime_providers_vitisai.so", "");
  const auto found = find_plugins(
      {.named = {folder / "named", folder / "shim.so", folder / "missing.so"}, .environments = {folder / "venv"}});
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].ep, find_ep("qnn"));
  EXPECT_EQ(found[0].source, "directory");
  EXPECT_EQ(found[1].ep, nullptr);
  EXPECT_EQ(found[1].library.filename(), "shim.so");
  EXPECT_EQ(found[2].ep, find_ep("openvino"));
  EXPECT_EQ(found[2].source, "pypi");
}

TEST(EpDevices, APluginThatDoesNotLoadSaysWhy) {
  testing::TemporaryFolder folder;
  folder.write("libonnxruntime_providers_qnn.so", "no library");
  EpDevices devices([] { return Runtime::load(); }, {.named = {folder.path()}});
  const auto target = resolve(devices, "qnn", "npu");
  ASSERT_FALSE(target);
  EXPECT_NE(target.error().to_string().find("libonnxruntime_providers_qnn.so"), std::string::npos)
      << target.error().to_string();
  ASSERT_OK_AND(const auto automatic, resolve(devices, "auto", "auto"));
  EXPECT_EQ(automatic.to_string(), "cpu/cpu");
  const auto findings = devices.survey();
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].ep, find_ep("qnn"));
  EXPECT_TRUE(findings[0].error);
  EXPECT_TRUE(findings[0].devices.empty());
}
#endif

}  // namespace
}  // namespace mk
