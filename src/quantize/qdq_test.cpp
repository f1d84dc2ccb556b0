#include "quantize/qdq.h"

#include <set>

#include "quantize/qdq_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

class QdqTest : public QuantizeTest {};

const std::string opset17 = "<ir_version: 8, opset_import: [\"\" : 17]> ";
const std::string conv_relu =
    opset17 + "g (float[1,3,8,8] x) => (float[1,4,8,8] y) <" + constant_text("w", {4, 3, 3, 3}, random_floats(108, 1)) +
    ", " + constant_text("b", {4}, {0.1f, -0.2f, 0.3f, 0}) + "> { c = Conv<pads = [1, 1, 1, 1]>(x, w, b) y = Relu(c) }";
const Samples image{{floats("x", {1, 3, 8, 8}, random_floats(192, 2))}};

const std::string matmul = opset17 + "g (float[4,64] x) => (float[4,8] y) <" +
                           constant_text("w", {64, 8}, random_floats(512, 1)) + "> { y = MatMul(x, w) }";
const Samples rows{{floats("x", {4, 64}, random_floats(256, 2))}};

TEST_F(QdqTest, ConvolutionsAreQuantizedWithTheirBias) {
  for (const bool per_channel : {false, true}) {
    QdqReport report;
    ASSERT_OK_AND(const double error, error_after(conv_relu, image, {.per_channel = per_channel}, &report));
    EXPECT_LT(error, 0.06);
    EXPECT_EQ(report.nodes_quantized, 2u);
    EXPECT_EQ(report.quantize_linear, 2u);    // x, y
    EXPECT_EQ(report.dequantize_linear, 4u);  // and w, b
    EXPECT_EQ(report.activations_removed, 1u);
    EXPECT_EQ(report.biases, 1u);
  }
}

// Scales and zero points as onnxruntime.quantization computes them for these ranges.
TEST_F(QdqTest, TheParametersAreThoseOfTheRanges) {
  ASSERT_OK_AND(const auto model, model_of_text(matmul));
  const TensorRanges ranges{{"x", {-1, 3}}, {"y", {0, 510}}};
  ASSERT_OK_AND(const auto report, insert_qdq(*model, ranges, {.activation_type = DataType::int8}));
  EXPECT_EQ(report.quantize_linear, 2u);
  const Graph& graph = *model->graph;
  ASSERT_OK_AND(const auto x_scale, number_values(*graph.find("x_scale")->initializer()));
  EXPECT_FLOAT_EQ(static_cast<float>(x_scale[0]), 4.0f / 255);
  ASSERT_OK_AND(const auto x_zero, integer_values(*graph.find("x_zero_point")->initializer()));
  EXPECT_EQ(x_zero[0], -64);
  ASSERT_OK_AND(const auto y_scale, number_values(*graph.find("y_scale")->initializer()));
  EXPECT_FLOAT_EQ(static_cast<float>(y_scale[0]), 2);
  ASSERT_OK_AND(const auto y_zero, integer_values(*graph.find("y_zero_point")->initializer()));
  EXPECT_EQ(y_zero[0], -128);
  EXPECT_EQ(graph.find("y_zero_point")->initializer()->type, DataType::int8);
  EXPECT_TRUE(graph.find("x_scale")->initializer()->dims.empty());
  EXPECT_EQ(graph.find("w"), nullptr);
  EXPECT_EQ(graph.find("w_quantized")->initializer()->type, DataType::uint8);
  EXPECT_EQ(graph.outputs()[0]->name(), "y");
}

TEST_F(QdqTest, EveryPairOfTypes) {
  constexpr std::array types{DataType::int8, DataType::uint8, DataType::int16, DataType::uint16};
  for (const DataType weight : types) {
    for (const DataType activation : types) {
      for (const bool symmetric : {false, true}) {
        for (const bool per_channel : {false, true}) {
          const bool wide = bits_of(weight) == 16 && bits_of(activation) == 16;
          ASSERT_OK_AND(const double error, error_after(matmul, rows,
                                                        {.weight_type = weight,
                                                         .activation_type = activation,
                                                         .per_channel = per_channel,
                                                         .weight_symmetric = symmetric,
                                                         .activation_symmetric = symmetric}));
          EXPECT_LT(error, wide ? 0.001 : 0.12) << name_of(weight) << name_of(activation) << symmetric << per_channel;
        }
      }
    }
  }
}

TEST_F(QdqTest, OnlyTheInputsOfProductsWithConstantWeights) {
  const std::string text = opset17 + "g (float[4,8] x) => (float[4,4] y) <" +
                           constant_text("w", {8, 8}, random_floats(64, 1)) +
                           "> { a = MatMul(x, w) r = Relu(a) t = Transpose<perm = [1, 0]>(x) y = MatMul(r, t) }";
  const Samples samples{{floats("x", {4, 8}, random_floats(32, 3))}};
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, samples, {.scope = QdqScope::weighted}, &report));
  EXPECT_LT(error, 0.1);
  EXPECT_EQ(report.nodes_quantized, 1u);
  EXPECT_EQ(report.quantize_linear, 1u);
  EXPECT_EQ(report.dequantize_linear, 2u);
  EXPECT_EQ(report.activations_removed, 0u);
  ASSERT_OK_AND(const auto model, model_of_text(text));
  ASSERT_OK_AND(const auto observed, tensors_to_observe(*model, {.scope = QdqScope::weighted}));
  EXPECT_EQ(observed, (std::vector<std::string>{"a", "r", "x"}));
}

TEST_F(QdqTest, TransformersKeepTheirNormsIn8Bits) {
  const std::string text =
      opset17 + "g (float[4,8] x) => (float[4,8] y) <" + constant_text("w", {8, 8}, random_floats(64, 1)) + ", " +
      constant_text("s", {8}, random_floats(8, 4)) + "> { n = LayerNormalization(x, s) y = MatMul(n, w) }";
  const Samples samples{{floats("x", {4, 8}, random_floats(32, 3))}};
  ASSERT_OK_AND(const auto narrow, quantize(text, samples));
  EXPECT_EQ(narrow.report.scope, QdqScope::weighted);
  EXPECT_EQ(narrow.report.nodes_quantized, 1u);
  ASSERT_OK_AND(const auto wide, quantize(text, samples, {.activation_type = DataType::uint16}));
  EXPECT_EQ(wide.report.scope, QdqScope::all);
  EXPECT_EQ(wide.report.nodes_quantized, 2u);
  ASSERT_OK_AND(const auto asked, quantize(text, samples, {.scope = QdqScope::all}));
  EXPECT_EQ(asked.report.nodes_quantized, 2u);
  ASSERT_OK_AND(const auto images, quantize(conv_relu, image));
  EXPECT_EQ(images.report.scope, QdqScope::all);
}

TEST_F(QdqTest, DataMovementKeepsTheParameters) {
  const std::string text = opset17 + "g (float[1,3,8,8] x) => (float[4,16] y) <" +
                           constant_text("w", {4, 3, 1, 1}, random_floats(12, 1)) +
                           ", int64[2] shape = {4, 16}> { c = Conv(x, w) p = MaxPool<kernel_shape = [2, 2], strides = "
                           "[2, 2]>(c) t = Transpose<perm = [0, 1, 3, 2]>(p) y = Reshape(t, shape) }";
  ASSERT_OK_AND(const auto quantized, quantize(text, image));
  EXPECT_EQ(quantized.report.nodes_quantized, 4u);
  std::set<const Value*> scales;
  for_each_node(*quantized.model->graph, [&](const Node& node) {
    if (node.op_type == "QuantizeLinear") scales.insert(node.input(1));
  });
  EXPECT_EQ(scales.size(), 2u);  // of x and of c
  ASSERT_OK_AND(const double error, error_of(text, *quantized.model, image));
  EXPECT_LT(error, 0.03);
}

TEST_F(QdqTest, DataMovementBeforeWhatQuantizesItsInput) {
  const std::string text = opset17 + "g (float[4,64] x) => (float[4,8] y, float[64,4] t) <" +
                           constant_text("w", {64, 8}, random_floats(512, 1)) +
                           "> { t = Transpose<perm = [1, 0]>(x) y = MatMul(x, w) }";
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, rows, {}, &report));
  EXPECT_LT(error, 0.12);
  EXPECT_EQ(report.nodes_quantized, 2u);
}

TEST_F(QdqTest, SoftmaxHasTheRangeOfTheOperatorAndSigmoidThatOfTheSamples) {
  const std::string text = opset17 +
                           "g (float[2,4] x) => (float[2,4] y, float[2,4] z) <float shift = {-6.0}> {"
                           " y = Softmax(x) low = Add(x, shift) z = Sigmoid(low) }";
  const Samples samples{{floats("x", {2, 4}, random_floats(8, 3))}};
  ASSERT_OK_AND(const auto quantized, quantize(text, samples));
  ASSERT_OK_AND(const auto softmax, number_values(*quantized.model->graph->find("y_scale")->initializer()));
  EXPECT_FLOAT_EQ(static_cast<float>(softmax[0]), 1.0f / 255);
  ASSERT_OK_AND(const auto sigmoid, number_values(*quantized.model->graph->find("z_scale")->initializer()));
  EXPECT_FLOAT_EQ(static_cast<float>(sigmoid[0]), quantized.ranges.at("z").high / 255);
  // With steps of 1/255 nothing but 0 and 0.004 would be left of it.
  ASSERT_OK_AND(const double error, error_of(text, *quantized.model, samples, "z"));
  EXPECT_LT(error, 0.0002);
  ASSERT_OK_AND(const auto wide, quantize(text, samples, {.activation_type = DataType::uint16}));
  ASSERT_OK_AND(const auto whole, number_values(*wide.model->graph->find("z_scale")->initializer()));
  EXPECT_FLOAT_EQ(static_cast<float>(whole[0]), 1.0f / 65535);
}

TEST_F(QdqTest, TablesOfGatherShareTheirParameters) {
  const std::string text = opset17 + "g (int64[3] ids) => (float[3,4] y) <" +
                           constant_text("table", {16, 4}, random_floats(64, 1)) + "> { y = Gather(table, ids) }";
  const std::vector<std::int64_t> ids{0, 15, 7};
  const Samples samples{{host_tensor<std::int64_t>("ids", DataType::int64, {3}, ids)}};
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, samples, {}, &report));
  EXPECT_LT(error, 0.005);
  EXPECT_EQ(report.weights, 1u);
}

TEST_F(QdqTest, TablesOfTransformersBecomeIntegersToo) {
  for (const bool per_channel : {false, true}) {
    const std::string text = opset17 + "g (int64[3] ids) => (float[3,8] y, float[3,4] e) <" +
                             constant_text("table", {16, 4}, random_floats(64, 1)) + ", " +
                             constant_text("w", {4, 8}, random_floats(32, 2)) +
                             "> { e = Gather(table, ids) y = MatMul(e, w) }";
    const std::vector<std::int64_t> ids{0, 15, 7};
    const Samples samples{{host_tensor<std::int64_t>("ids", DataType::int64, {3}, ids)}};
    const QdqOptions options{.per_channel = per_channel, .scope = QdqScope::weighted};
    ASSERT_OK_AND(const auto quantized, quantize(text, samples, options));
    ASSERT_OK(check_onnx(*quantized.model));
    EXPECT_EQ(quantized.report.nodes_quantized, 2u);
    EXPECT_EQ(find_node(*quantized.model, "Gather")->input(0)->initializer()->type, DataType::uint8);
    for (const char* output : {"y", "e"}) {
      ASSERT_OK_AND(const double error, error_of(text, *quantized.model, samples, output));
      EXPECT_LT(error, 0.04) << output << per_channel;
    }
  }
}

TEST_F(QdqTest, IdentitiesDoNotHideOperatorsFromEachOther) {
  std::string text = conv_relu;
  text.replace(text.find("y = Relu(c)"), 11, "i = Identity(c) r = Relu(i) y = Identity(r)");
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, image, {}, &report));
  EXPECT_LT(error, 0.06);
  EXPECT_EQ(report.activations_removed, 1u);
}

TEST_F(QdqTest, ExclusionsByNameGlobAndType) {
  const std::string text =
      opset17 + "g (float[4,64] x) => (float[4,8] y) <" + constant_text("w", {64, 8}, random_floats(512, 1)) +
      "> { [\"/layer.0/a\"] a = MatMul(x, w) [\"/layer.1/b\"] b = MatMul(x, w) [c] y = Add(a, b) }";
  ASSERT_OK_AND(const auto by_name, quantize(text, rows, {.exclude = {{"/layer.0/a"}, {}}}));
  EXPECT_EQ(by_name.report.nodes_quantized, 2u);
  ASSERT_EQ(by_name.report.skipped.size(), 1u);
  EXPECT_EQ(by_name.report.skipped[0].node, "/layer.0/a");
  EXPECT_EQ(by_name.report.skipped[0].reason, "it is excluded");
  // The excluded node reads what it read before.
  EXPECT_NE(by_name.model->graph->find("w"), nullptr);
  EXPECT_EQ(by_name.model->graph->find("w")->uses().size(), 1u);
  EXPECT_EQ(by_name.model->graph->find("x")->uses().size(), 2u);
  ASSERT_OK_AND(const double error, error_of(text, *by_name.model, rows));
  EXPECT_LT(error, 0.2);
  ASSERT_OK_AND(const auto by_glob, quantize(text, rows, {.exclude = {{"/layer.*"}, {}}}));
  EXPECT_EQ(by_glob.report.nodes_quantized, 1u);
  ASSERT_OK_AND(const auto by_type, quantize(text, rows, {.exclude = {{}, {"MatMul", "Add"}}}));
  EXPECT_EQ(by_type.report.nodes_quantized, 0u);
  EXPECT_EQ(by_type.report.warnings, std::vector<std::string>{"no node was quantized"});
  ASSERT_OK_AND(const auto asked, quantize(text, rows, {.op_types = {"Add"}}));
  EXPECT_EQ(asked.report.nodes_quantized, 1u);
}

TEST_F(QdqTest, AnOperatorThatIsAskedForByTypeIsQuantizedLikeAnAddition) {
  const std::string text = opset17 + "g (float[2,4] x) => (float[2,4] y) { y = Abs(x) }";
  const Samples samples{{floats("x", {2, 4}, random_floats(8, 3))}};
  ASSERT_OK_AND(const auto quiet, quantize(text, samples));
  EXPECT_EQ(quiet.report.nodes_quantized, 0u);
  EXPECT_EQ(quiet.report.others.at("Abs"), 1u);
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, samples, {.op_types = {"Abs"}}, &report));
  EXPECT_EQ(report.nodes_quantized, 1u);
  EXPECT_LT(error, 0.02);
}

TEST_F(QdqTest, ANodeWithoutARangeIsReported) {
  ASSERT_OK_AND(const auto model, model_of_text(matmul));
  ASSERT_OK_AND(const auto report, insert_qdq(*model, {{"x", {-1, 1}}}, {}));
  ASSERT_EQ(report.skipped.size(), 1u);
  EXPECT_EQ(report.skipped[0].reason, "no range of 'y' was calibrated");
}

TEST_F(QdqTest, BodiesOfIfUseOuterWeightsAndRanges) {
  const std::string text = opset17 + "g (bool c, float[4,64] x) => (float[4,8] y) <" +
                           constant_text("w", {64, 8}, random_floats(512, 1)) +
                           "> { n = Neg(x) y = If(c) <then_branch = a () => (float[4,8] p) { p = MatMul(n, w) }, "
                           "else_branch = b () => (float[4,8] q) { r = Abs(n) q = MatMul(r, w) }> }";
  const Samples samples{{host_tensor<std::uint8_t>("c", DataType::boolean, {}, std::vector<std::uint8_t>{1}),
                         floats("x", {4, 64}, random_floats(256, 2))}};
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, samples, {.scope = QdqScope::weighted}, &report));
  EXPECT_LT(error, 0.12);
  EXPECT_EQ(report.nodes_quantized, 1u);
  ASSERT_EQ(report.skipped.size(), 1u);  // r lives inside of a body, where nothing was observed
  EXPECT_EQ(report.skipped[0].reason, "values inside of If -> y have no ranges: calibration sees those outside");
}

TEST_F(QdqTest, BodiesOfLoopUseOuterValuesAndReportTheRest) {
  const std::string text =
      opset17 + "g (int64 trips, bool go, float[4,64] x) => (float[4,8] y) <" +
      constant_text("w", {64, 8}, random_floats(512, 1)) + ", " + constant_text("zero", {4, 8}, random_floats(32, 2)) +
      "> { n = Neg(x) y = Loop(trips, go, zero) <body = b (int64 i, bool c, float[4,8] s) => (bool d, float[4,8] t) "
      "{ d = Identity(c) [inner] m = MatMul(n, w) [sum] t = Add(s, m) }> }";
  const Samples samples{{host_tensor<std::int64_t>("trips", DataType::int64, {}, std::vector<std::int64_t>{3}),
                         host_tensor<std::uint8_t>("go", DataType::boolean, {}, std::vector<std::uint8_t>{1}),
                         floats("x", {4, 64}, random_floats(256, 2))}};
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, samples, {.scope = QdqScope::weighted}, &report));
  EXPECT_LT(error, 0.3);  // three times that of one product
  EXPECT_EQ(report.nodes_quantized, 1u);
  ASSERT_OK_AND(const auto all, quantize(text, samples, {.scope = QdqScope::all}));
  ASSERT_EQ(all.report.skipped.size(), 2u);
  EXPECT_EQ(all.report.skipped[0].node, "inner");
  EXPECT_EQ(all.report.skipped[0].reason, "values inside of Loop -> y have no ranges: calibration sees those outside");
}

TEST_F(QdqTest, WhatIsQuantizedAlreadyStaysAsItIs) {
  QdqOptions options;
  options.op_types = {"MatMul"};
  const std::string two =
      opset17 + "g (float[4,64] x) => (float[4,4] y) <" + constant_text("w", {64, 8}, random_floats(512, 1)) + ", " +
      constant_text("v", {8, 4}, random_floats(32, 4)) + "> { [first] a = MatMul(x, w) [second] y = MatMul(a, v) }";
  options.exclude.names = {"second"};
  ASSERT_OK_AND(auto quantized, quantize(two, rows, options));
  ASSERT_OK_AND(const auto twice, insert_qdq(*quantized.model, quantized.ranges, {}));
  EXPECT_EQ(twice.nodes_quantized, 1u);
  EXPECT_EQ(twice.quantize_linear, 1u);    // y
  EXPECT_EQ(twice.dequantize_linear, 2u);  // y, v
  ASSERT_EQ(twice.skipped.size(), 1u);
  EXPECT_EQ(twice.skipped[0].reason, "it is quantized already");
  ASSERT_OK_AND(const double error, error_of(two, *quantized.model, rows));
  EXPECT_LT(error, 0.3);
  ASSERT_OK_AND(const auto thrice, insert_qdq(*quantized.model, quantized.ranges, {}));
  EXPECT_EQ(thrice.nodes_quantized, 0u);
  EXPECT_EQ(thrice.quantize_linear + thrice.dequantize_linear, 0u);
}

TEST_F(QdqTest, DataMovementBehindOthersDequantizedValues) {
  const auto text = [](const std::string& constants, const std::string& axis) {
    return opset17 + "g (uint8[4,2] q) => (float[2,4] y) <" + constants + "> { x = DequantizeLinear" + axis +
           "(q, scale, zero) y = Transpose<perm = [1, 0]>(x) }";
  };
  const TensorRanges ranges{{"y", {0, 1}}};
  const struct {
    std::string text;
    std::size_t quantized;
  } cases[] = {
      {text("float scale = {0.1}, uint8 zero = {3}", ""), 1},
      {text("float[2] scale = {0.1, 0.2}, uint8[2] zero = {3, 4}", "<axis = 1>"), 1},  // with a range of its own
      {opset17 + "g (uint8[4,2] q) => (float[2,4] y) <float scale = {0.1}> { zero = Constant<value = uint8 {3}>() "
                 "x = DequantizeLinear(q, scale, zero) y = Transpose<perm = [1, 0]>(x) }",
       1},
      {opset17 + "g (uint8[4,2] q) => (float[2,4] y) <float scale = {0.1}> { x = DequantizeLinear(q, scale) "
                 "y = Transpose<perm = [1, 0]>(x) }",
       1},
  };
  const std::vector<std::uint8_t> values{0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<HostTensor> sample{host_tensor<std::uint8_t>("q", DataType::uint8, {4, 2}, values)};
  for (const auto& c : cases) {
    ASSERT_OK_AND(const auto model, model_of_text(c.text));
    ASSERT_OK(insert_qdq(*model, ranges, {}));
    ASSERT_OK(check_onnx(*model));
    EXPECT_EQ(count_nodes(*model, "QuantizeLinear"), c.quantized) << c.text;
    ASSERT_OK(run(*model, sample));
  }
}

TEST_F(QdqTest, CompiledModelsAndOtherTypesAreRefused) {
  ASSERT_OK_AND(const auto model,
                model_of_text("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]> "
                              "g (float[4] x) => (float[4] y) { [ctx] y = com.microsoft.EPContext(x) }"));
  const auto compiled = insert_qdq(*model, {}, {});
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().code, ErrorCode::unsupported);
  EXPECT_EQ(compiled.error().where, "node ctx");
  const auto type = insert_qdq(*model, {}, {.weight_type = DataType::float16});
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().code, ErrorCode::usage);
}

TEST_F(QdqTest, MasksOfAttentionDoNotStretchTheScores) {
  // The mask's -3.4e38 would leave one step for all scores.
  const std::string text = opset17 +
                           "g (float[2,4] x, float[1,4] mask) => (float[2,4] y) <float one = {1.0}, float "
                           "least = {-3.4028234663852886e+38}> {"
                           " off = Sub(one, mask) m = Mul(off, least) s = Add(x, m) y = Softmax(s) }";
  const Samples samples{{floats("x", {2, 4}, {1, 2, 3, 4, -1, 0.5f, -2, 0}), floats("mask", {1, 4}, {1, 1, 1, 0})}};
  for (const QdqScope scope : {QdqScope::all, QdqScope::automatic}) {
    QdqReport report;
    ASSERT_OK_AND(const double error, error_after(text, samples, {.scope = scope}, &report));
    EXPECT_LT(error, 0.03);
    EXPECT_EQ(report.nodes_quantized, 4u);
  }
}

TEST_F(QdqTest, MasksThatAreChosenByWhere) {
  const std::string text =
      opset17 +
      "g (float[2,4] x, bool[1,4] keep) => (float[2,4] y) <float least = {-10000.0}, float none = {0.0}> {"
      " m = Where(keep, none, least) s = Add(m, x) y = Softmax(s) }";
  const std::vector<std::uint8_t> keep{1, 0, 1, 1};
  const Samples samples{{floats("x", {2, 4}, {1, 2, 3, 4, -1, 0.5f, -2, 0}),
                         host_tensor<std::uint8_t>("keep", DataType::boolean, {1, 4}, keep)}};
  ASSERT_OK_AND(const double error, error_after(text, samples, {.scope = QdqScope::all}));
  EXPECT_LT(error, 0.03);
}

}  // namespace
}  // namespace mk
