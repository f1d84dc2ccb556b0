#include "build/target_policy.h"

#include "testing/testing.h"

namespace mk {
namespace {

Precision precision(std::string_view text) {
  auto parsed = parse_precision(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : Precision{};
}

// A machine on which the walk finds one target, or nothing.
ResolveTarget machine_with(std::optional<Target> target) {
  return [target](const TargetRequest& request) -> Result<Target> {
    if (request.ep && request.device) return Target{request.ep, *request.device, {}};
    if (target && (!request.ep || request.ep == target->ep) && (!request.device || request.device == target->device))
      return *target;
    return fail(ErrorCode::usage, "nothing here");
  };
}

Target target_of(std::string_view ep, DeviceKind device) { return {find_ep(ep), device, {}}; }

const QuantIdentity identity{"fill-mask", "org/name", "bert"};

Result<BuildConfig> with_policy(TargetPolicy policy, std::optional<Target> machine, BuildConfig config = {}) {
  MK_CHECK(apply_target_policy(config, policy, identity, machine_with(machine), silent_progress()));
  return config;
}

// Spec: config, precision policy.
TEST(Precision, HasTheGrammarOfTheSpec) {
  using Kind = Precision::Kind;
  EXPECT_EQ(precision("auto").kind, Kind::automatic);
  EXPECT_EQ(precision("FP32").kind, Kind::float32);
  EXPECT_EQ(precision("fp16").kind, Kind::float16);
  struct Row {
    const char *text, *weight, *activation;
  };
  for (const Row& row : {Row{"int8", "uint8", "uint8"}, Row{"w8a8", "uint8", "uint8"}, Row{"w8a16", "uint8", "uint16"},
                         Row{"w16a8", "int16", "uint8"}, Row{"int16", "int16", "uint16"},
                         Row{"w16a16", "int16", "uint16"}, Row{"W08A16", "uint8", "uint16"}}) {
    EXPECT_EQ(precision(row.text).kind, Kind::integer) << row.text;
    EXPECT_EQ(precision(row.text).weight_type, row.weight) << row.text;
    EXPECT_EQ(precision(row.text).activation_type, row.activation) << row.text;
  }
  for (const char* text : {"int4", "w4a32", "w4a16", "w4a8"}) {
    EXPECT_EQ(precision(text).kind, Kind::weight_only) << text;
    EXPECT_EQ(precision(text).bits, 4) << text;
  }
  for (const char* text : {"", "w9a3", "w8a32", "w8", "w8a", "wa8", "w8a16x", "w-8a8", "int2", "bf16", "w8a4"}) {
    const auto wrong = parse_precision(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code, ErrorCode::usage);
  }
}

TEST(TargetPolicy, AutomaticEverythingChangesNothing) {
  BuildConfig config;
  config.quant = QuantConfig{.samples = 3};
  ASSERT_OK_AND(const BuildConfig kept, with_policy({}, target_of("qnn", DeviceKind::npu), config));
  EXPECT_EQ(kept.quant->samples, 3);
}

TEST(TargetPolicy, AutomaticPrecisionFollowsTheDevice) {
  ASSERT_OK_AND(const BuildConfig npu, with_policy({.target = {.device = DeviceKind::npu}}, {}));
  EXPECT_EQ(npu.quant->mode, "static");
  EXPECT_EQ(npu.quant->weight_type, "uint8");
  EXPECT_EQ(npu.quant->activation_type, "uint16");
  EXPECT_EQ(npu.quant->task, "fill-mask");
  EXPECT_EQ(npu.quant->model_id, "org/name");
  for (const DeviceKind device : {DeviceKind::gpu, DeviceKind::cpu}) {
    ASSERT_OK_AND(const BuildConfig plain, with_policy({.target = {.device = device}}, {}));
    EXPECT_FALSE(plain.quant.has_value());
  }
}

TEST(TargetPolicy, AnEpBringsItsDevice) {
  const TargetPolicy openvino{.target = {.ep = find_ep("openvino")}};
  ASSERT_OK_AND(const BuildConfig on_cpu, with_policy(openvino, target_of("openvino", DeviceKind::cpu)));
  EXPECT_FALSE(on_cpu.quant.has_value());
  // Not installed: its first device decides, so that configs can be made on any machine.
  ASSERT_OK_AND(const BuildConfig elsewhere, with_policy(openvino, {}));
  EXPECT_EQ(elsewhere.quant->activation_type, "uint16");
}

TEST(TargetPolicy, AnEpThatQuantizesByItselfGetsTheFloatModel) {
  const TargetPolicy vitis{.target = {.ep = find_ep("vitisai"), .device = DeviceKind::npu}};
  ASSERT_OK_AND(const BuildConfig plain, with_policy(vitis, {}));
  EXPECT_FALSE(plain.quant.has_value());
  TargetPolicy typed = vitis;
  typed.precision = precision("int8");
  ASSERT_OK_AND(const BuildConfig quantized, with_policy(typed, {}));
  EXPECT_TRUE(quantized.quant.has_value());
}

TEST(TargetPolicy, ExplicitPrecisionNeedsNoMachine) {
  bool asked = false;
  BuildConfig config;
  ASSERT_OK(apply_target_policy(
      config, {.target = {.device = DeviceKind::npu}, .precision = precision("fp16")}, identity,
      [&](const TargetRequest&) -> Result<Target> {
        asked = true;
        return fail(ErrorCode::usage, "asked");
      },
      silent_progress()));
  EXPECT_FALSE(asked);
  EXPECT_EQ(config.quant->mode, "fp16");
}

TEST(TargetPolicy, PrecisionKeepsTheRestOfTheSection) {
  BuildConfig config;
  config.quant = QuantConfig{.mode = "rtn", .samples = 99, .task = "mine"};
  ASSERT_OK_AND(const BuildConfig changed, with_policy({.precision = precision("w8a8")}, {}, config));
  EXPECT_EQ(changed.quant->mode, "static");
  EXPECT_EQ(changed.quant->samples, 99);
  EXPECT_EQ(changed.quant->task, "mine");
  ASSERT_OK_AND(const BuildConfig off, with_policy({.precision = precision("fp32")}, {}, config));
  EXPECT_FALSE(off.quant.has_value());
}

TEST(TargetPolicy, ImpossiblePairsAreUsage) {
  const auto wrong = [](const TargetRequest& request) { return resolve_target(request, {}, silent_progress()); };
  BuildConfig config;
  const auto status = apply_target_policy(config, {.target = {.ep = find_ep("vitisai"), .device = DeviceKind::gpu}},
                                          identity, wrong, silent_progress());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::usage);
}

TEST(TargetPolicy, CompileSectionsComeFromTheEp) {
  const auto compiled = [](std::string_view ep, DeviceKind device) {
    return with_policy({.target = {.ep = find_ep(ep), .device = device}, .compile = true}, {})->compile;
  };
  const auto qnn = compiled("qnn", DeviceKind::npu);
  EXPECT_EQ(qnn->execution_provider, "qnn");
  EXPECT_EQ(qnn->device, "npu");
  EXPECT_EQ(qnn->provider_options, (std::map<std::string, std::string>{{"device_type", "NPU"}}));
  EXPECT_EQ(compiled("openvino", DeviceKind::cpu)->provider_options.at("device_type"), "CPU");
  EXPECT_TRUE(compiled("nvtensorrtrtx", DeviceKind::gpu)->provider_options.empty());
  EXPECT_FALSE(compiled("dml", DeviceKind::gpu).has_value());
  EXPECT_FALSE(compiled("cpu", DeviceKind::cpu).has_value());
  // Without a machine that has it, compiling for an unnamed target is an error.
  EXPECT_FALSE(with_policy({.compile = true}, {}));
}

}  // namespace
}  // namespace mk
