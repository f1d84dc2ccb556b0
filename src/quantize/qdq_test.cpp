#include "quantize/qdq.h"

#include "quantize/qdq_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

class QdqTest : public QuantizeTest {
 protected:
  struct Quantized {
    std::unique_ptr<Model> model;
    QdqReport report;
    TensorRanges ranges;
  };

  // Calibrated on the samples.
  static Result<Quantized> quantize(const std::string& text, const Samples& samples, const QdqOptions& options = {}) {
    MK_TRY(auto model, model_of_text(text));
    MK_TRY(auto ranges, observe(*model, samples));
    MK_TRY(auto report, insert_qdq(*model, ranges, options));
    return Quantized{std::move(model), std::move(report), std::move(ranges)};
  }
};

const std::string conv_relu =
    "<ir_version: 8, opset_import: [\"\" : 17]> g (float[1,3,8,8] x) => (float[1,4,8,8] y) <" +
    constant_text("w", {4, 3, 3, 3}, random_floats(108, 1)) + ", " + constant_text("b", {4}, {0.1f, -0.2f, 0.3f, 0}) +
    "> { c = Conv<pads = [1, 1, 1, 1]>(x, w, b) y = Relu(c) }";

TEST_F(QdqTest, ConvolutionsAreQuantizedWithTheirBias) {
  const Samples samples{{floats("x", {1, 3, 8, 8}, random_floats(192, 2))}};
  ASSERT_OK_AND(const auto before, model_of_text(conv_relu));
  ASSERT_OK_AND(const auto expected, run(*before, samples[0]));
  for (const bool per_channel : {false, true}) {
    ASSERT_OK_AND(const auto quantized, quantize(conv_relu, samples, {.per_channel = per_channel}));
    EXPECT_EQ(quantized.report.nodes_quantized, 2u);
    EXPECT_EQ(quantized.report.quantize_linear, 2u);    // x, y
    EXPECT_EQ(quantized.report.dequantize_linear, 4u);  // and w, b
    EXPECT_EQ(quantized.report.activations_removed, 1u);
    EXPECT_EQ(count_nodes(*quantized.model, "Relu"), 0u);
    for (const auto optimization : {GraphOptimization::none, GraphOptimization::all}) {
      ASSERT_OK_AND(const auto actual, run(*quantized.model, samples[0], optimization));
      EXPECT_LT(largest_difference(expected, actual), 0.06) << per_channel;
    }
    ASSERT_OK(check_onnx(*quantized.model));
  }
}

}  // namespace
}  // namespace mk
