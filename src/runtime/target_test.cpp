#include "runtime/target.h"

#include "testing/testing.h"

namespace mk {
namespace {

using enum DeviceKind;

// A machine that has these EPs installed, hardware of these vendors, and offers these pairs.
struct FakeMachine {
  std::vector<std::string> installed{"cpu"};
  std::vector<std::string> vendors;
  std::vector<std::string> offered{"cpu/cpu"};
  bool vendors_fail = false;
  std::vector<std::string> asked;  // pairs that were bound

  static bool holds(const std::vector<std::string>& list, std::string_view item) {
    return std::find(list.begin(), list.end(), item) != list.end();
  }

  Result<Target> resolve(std::string_view ep, std::string_view device) {
    MK_TRY(const auto request, parse_target(ep, device));
    const TargetProbe probe{
        .discovered = [this](const ExecutionProvider& e) { return holds(installed, e.short_name()); },
        .has_vendor = [this](std::string_view vendor) -> Result<bool> {
          if (vendors_fail) return fail(ErrorCode::failed, "no access");
          return holds(vendors, vendor);
        },
        .binds = [this](const ExecutionProvider& e, DeviceKind d, const std::optional<std::string>&) -> Status {
          const std::string pair = Target{&e, d, {}}.to_string();
          asked.push_back(pair);
          if (holds(offered, pair)) return {};
          return fail(ErrorCode::usage, pair + " offers no device");
        }};
    return resolve_target(request, probe, silent_progress());
  }
  std::string resolved(std::string_view ep, std::string_view device) {
    const auto target = resolve(ep, device);
    return target ? target->to_string() : "error: " + target.error().to_string();
  }
};

TEST(EpTable, NamesAndAliasesInAnyCase) {
  for (const char* name : {"QNN", "Qnn", "qnn", "qnnexecutionprovider", "QNNExecutionProvider"}) {
    ASSERT_NE(find_ep(name), nullptr) << name;
    EXPECT_EQ(find_ep(name)->name, "QNNExecutionProvider");
  }
  EXPECT_EQ(find_ep("nv_tensorrt_rtx"), find_ep("NvTensorRTRTXExecutionProvider"));
  EXPECT_EQ(find_ep("trtrtx"), find_ep("nvtensorrtrtx"));
  EXPECT_EQ(find_ep("ov"), nullptr);
  EXPECT_EQ(find_ep(""), nullptr);
  EXPECT_EQ(ep_named("nope").error().code, ErrorCode::usage);
}

TEST(EpTable, DevicesOfTheSpec) {
  EXPECT_EQ(find_ep("openvino")->device_list(), "npu, gpu, cpu");
  EXPECT_EQ(find_ep("qnn")->device_list(), "npu, gpu");
  EXPECT_EQ(find_ep("cpu")->device_list(), "cpu");
  EXPECT_EQ(find_ep("vitisai")->device_list(), "npu");
  for (const TargetRow& row : target_rows()) {
    ASSERT_NE(find_ep(row.ep), nullptr) << row.ep;
    EXPECT_TRUE(find_ep(row.ep)->supports(row.device)) << row.ep;
  }
}

TEST(ParseTarget, SourcesAndErrors) {
  ASSERT_OK_AND(const auto request, parse_target("openvino@PyPI", "NPU"));
  EXPECT_EQ(request.ep, find_ep("openvino"));
  EXPECT_EQ(request.source, "pypi");
  EXPECT_EQ(request.device, npu);
  ASSERT_OK_AND(const auto automatic, parse_target("auto", ""));
  EXPECT_EQ(automatic, TargetRequest{});
  for (const char* bad : {"a@b@c", "@pypi", "qnn@", "qnn @pypi", "qnn@attic", "qnnn"})
    EXPECT_EQ(parse_target(bad, "auto").error().code, ErrorCode::usage) << bad;
  EXPECT_EQ(parse_target("qnn", "tpu").error().code, ErrorCode::usage);
}

TEST(ResolveTarget, PlainMachineRunsOnTheCpu) {
  FakeMachine machine;
  EXPECT_EQ(machine.resolved("auto", "auto"), "cpu/cpu");
  EXPECT_EQ(machine.resolved("cpu", "auto"), "cpu/cpu");
  EXPECT_EQ(machine.resolved("auto", "cpu"), "cpu/cpu");
  EXPECT_EQ(machine.resolve("auto", "npu").error().code, ErrorCode::usage);
  EXPECT_EQ(machine.resolve("qnn", "auto").error().code, ErrorCode::usage);
  EXPECT_EQ(machine.asked, (std::vector<std::string>{"cpu/cpu", "cpu/cpu", "cpu/cpu"}));
}

TEST(ResolveTarget, BothNamedAsksNoHardware) {
  FakeMachine machine;
  EXPECT_EQ(machine.resolved("qnn", "gpu"), "qnn/gpu");
  EXPECT_NE(machine.resolved("qnn", "cpu").find("It supports npu, gpu"), std::string::npos);
  EXPECT_TRUE(machine.asked.empty());
}

TEST(ResolveTarget, WalksRowsInOrderOfPreference) {
  FakeMachine machine{.installed = {"cpu", "openvino", "qnn"},
                      .vendors = {"Intel", "Qualcomm"},
                      .offered = {"cpu/cpu", "openvino/gpu", "openvino/cpu"}};
  EXPECT_EQ(machine.resolved("auto", "auto"), "openvino/gpu");
  EXPECT_EQ(machine.asked, (std::vector<std::string>{"qnn/npu", "openvino/npu", "openvino/gpu"}));
  EXPECT_EQ(machine.resolved("openvino", "auto"), "openvino/gpu");
  EXPECT_EQ(machine.resolved("auto", "cpu"), "openvino/cpu");
  EXPECT_NE(machine.resolved("auto", "npu").find("openvino/npu offers no device"), std::string::npos);
}

TEST(ResolveTarget, VendorGates) {
  FakeMachine other{.installed = {"cpu", "openvino"}, .vendors = {"AMD"}, .offered = {"cpu/cpu", "openvino/cpu"}};
  EXPECT_EQ(other.resolved("auto", "auto"), "openvino/cpu");  // that row needs no vendor
  FakeMachine unknown{.installed = {"cpu", "qnn", "dml"}, .offered = {"cpu/cpu", "dml/gpu"}, .vendors_fail = true};
  EXPECT_EQ(unknown.resolved("auto", "auto"), "cpu/cpu");  // from there on only CPU rows
  EXPECT_EQ(unknown.resolved("auto", "gpu"), "dml/gpu");   // gated rows are skipped
}

}  // namespace
}  // namespace mk
