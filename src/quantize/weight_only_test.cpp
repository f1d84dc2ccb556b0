#include "quantize/weight_only.h"

#include "quantize/float16.h"
#include "quantize/qdq_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

class WeightOnlyTest : public QuantizeTest {
 protected:
  struct Quantized {
    std::unique_ptr<Model> model;
    WeightOnlyReport report;
  };
  static Result<Quantized> quantize(const std::string& text, const WeightOnlyOptions& options) {
    MK_TRY(auto model, model_of_text(text));
    MK_TRY(auto report, quantize_weights_only(*model, options));
    return Quantized{std::move(model), std::move(report)};
  }
  // How far the quantized model is from the float one on one sample.
  static Result<double> difference(const std::string& text, const Model& model, const std::vector<HostTensor>& sample) {
    MK_TRY(const auto original, model_of_text(text));
    MK_TRY(const auto expected, run(*original, sample));
    MK_TRY(const auto actual, run(model, sample));
    return largest_difference(expected, actual);
  }
};

const std::string head = "<ir_version: 8, opset_import: [\"\" : 17]> ";
const std::string w64 = constant_text("w", {64, 8}, random_floats(512, 3));

TEST_F(WeightOnlyTest, MatMulInFourAndEightBits) {
  const std::string text = head + "g (float[1,3,64] x) => (float[1,3,8] y) <" + w64 + "> { y = MatMul(x, w) }";
  const std::vector<HostTensor> sample{floats("x", {1, 3, 64}, random_floats(192, 4))};
  for (const int bits : {4, 8}) {
    for (const bool symmetric : {true, false}) {
      ASSERT_OK_AND(const auto quantized, quantize(text, {.bits = bits, .block_size = 32, .symmetric = symmetric}));
      EXPECT_EQ(quantized.report.nodes_quantized, 1u);
      const Node* node = find_node(*quantized.model, "MatMulNBits");
      ASSERT_TRUE(node);
      EXPECT_EQ(node->integer("K", 0), 64);
      EXPECT_EQ(node->integer("N", 0), 8);
      EXPECT_EQ(node->attribute("accuracy_level"), nullptr);
      EXPECT_EQ(node->inputs().size(), symmetric ? 3u : 4u);
      EXPECT_EQ(quantized.model->graph->find("w"), nullptr);
      ASSERT_OK(check_onnx(*quantized.model));
      // Half a step of 1/8 (1/127) over 64 products of random signs.
      ASSERT_OK_AND(const double off, difference(text, *quantized.model, sample));
      EXPECT_LT(off, bits == 4 ? 1.0 : 0.06);
      EXPECT_GT(off, 0);
    }
  }
}

TEST_F(WeightOnlyTest, GemmBecomesAProductAndASum) {
  const std::string bias = constant_text("b", {8}, random_floats(8, 5));
  for (const std::string attributes : {"", "<alpha = 2.0, beta = 0.5>", "<alpha = -1.5, beta = 0.0>"}) {
    const std::string text = head + "g (float[3,64] x) => (float[3,8] y) <" + w64 + ", " + bias + "> { y = Gemm" +
                             attributes + "(x, w, b) }";
    ASSERT_OK_AND(const auto quantized, quantize(text, {.bits = 8, .block_size = 16}));
    EXPECT_EQ(count_nodes(*quantized.model, "Gemm"), 0u);
    ASSERT_OK_AND(const double off, difference(text, *quantized.model, {floats("x", {3, 64}, random_floats(192, 6))}));
    EXPECT_LT(off, 0.12) << attributes;
  }
  const std::string transposed = head + "g (float[3,64] x) => (float[3,8] y) <" +
                                 constant_text("w", {8, 64}, random_floats(512, 7)) +
                                 "> { y = Gemm<transB = 1>(x, w) }";
  ASSERT_OK_AND(const auto quantized, quantize(transposed, {.bits = 8, .block_size = 16}));
  ASSERT_OK_AND(const double off,
                difference(transposed, *quantized.model, {floats("x", {3, 64}, random_floats(192, 6))}));
  EXPECT_LT(off, 0.06);
}

TEST_F(WeightOnlyTest, SharedWeightsArePackedOnceAndTransposedOnesAreFolded) {
  const std::string text = head + "g (float[3,64] x, float[3,8] z) => (float[3,8] y, float[3,64] t) <" + w64 +
                           "> { a = MatMul(x, w) b = MatMul(x, w) y = Add(a, b)"
                           "  u = Transpose<perm = [1, 0]>(w) t = MatMul(z, u) }";
  ASSERT_OK_AND(const auto quantized, quantize(text, {.bits = 8, .block_size = 16}));
  EXPECT_EQ(quantized.report.nodes_quantized, 3u);
  EXPECT_EQ(quantized.report.weights, 2u);
  EXPECT_EQ(count_nodes(*quantized.model, "Transpose"), 0u);
  const std::vector<HostTensor> sample{floats("x", {3, 64}, random_floats(192, 8)),
                                       floats("z", {3, 8}, random_floats(24, 9))};
  ASSERT_OK_AND(const auto original, model_of_text(text));
  for (const char* output : {"y", "t"}) {
    ASSERT_OK_AND(const auto expected, run(*original, sample, GraphOptimization::none, output));
    ASSERT_OK_AND(const auto actual, run(*quantized.model, sample, GraphOptimization::all, output));
    EXPECT_LT(largest_difference(expected, actual), 0.12) << output;
  }
}

TEST_F(WeightOnlyTest, WhatStaysIsReportedWithItsReason) {
  const std::string text = head + "g (float[2,64] x, float[64,3] z) => (float[2,8] y, float[8,3] l, float[2,8] t) <" +
                           w64 + ", " + constant_text("m", {8, 64}, random_floats(512, 1)) +
                           "> { y = MatMul(x, w) l = MatMul(m, z) xt = Transpose<perm = [1, 0]>(x) "
                           "    [gemm] t = Gemm<transA = 1>(xt, w) }";
  ASSERT_OK_AND(const auto quantized, quantize(text, {.exclude = {{"y"}, {}}}));
  EXPECT_EQ(quantized.report.nodes_quantized, 0u);
  ASSERT_EQ(quantized.report.skipped.size(), 3u);
  EXPECT_EQ(quantized.report.skipped[0].reason, "it is excluded");
  EXPECT_EQ(quantized.report.skipped[1].reason, "its constant is the left operand");
  EXPECT_EQ(quantized.report.skipped[2].reason, "its left operand is transposed");
  EXPECT_EQ(quantized.report.warnings, std::vector<std::string>{"no node was quantized"});
}

TEST_F(WeightOnlyTest, BodiesOfIfShareTheOuterWeight) {
  const std::string text = head + "g (bool c, float[3,64] x) => (float[3,8] y) <" + w64 +
                           "> { y = If(c) <"
                           "then_branch = a () => (float[3,8] p) { p = MatMul(x, w) }, "
                           "else_branch = b () => (float[3,8] q) { n = Neg(x) q = MatMul(n, w) }> }";
  ASSERT_OK_AND(const auto quantized, quantize(text, {.bits = 8, .block_size = 32}));
  EXPECT_EQ(quantized.report.nodes_quantized, 2u);
  EXPECT_EQ(quantized.report.weights, 1u);
  for (const std::uint8_t flag : {0, 1}) {
    const std::vector<HostTensor> sample{
        host_tensor<std::uint8_t>("c", DataType::boolean, {}, std::vector<std::uint8_t>{flag}),
        floats("x", {3, 64}, random_floats(192, 8))};
    ASSERT_OK_AND(const double off, difference(text, *quantized.model, sample));
    EXPECT_LT(off, 0.06);
  }
}

TEST_F(WeightOnlyTest, BodiesOfLoop) {
  const std::string text = head + "g (int64 trips, bool go, float[2,64] x) => (float[2,64] y) <" +
                           constant_text("w", {64, 64}, random_floats(4096, 3, -0.2f, 0.2f)) +
                           "> { y = Loop(trips, go, x) <body = b (int64 i, bool c, float[2,64] s) => "
                           "(bool d, float[2,64] t) { d = Identity(c) t = MatMul(s, w) }> }";
  ASSERT_OK_AND(const auto quantized, quantize(text, {.bits = 8, .block_size = 32}));
  EXPECT_EQ(quantized.report.nodes_quantized, 1u);
  const std::vector<HostTensor> sample{
      host_tensor<std::int64_t>("trips", DataType::int64, {}, std::vector<std::int64_t>{2}),
      host_tensor<std::uint8_t>("go", DataType::boolean, {}, std::vector<std::uint8_t>{1}),
      floats("x", {2, 64}, random_floats(128, 8))};
  ASSERT_OK_AND(const double off, difference(text, *quantized.model, sample));
  EXPECT_LT(off, 0.05);
}

TEST_F(WeightOnlyTest, Float16BeforeOrAfterGivesTheSame) {
  const std::string text = head + "g (float[3,64] x) => (float[3,8] y) <" + w64 + ", " +
                           constant_text("b", {8}, random_floats(8, 5)) + "> { m = MatMul(x, w) y = Add(m, b) }";
  const std::vector<HostTensor> sample{floats("x", {3, 64}, random_floats(192, 4))};
  ASSERT_OK_AND(auto after, quantize(text, {.bits = 8, .block_size = 32}));
  ASSERT_OK(convert_to_float16(*after.model, {}));
  ASSERT_OK(check_onnx(*after.model));
  EXPECT_EQ(find_node(*after.model, "MatMulNBits")->input(2)->initializer()->type, DataType::float16);
  ASSERT_OK_AND(const double off, difference(text, *after.model, sample));
  EXPECT_LT(off, 0.07);

  ASSERT_OK_AND(auto before, model_of_text(text));
  ASSERT_OK(convert_to_float16(*before, {}));
  ASSERT_OK_AND(const auto report, quantize_weights_only(*before, {.bits = 8, .block_size = 32}));
  EXPECT_EQ(report.nodes_quantized, 1u);
  EXPECT_EQ(find_node(*before, "MatMulNBits")->input(2)->initializer()->type, DataType::float16);
  ASSERT_OK_AND(const double other, difference(text, *before, sample));
  EXPECT_LT(other, 0.07);
}

TEST_F(WeightOnlyTest, WrongOptionsAreNamed) {
  const std::string text = head + "g (float[3,64] x) => (float[3,8] y) <" + w64 + "> { y = MatMul(x, w) }";
  for (const WeightOnlyOptions& options :
       {WeightOnlyOptions{.bits = 3}, WeightOnlyOptions{.block_size = 48}, WeightOnlyOptions{.accuracy_level = 5}}) {
    const auto quantized = quantize(text, options);
    ASSERT_FALSE(quantized);
    EXPECT_EQ(quantized.error().code, ErrorCode::usage);
  }
}

}  // namespace
}  // namespace mk
