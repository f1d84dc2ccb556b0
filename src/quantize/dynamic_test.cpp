#include "quantize/dynamic.h"

#include "quantize/qdq_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

const std::string head = "<ir_version: 8, opset_import: [\"\" : 17]> ";

class DynamicTest : public QuantizeTest {
 protected:
  // Quantizes, checks, and compares with the float model, unoptimized and fused by the runtime.
  static void expect_near(const std::string& text, const std::vector<HostTensor>& sample, const DynamicOptions& options,
                          double tolerance, DynamicReport* report = nullptr) {
    ASSERT_OK_AND(const auto original, model_of_text(text));
    ASSERT_OK_AND(const auto model, model_of_text(text));
    ASSERT_OK_AND(const auto done, quantize_dynamic(*model, options));
    ASSERT_OK(check_onnx(*model));
    ASSERT_OK_AND(const auto expected, run(*original, sample));
    for (const auto optimization : {GraphOptimization::none, GraphOptimization::all}) {
      ASSERT_OK_AND(const auto actual, run(*model, sample, optimization));
      EXPECT_LT(largest_difference(expected, actual), tolerance);
    }
    if (report) *report = done;
  }
};

TEST_F(DynamicTest, MatMulOfEveryTypeAndPerChannel) {
  const std::string text = head + "g (float[2,64] x) => (float[2,8] y) <" +
                           constant_text("w", {64, 8}, random_floats(512, 1)) + "> { y = MatMul(x, w) }";
  const std::vector<HostTensor> sample{floats("x", {2, 64}, random_floats(128, 2))};
  for (const DataType type : {DataType::uint8, DataType::int8}) {
    for (const bool per_channel : {false, true}) {
      for (const bool reduce_range : {false, true}) {
        DynamicReport report;
        expect_near(text, sample, {.weight_type = type, .per_channel = per_channel, .reduce_range = reduce_range},
                    reduce_range ? 0.15 : 0.08, &report);
        EXPECT_EQ(report.nodes_quantized, 1u);
        EXPECT_EQ(report.dynamic_quantize_linear, 1u);
        EXPECT_EQ(report.matmul_integer, 1u);
      }
    }
  }
}

TEST_F(DynamicTest, GemmWithItsFactorsAndTransposedWeight) {
  const std::string bias = constant_text("b", {8}, random_floats(8, 5));
  const std::vector<HostTensor> sample{floats("x", {2, 64}, random_floats(128, 2))};
  for (const bool per_channel : {false, true}) {
    expect_near(head + "g (float[2,64] x) => (float[2,8] y) <" + constant_text("w", {8, 64}, random_floats(512, 1)) +
                    ", " + bias + "> { y = Gemm<transB = 1, alpha = -2.0, beta = 0.5>(x, w, b) }",
                sample, {.per_channel = per_channel}, 0.15);
    expect_near(head + "g (float[2,64] x) => (float[2,8] y) <" + constant_text("w", {64, 8}, random_floats(512, 1)) +
                    ", " + bias + "> { y = Gemm<beta = 0.0>(x, w, b) }",
                sample, {.per_channel = per_channel}, 0.08);
  }
}

TEST_F(DynamicTest, ConvolutionsPerChannelInGroupsWithBias) {
  // Channels of very different size: one scale for all loses the small ones.
  std::vector<float> weights = random_floats(4 * 2 * 9, 1);
  for (std::size_t i = 0; i < 18; ++i) weights[i] *= 1000;
  const std::string text =
      head + "g (float[1,4,6,6] x) => (float[1,4,3,3] y) <" + constant_text("w", {4, 2, 3, 3}, weights) + ", " +
      constant_text("b", {4}, {1, -2, 3, 0.5f}) +
      "> { c = Conv<group = 2, strides = [2, 2], pads = [1, 1, 1, 1]>(x, w, b) " + "y = Mul(c, s) }";
  std::string scaled = text;
  scaled.insert(scaled.find("> { c"), ", " + constant_text("s", {1, 4, 1, 1}, {0.001f, 1, 1, 1}));
  const std::vector<HostTensor> sample{floats("x", {1, 4, 6, 6}, random_floats(144, 3))};
  DynamicReport report;
  expect_near(scaled, sample, {.per_channel = true}, 0.03, &report);
  EXPECT_EQ(report.conv_integer, 1u);
}

TEST_F(DynamicTest, EmbeddingsAreTakenFromIntegers) {
  const std::string text = head + "g (int64[3] ids) => (float[3,4] y) <" +
                           constant_text("table", {16, 4}, random_floats(64, 1)) + "> { y = Gather(table, ids) }";
  const std::vector<std::int64_t> ids{0, 15, 7};
  DynamicReport report;
  expect_near(text, {host_tensor<std::int64_t>("ids", DataType::int64, {3}, ids)}, {}, 0.005, &report);
  EXPECT_EQ(report.dequantize_linear, 1u);
  EXPECT_EQ(report.dynamic_quantize_linear, 0u);
}

TEST_F(DynamicTest, SharedActivationsAndWeightsAreQuantizedOnce) {
  const std::string text = head + "g (float[2,64] x) => (float[2,8] y) <" +
                           constant_text("w", {64, 8}, random_floats(512, 1)) +
                           "> { a = MatMul(x, w) b = MatMul(x, w) y = Sub(a, b) }";
  DynamicReport report;
  expect_near(text, {floats("x", {2, 64}, random_floats(128, 2))}, {}, 1e-6, &report);
  EXPECT_EQ(report.dynamic_quantize_linear, 1u);
  EXPECT_EQ(report.weights, 1u);
  EXPECT_EQ(report.matmul_integer, 2u);
}

TEST_F(DynamicTest, CapturedValuesAreQuantizedWhereTheyAreMade) {
  const std::string text = head + "g (bool c, float[2,64] x) => (float[2,8] y) <" +
                           constant_text("w", {64, 8}, random_floats(512, 1)) +
                           "> { n = Neg(x) y = If(c) <then_branch = a () => (float[2,8] p) { p = MatMul(n, w) }, "
                           "else_branch = b () => (float[2,8] q) { q = MatMul(n, w) }> }";
  for (const std::uint8_t flag : {0, 1}) {
    DynamicReport report;
    expect_near(text,
                {host_tensor<std::uint8_t>("c", DataType::boolean, {}, std::vector<std::uint8_t>{flag}),
                 floats("x", {2, 64}, random_floats(128, 2))},
                {}, 0.08, &report);
    EXPECT_EQ(report.dynamic_quantize_linear, 1u);
    EXPECT_EQ(report.matmul_integer, 2u);
  }
}

TEST_F(DynamicTest, BodiesOfLoop) {
  const std::string text =
      head + "g (int64 trips, bool go, float[2,8] x) => (float[2,8] y) <" +
      constant_text("w", {8, 8}, random_floats(64, 1)) +
      "> { y = Loop(trips, go, x) <body = b (int64 i, bool c, float[2,8] s) => (bool d, float[2,8] t) "
      "{ d = Identity(c) m = MatMul(s, w) t = Tanh(m) }> }";
  DynamicReport report;
  expect_near(text,
              {host_tensor<std::int64_t>("trips", DataType::int64, {}, std::vector<std::int64_t>{3}),
               host_tensor<std::uint8_t>("go", DataType::boolean, {}, std::vector<std::uint8_t>{1}),
               floats("x", {2, 8}, random_floats(16, 2))},
              {}, 0.1, &report);
  EXPECT_EQ(report.matmul_integer, 1u);
}

TEST_F(DynamicTest, SixteenBitsBecomeEightWithAWarning) {
  ASSERT_OK_AND(const auto model,
                model_of_text(head + "g (float[2,4] x) => (float[2,2] y) <" +
                              constant_text("w", {4, 2}, random_floats(8, 1)) + "> { y = MatMul(x, w) }"));
  ASSERT_OK_AND(const auto report, quantize_dynamic(*model, {.weight_type = DataType::uint16}));
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_NE(report.warnings[0].find("int8 instead of uint16"), std::string::npos);
  EXPECT_EQ(find_node(*model, "MatMulInteger")->input(1)->initializer()->type, DataType::int8);
}

TEST_F(DynamicTest, OperatorsThatWereNotAskedForStayFloat) {
  const std::string text = head + "g (float[2,4] x, int64[2] ids) => (float[2,2] y, float[2,4] z) <" +
                           constant_text("w", {4, 2}, random_floats(8, 1)) + ", " +
                           constant_text("t", {3, 4}, random_floats(12, 1)) +
                           "> { y = MatMul(x, w) z = Gather(t, ids) }";
  ASSERT_OK_AND(const auto model, model_of_text(text));
  ASSERT_OK_AND(const auto report, quantize_dynamic(*model, {.op_types = {"Gather"}}));
  EXPECT_EQ(report.nodes_quantized, 1u);
  EXPECT_EQ(count_nodes(*model, "MatMul"), 1u);
  ASSERT_OK_AND(const auto other, model_of_text(text));
  ASSERT_OK_AND(const auto excluded, quantize_dynamic(*other, {.exclude = {{"y"}, {"Gather"}}}));
  EXPECT_EQ(excluded.nodes_quantized, 0u);
  EXPECT_EQ(excluded.skipped.size(), 2u);
}

TEST_F(DynamicTest, BeforeOpset11ThereIsNothingToQuantizeWith) {
  ASSERT_OK_AND(const auto model,
                model_of_text("<ir_version: 5, opset_import: [\"\" : 9]> g (float[2,4] x) => "
                              "(float[2,2] y) <" +
                              constant_text("w", {4, 2}, random_floats(8, 1)) + "> { y = MatMul(x, w) }"));
  const auto report = quantize_dynamic(*model, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace mk
