#include "build/pass_policy.h"

#include <gtest/gtest.h>

namespace mk {
namespace {

PassPolicy policy(std::string_view ep, std::string_view device, AfterOptimize next) {
  const auto target = parse_target(ep, device);
  EXPECT_TRUE(target);
  return pass_policy(*target, next);
}

TEST(PassPolicy, TargetsGetWhatTheyRun) {
  EXPECT_TRUE(policy("", "", AfterOptimize::nothing).passes.has("attention-fusion"));
  EXPECT_TRUE(policy("dml", "gpu", AfterOptimize::float16).passes.has("attention-fusion"));
  const PassPolicy npu = policy("qnn", "npu", AfterOptimize::nothing);
  EXPECT_TRUE(npu.standard_only);
  EXPECT_FALSE(npu.passes.has("attention-fusion"));
  EXPECT_TRUE(policy("openvino", "gpu", AfterOptimize::nothing).standard_only);
}

TEST(PassPolicy, NothingHidesAMatMulFromTheQuantizer) {
  const PassPolicy cpu = policy("", "", AfterOptimize::integers);
  EXPECT_TRUE(cpu.passes.has("layer-norm-fusion"));
  EXPECT_FALSE(cpu.passes.has("attention-fusion"));
  EXPECT_FALSE(cpu.passes.has("matmul-transpose-fusion"));
}

TEST(PassPolicy, EveryNameIsAPass) {
  for (const char* device : {"cpu", "gpu", "npu"}) {
    for (const auto next : {AfterOptimize::nothing, AfterOptimize::float16, AfterOptimize::integers}) {
      for (const std::string_view name : policy("", device, next).unknown) ADD_FAILURE() << name;
    }
  }
}

}  // namespace
}  // namespace mk
