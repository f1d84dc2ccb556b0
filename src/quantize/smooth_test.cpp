#include "quantize/smooth.h"

#include "quantize/qdq_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

constexpr std::size_t width = 32;

class SmoothTest : public QuantizeTest {
 protected:
  // A norm with two outliers among its channels, and what follows it.
  static std::string text(const std::string& body, const std::string& outputs) {
    std::vector<float> scale(width, 1.0f);
    scale[3] = 40;
    scale[17] = 25;
    return "<ir_version: 8, opset_import: [\"\" : 17]> g (float[16,32] x) => (" + outputs + ") <" +
           constant_text("s", {width}, scale) + ", " + constant_text("b", {width}, random_floats(width, 5)) + ", " +
           constant_text("w", {width, 8}, random_floats(width * 8, 1)) + ", " +
           constant_text("v", {8, width}, random_floats(width * 8, 2)) + "> { n = LayerNormalization(x, s, b) " + body +
           " }";
  }

  static std::vector<HostTensor> sample(unsigned seed) {
    return {floats("x", {16, width}, random_floats(16 * width, seed))};
  }

  static Result<ChannelRanges> channels_of(const Model& model, const std::vector<HostTensor>& inputs) {
    const auto copy = clone(model);
    Value* norm = copy->graph->find("n");
    if (!norm->is_graph_output()) copy->graph->mark_output(norm);
    MK_CHECK(infer_shapes(*copy));
    MK_TRY(const auto values, run(*copy, inputs, GraphOptimization::none, "n"));
    std::vector<TensorRange> ranges(width);
    for (std::size_t i = 0; i < values.size(); ++i) {
      TensorRange& range = ranges[i % width];
      range = {std::min(range.low, values[i]), std::max(range.high, values[i])};
    }
    return ChannelRanges{{"n", ranges}};
  }
};

TEST_F(SmoothTest, TheModelComputesTheSameWithFewerOutliers) {
  const std::string model_text = text("y = MatMul(n, w) z = Gemm<transB = 1>(n, v)", "float[16,8] y, float[16,8] z");
  ASSERT_OK_AND(const auto original, model_of_text(model_text));
  ASSERT_OK_AND(const auto model, model_of_text(model_text));
  ASSERT_OK_AND(const auto wanted, tensors_to_smooth(*model, {}));
  EXPECT_EQ(wanted, std::vector<std::string>{"n"});
  ASSERT_OK_AND(const auto channels, channels_of(*original, sample(7)));
  ASSERT_OK_AND(auto ranges, observe(*original, {sample(7)}));
  const TensorRange before = ranges.at("n");
  ASSERT_OK_AND(const auto report, smooth_activations(*model, channels, ranges, {}));
  EXPECT_EQ(report.tensors, 1u);
  EXPECT_EQ(report.added, 0u);  // the norm's scale and bias took it
  EXPECT_GT(report.worst_gain, 1.5);
  EXPECT_EQ(count_nodes(*model, "Mul"), 0u);
  ASSERT_OK(check_onnx(*model));
  for (const char* output : {"y", "z"}) {
    ASSERT_OK_AND(const auto expected, run(*original, sample(8), GraphOptimization::none, output));
    ASSERT_OK_AND(const auto actual, run(*model, sample(8), GraphOptimization::none, output));
    EXPECT_LT(largest_difference(expected, actual), 1e-3) << output;  // of values up to 200
  }
  // The new range is what the smoothed model shows.
  ASSERT_OK_AND(const auto seen, observe(*model, {sample(7)}));
  EXPECT_NEAR(ranges.at("n").low, seen.at("n").low, 1e-4 * std::abs(seen.at("n").low));
  EXPECT_NEAR(ranges.at("n").high, seen.at("n").high, 1e-4 * seen.at("n").high);
  EXPECT_NE(ranges.at("n"), before);
}

TEST_F(SmoothTest, OtherReadersOfTheNormReadWhatTheyRead) {
  const std::string model_text = text("y = MatMul(n, w) r = Neg(n)", "float[16,8] y, float[16,32] r");
  ASSERT_OK_AND(const auto original, model_of_text(model_text));
  ASSERT_OK_AND(const auto model, model_of_text(model_text));
  ASSERT_OK_AND(const auto channels, channels_of(*original, sample(7)));
  ASSERT_OK_AND(auto ranges, observe(*original, {sample(7)}));
  ASSERT_OK_AND(const auto report, smooth_activations(*model, channels, ranges, {}));
  ASSERT_EQ(report.tensors, 1u);
  EXPECT_EQ(report.added, 1u);
  EXPECT_TRUE(ranges.contains("n_smooth"));
  ASSERT_OK(check_onnx(*model));
  for (const char* output : {"y", "r"}) {
    ASSERT_OK_AND(const auto expected, run(*original, sample(8), GraphOptimization::none, output));
    ASSERT_OK_AND(const auto actual, run(*model, sample(8), GraphOptimization::none, output));
    EXPECT_LT(largest_difference(expected, actual), 1e-3) << output;
  }
}

TEST_F(SmoothTest, QuantizationLosesLessOfASmoothedModel) {
  const std::string model_text = text("y = MatMul(n, w)", "float[16,8] y");
  ASSERT_OK_AND(const auto original, model_of_text(model_text));
  ASSERT_OK_AND(const auto expected, run(*original, sample(7)));
  ASSERT_OK_AND(const auto channels, channels_of(*original, sample(7)));
  double errors[2] = {0, 0};
  for (const bool smooth : {false, true}) {
    ASSERT_OK_AND(const auto model, model_of_text(model_text));
    ASSERT_OK_AND(auto ranges, observe(*original, {sample(7)}));
    if (smooth) ASSERT_OK(smooth_activations(*model, channels, ranges, {.per_channel = true}));
    ASSERT_OK_AND(const auto report, insert_qdq(*model, ranges, {.per_channel = true}));
    EXPECT_EQ(report.nodes_quantized, 1u);
    ASSERT_OK_AND(const auto actual, run(*model, sample(7)));
    for (std::size_t i = 0; i < actual.size(); ++i)
      errors[smooth] += std::pow(static_cast<double>(actual[i]) - static_cast<double>(expected[i]), 2);
  }
  EXPECT_LT(errors[1], errors[0] / 2);
}

TEST_F(SmoothTest, NothingIsDoneWhereTheOptionsQuantizeOtherwise) {
  const std::string model_text = text("y = MatMul(n, w)", "float[16,8] y");
  ASSERT_OK_AND(const auto model, model_of_text(model_text));
  for (const QdqOptions& options : {QdqOptions{.activation_type = DataType::uint16}, QdqOptions{.scope = QdqScope::all},
                                    QdqOptions{.exclude = {{"*"}, {}}}}) {
    ASSERT_OK_AND(const auto wanted, tensors_to_smooth(*model, options));
    EXPECT_TRUE(wanted.empty());
  }
  TensorRanges ranges;
  ASSERT_OK_AND(const auto report, smooth_activations(*model, {}, ranges, {}));  // no channels were observed
  EXPECT_EQ(report.tensors, 0u);
}

}  // namespace
}  // namespace mk
