#include "quantize/channel_gain.h"

#include "quantize/qdq_test_support.h"

namespace mk {
namespace {

using testing::constant_text;
using testing::model_of_text;

// Columns that reach to 1 and to 0.1: steps of 1/127 and 0.1/127 instead of 1/127 for both.
TEST(PerChannelGain, ByHand) {
  const std::string text = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,2] x) => (float[1,2] y) <" +
                           constant_text("w", {2, 2}, {1, 0.1f, -0.5f, -0.1f}) + "> { y = MatMul(x, w) }";
  ASSERT_OK_AND(const auto model, model_of_text(text));
  ASSERT_OK_AND(const double gain, per_channel_gain(*model, DataType::int8, true, {}));
  EXPECT_NEAR(gain, 10 * std::log10(1 / ((1 + 0.01) / 2)), 1e-3);
  ASSERT_OK_AND(const double excluded, per_channel_gain(*model, DataType::int8, true, {.op_types = {"MatMul"}}));
  EXPECT_EQ(excluded, 0);
}

}  // namespace
}  // namespace mk
