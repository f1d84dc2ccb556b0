// Faults that users reported of quantizers: each graph that went wrong elsewhere, judged by running it.

#include <limits>

#include "quantize/qdq.h"
#include "quantize/qdq_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

class QdqFaultsTest : public QuantizeTest {};

std::string model(int opset, const std::string& text) {
  return "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + "]> " + text;
}

Samples one(const std::string& name, std::vector<std::int64_t> dims, unsigned seed = 2) {
  std::size_t count = 1;
  for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
  return {{floats(name, std::move(dims), random_floats(count, seed))}};
}

std::vector<float> scaled(std::vector<float> values, float factor) {
  for (float& value : values) value *= factor;
  return values;
}

TEST_F(QdqFaultsTest, ATinyWeightScaleDoesNotOverflowTheBias) {
  const std::string text =
      model(17, "g (float[1,3,8,8] x) => (float[1,4,8,8] y) <" +
                    constant_text("w", {4, 3, 3, 3}, scaled(random_floats(108, 1), 1e-9f)) + ", " +
                    constant_text("b", {4}, {5, -5, 2.5f, 0.01f}) + "> { y = Conv<pads = [1, 1, 1, 1]>(x, w, b) }");
  for (const DataType type : {DataType::int8, DataType::uint8, DataType::int16}) {
    for (const bool symmetric : {true, false}) {
      for (const bool per_channel : {false, true}) {
        ASSERT_OK_AND(const double error,
                      error_after(text, one("x", {1, 3, 8, 8}),
                                  {.weight_type = type, .per_channel = per_channel, .weight_symmetric = symmetric}));
        EXPECT_LT(error, 0.021) << name_of(type) << symmetric << per_channel;  // half a step of [-5, 5]
      }
    }
  }
  ASSERT_OK_AND(const double error, error_after(text, one("x", {1, 3, 8, 8}), {.activation_type = DataType::uint16}));
  EXPECT_LT(error, 0.001);
}

TEST_F(QdqFaultsTest, BiasesOfGemmThatAreNoVector) {
  const std::string w = constant_text("w", {8, 3}, random_floats(24, 1));
  const struct {
    std::vector<std::int64_t> dims;
    std::vector<float> values;
  } biases[] = {{{}, {0.5f}},         {{1}, {0.5f}},
                {{3}, {0.5f, -1, 2}}, {{1, 3}, {0.5f, -1, 2}},
                {{2, 1}, {0.5f, -1}}, {{2, 3}, {0.5f, -1, 2, 3, -4, 1}}};
  for (const auto& bias : biases) {
    const std::string text = model(17, "g (float[2,8] x) => (float[2,3] y) <" + w + ", " +
                                           constant_text("b", bias.dims, bias.values) + "> { y = Gemm(x, w, b) }");
    for (const bool per_channel : {false, true}) {
      ASSERT_OK_AND(const double error, error_after(text, one("x", {2, 8}), {.per_channel = per_channel}));
      EXPECT_LT(error, 0.06) << bias.dims.size() << per_channel;
    }
  }
}

TEST_F(QdqFaultsTest, AlphaOfGemmIsInTheScaleOfTheBias) {
  for (const char* factors : {"alpha = 2.0", "alpha = 0.5, beta = 3.0", "alpha = -2.0", "beta = 0.0"}) {
    const std::string text =
        model(17, "g (float[2,8] x) => (float[2,3] y) <" + constant_text("w", {8, 3}, random_floats(24, 1)) + ", " +
                      constant_text("b", {3}, {4, -3, 2}) + "> { y = Gemm<" + factors + ">(x, w, b) }");
    for (const bool per_channel : {false, true}) {
      // error_after() compares the runtime's fused form too, where the fault was.
      ASSERT_OK_AND(const double error, error_after(text, one("x", {2, 8}), {.per_channel = per_channel}));
      EXPECT_LT(error, 0.12) << factors << per_channel;
    }
  }
}

TEST_F(QdqFaultsTest, GemmWithATransposedLeftOperand) {
  const std::string text =
      model(17, "g (float[8,2] x) => (float[2,3] y) <" + constant_text("w", {8, 3}, random_floats(24, 1)) + ", " +
                    constant_text("b", {3}, {1, -1, 0.5f}) + "> { y = Gemm<transA = 1>(x, w, b) }");
  for (const bool per_channel : {false, true}) {
    ASSERT_OK_AND(const double error, error_after(text, one("x", {8, 2}), {.per_channel = per_channel}));
    EXPECT_LT(error, 0.05);
  }
}

// Output channels of sizes .1 to 100, judged channel by channel after they are brought to one size.
TEST_F(QdqFaultsTest, ChannelsOfConvTransposeAreItsSecondAxis) {
  const std::vector<float> sizes{0.1f, 1, 10, 50, 100};
  std::vector<float> weights = random_floats(2 * 5 * 9, 1);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= sizes[i / 9 % 5];
  const std::string text =
      model(17, "g (float[1,2,4,4] x) => (float[1,5,6,6] z) <" + constant_text("w", {2, 5, 3, 3}, weights) + ", " +
                    constant_text("b", {5}, {0.1f, -1, 10, 50, -100}) + ", " +
                    constant_text("s", {1, 5, 1, 1}, {10, 1, 0.1f, 0.02f, 0.01f}) +
                    "> { [deconv] y = ConvTranspose(x, w, b) z = Mul(y, s) }");
  ASSERT_OK_AND(const auto quantized,
                quantize(text, one("x", {1, 2, 4, 4}),
                         {.activation_type = DataType::uint16, .per_channel = true, .op_types = {"ConvTranspose"}}));
  const Node* node = nullptr;
  for_each_node(*quantized.model->graph, [&](const Node& n) {
    if (n.op_type == "DequantizeLinear" && n.name == "w_DequantizeLinear") node = &n;
  });
  ASSERT_TRUE(node);
  EXPECT_EQ(node->integer("axis", -1), 1);
  EXPECT_EQ(node->input(1)->initializer()->dims, std::vector<std::int64_t>{5});
  ASSERT_OK_AND(const double error, error_of(text, *quantized.model, one("x", {1, 2, 4, 4})));
  EXPECT_LT(error, 0.05);
}

TEST_F(QdqFaultsTest, ChannelsOfConvTransposeInGroups) {
  const std::string text = model(
      17, "g (float[1,4,4,4] x) => (float[1,6,6,6] y) <" + constant_text("w", {4, 3, 3, 3}, random_floats(108, 1)) +
              ", " + constant_text("b", {6}, {1, 2, 3, -1, -2, -3}) + "> { y = ConvTranspose<group = 2>(x, w, b) }");
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, one("x", {1, 4, 4, 4}), {.per_channel = true}, &report));
  EXPECT_EQ(report.biases, 1u);
  EXPECT_LT(error, 0.08);
}

TEST_F(QdqFaultsTest, ChannelsOfGemmFollowTransB) {
  // Columns of very different size: with scales along the wrong axis the small ones are lost.
  std::vector<float> stored(8 * 3), transposed(8 * 3);
  const std::vector<float> values = random_floats(24, 1);
  for (std::size_t k = 0; k < 8; ++k) {
    for (std::size_t n = 0; n < 3; ++n) {
      stored[k * 3 + n] = values[k * 3 + n] * (n == 0 ? 100.0f : n == 1 ? 1.0f : 0.01f);
      transposed[n * 8 + k] = stored[k * 3 + n];
    }
  }
  const std::string scales = constant_text("s", {3}, {0.01f, 1, 100});
  const QdqOptions options{
      .weight_type = DataType::int8, .activation_type = DataType::uint16, .per_channel = true, .op_types = {"Gemm"}};
  for (const bool transb : {false, true}) {
    const std::string text =
        model(17, "g (float[2,8] x) => (float[2,3] z) <" +
                      constant_text("w", transb ? std::vector<std::int64_t>{3, 8} : std::vector<std::int64_t>{8, 3},
                                    transb ? transposed : stored) +
                      ", " + scales + "> { y = Gemm<transB = " + (transb ? "1" : "0") + ">(x, w) z = Mul(y, s) }");
    ASSERT_OK_AND(const auto quantized, quantize(text, one("x", {2, 8}), options));
    const Tensor& scale = *quantized.model->graph->find("w_scale")->initializer();
    EXPECT_EQ(scale.dims, std::vector<std::int64_t>{3});
    ASSERT_OK_AND(const double error, error_of(text, *quantized.model, one("x", {2, 8})));
    // The output's own 16-bit steps of [-400, 400] cost the smallest column up to 0.6.
    EXPECT_LT(error, 0.65) << transb;
    ASSERT_OK_AND(const auto bytes, read_all(*quantized.model->graph->find("w_quantized")->initializer()->data));
    for (std::size_t n = 0; n < 3; ++n) {  // every column uses the whole type
      int largest = 0;
      for (std::size_t k = 0; k < 8; ++k)
        largest = std::max(largest,
                           std::abs(static_cast<int>(static_cast<std::int8_t>(bytes[transb ? n * 8 + k : k * 3 + n]))));
      EXPECT_EQ(largest, 127) << n;
    }
  }
}

TEST_F(QdqFaultsTest, ASharedBiasHasAScaleForEachConsumer) {
  const std::string text = model(
      17, "g (float[1,2,4,4] x) => (float[1,2,4,4] y) <" + constant_text("w", {2, 2, 1, 1}, {0.5f, -1, 1, 0.25f}) +
              ", " + constant_text("b", {2}, {0.3f, -0.2f}) + ", " + constant_text("s", {}, {0.01f}) +
              "> { c = Conv(x, w, b) m = Mul(c, s) y = Conv(m, w, b) }");
  for (const bool per_channel : {false, true}) {
    QdqReport report;
    ASSERT_OK_AND(const double error, error_after(text, one("x", {1, 2, 4, 4}), {.per_channel = per_channel}, &report));
    EXPECT_LT(error, 0.003);
    EXPECT_EQ(report.biases, 2u);
    EXPECT_EQ(report.weights, 2u);  // w once, and s
  }
}

TEST_F(QdqFaultsTest, ASharedWeightWithOtherChannelsHasItsOwnCopy) {
  const std::string text = model(17, "g (float[2,4] x, float[2,4] z) => (float[2,4] y, float[2,4] t) <" +
                                         constant_text("w", {4, 4}, random_floats(16, 1)) +
                                         "> { y = Gemm(x, w) t = Gemm<transB = 1>(z, w) }");
  const Samples samples{{floats("x", {2, 4}, random_floats(8, 2)), floats("z", {2, 4}, random_floats(8, 3))}};
  ASSERT_OK_AND(const auto quantized, quantize(text, samples, {.per_channel = true}));
  EXPECT_EQ(quantized.report.weights, 2u);
  for (const char* output : {"y", "t"}) {
    ASSERT_OK_AND(const double error, error_of(text, *quantized.model, samples, output));
    EXPECT_LT(error, 0.03) << output;
  }
}

TEST_F(QdqFaultsTest, ReluGoesOnlyWhereTheZeroPointClips) {
  const std::string text =
      model(17, "g (float[1,2,4,4] x) => (float[1,2,4,4] y) <" +
                    constant_text("w", {2, 2, 1, 1}, {0.5f, -1, 1, 0.25f}) + "> { c = Conv(x, w) y = Relu(c) }");
  const Samples samples = one("x", {1, 2, 4, 4});
  for (const DataType type : {DataType::int8, DataType::uint8}) {
    for (const bool symmetric : {false, true}) {
      ASSERT_OK_AND(const auto quantized,
                    quantize(text, samples, {.activation_type = type, .activation_symmetric = symmetric}));
      EXPECT_EQ(count_nodes(*quantized.model, "Relu"), symmetric ? 1u : 0u) << name_of(type);
      ASSERT_OK_AND(const double error, error_of(text, *quantized.model, samples));
      EXPECT_LT(error, 0.02) << name_of(type) << symmetric;
    }
  }
}

TEST_F(QdqFaultsTest, ReluOfAnInputOrOfASharedValueStays) {
  const std::string of_input =
      model(17, "g (float[1,2,4,4] x) => (float[1,2,4,4] y) <" +
                    constant_text("w", {2, 2, 1, 1}, {0.5f, -1, 1, 0.25f}) + "> { r = Relu(x) y = Conv(r, w) }");
  const Samples samples = one("x", {1, 2, 4, 4});
  ASSERT_OK_AND(const auto first, quantize(of_input, samples));
  EXPECT_EQ(count_nodes(*first.model, "Relu"), 1u);
  ASSERT_OK_AND(const double error, error_of(of_input, *first.model, samples));
  EXPECT_LT(error, 0.02);
  const std::string shared =
      model(17, "g (float[1,2,4,4] x) => (float[1,2,4,4] y, float[1,2,4,4] c) <" +
                    constant_text("w", {2, 2, 1, 1}, {0.5f, -1, 1, 0.25f}) + "> { c = Conv(x, w) y = Relu(c) }");
  ASSERT_OK_AND(const auto second, quantize(shared, samples));
  EXPECT_EQ(count_nodes(*second.model, "Relu"), 1u);
  for (const char* output : {"y", "c"}) {
    ASSERT_OK_AND(const double off, error_of(shared, *second.model, samples, output));
    EXPECT_LT(off, 0.02) << output;
  }
}

TEST_F(QdqFaultsTest, LimitsOfClipAreInputsFromOpset11On) {
  const std::string w = constant_text("w", {2, 2, 1, 1}, {0.5f, -1, 1, 0.25f});
  const Samples samples = one("x", {1, 2, 4, 4});
  const auto with = [&](const std::string& limits, const std::string& inputs) {
    return model(13, "g (float[1,2,4,4] x) => (float[1,2,4,4] y) <" + w + limits + "> { c = Conv(x, w) y = Clip(c" +
                         inputs + ") }");
  };
  const std::string limits = ", float low = {-0.25}, float high = {0.5}";
  const struct {
    std::string text;
    std::size_t clips;
  } cases[] = {{with(limits, ", low, high"), 0},
               {with(limits, ", low"), 0},
               {with(", float high = {0.5}", ", , high"), 0},
               {with(", float low = {0.25}, float high = {0.5}", ", low, high"), 1},  // 0 is outside
               {model(10, "g (float[1,2,4,4] x) => (float[1,2,4,4] y) <" + w +
                              "> { c = Conv(x, w) y = Clip<min = -0.25, max = 0.5>(c) }"),
                0}};
  for (const auto& c : cases) {
    ASSERT_OK_AND(const auto quantized, quantize(c.text, samples));
    EXPECT_EQ(count_nodes(*quantized.model, "Clip"), c.clips) << c.text;
    ASSERT_OK_AND(const double error, error_of(c.text, *quantized.model, samples));
    EXPECT_LT(error, 0.02) << c.text;
  }
}

TEST_F(QdqFaultsTest, AbsentInputsAreNotTensorsOfOneName) {
  const std::string text =
      model(18, "g (float[1,2,4,4] x) => (float[1,2,6,6] y, float[1,2,6,6] z) <" +
                    constant_text("w", {2, 2, 1, 1}, {0.5f, -1, 1, 0.25f}) +
                    ", int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> { c = Conv(x, w) y = Pad(c, pads, ) d = Neg(c) "
                    "z = Pad(d, pads, ) }");
  const Samples samples = one("x", {1, 2, 4, 4});
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, samples, {}, &report));
  EXPECT_LT(error, 0.02);
  EXPECT_EQ(report.nodes_quantized, 2u);  // Conv and the Pad behind it
}

TEST_F(QdqFaultsTest, EmptyConstantsAreLeftAlone) {
  const std::string text = model(17, "g (float[2,4] x) => (float[2,3] z) <float[0,4] e = {}, " +
                                         constant_text("w", {4, 3}, random_floats(12, 1)) +
                                         "> { y = Concat<axis = 0>(e, x) z = MatMul(y, w) }");
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, one("x", {2, 4}), {}, &report));
  EXPECT_LT(error, 0.03);
  EXPECT_EQ(report.nodes_quantized, 2u);
}

TEST_F(QdqFaultsTest, IntegersOfShapesAreNotTouched) {
  const std::string text =
      model(17, "g (float[2,4] x) => (float[4,6] y) <int64[1] first = {0}, int64[1] rest = {-1}, " +
                    constant_text("w", {2, 6}, random_floats(12, 1)) +
                    "> { s = Shape(x) n = Gather<axis = 0>(s, first) m = Mul(n, rest) p = Concat<axis = 0>(rest, n) "
                    "r = Reshape(x, p) y = MatMul(r, w) }");
  ASSERT_OK_AND(const auto model_before, model_of_text(text));
  ASSERT_OK_AND(const auto observed, tensors_to_observe(*model_before, {}));
  EXPECT_EQ(observed, (std::vector<std::string>{"r", "x", "y"}));
  QdqReport report;
  ASSERT_OK_AND(const double error, error_after(text, one("x", {2, 4}), {}, &report));
  EXPECT_LT(error, 0.03);
  EXPECT_EQ(report.skipped.size(), 0u);
}

TEST_F(QdqFaultsTest, NotANumberInAWeightDoesNotReachTheScales) {
  auto before =
      model_of_text(model(17, "g (float[2,4] x) => (float[2,3] y) <" +
                                  constant_text("w", {4, 3}, random_floats(12, 1)) + "> { y = MatMul(x, w) }"));
  ASSERT_OK(before);
  std::vector<float> values = random_floats(12, 1);
  values[5] = std::numeric_limits<float>::quiet_NaN();
  Value* weight = (*before)->graph->find("w");
  (*before)->graph->set_initializer(weight, make_tensor("w", DataType::float32, {4, 3}, owned_values(values)));
  ASSERT_OK(insert_qdq(**before, {{"x", {-1, 1}}, {"y", {-2, 2}}}, {.per_channel = true}));
  ASSERT_OK_AND(const auto scales, number_values(*(*before)->graph->find("w_scale")->initializer()));
  for (const double scale : scales) EXPECT_TRUE(scale > 0 && scale < 0.01);
}

TEST_F(QdqFaultsTest, OutputsAreObserved) {
  ASSERT_OK_AND(const auto before, model_of_text(model(17, "g (float[2,4] x) => (float[2,3] y) <" +
                                                               constant_text("w", {4, 3}, random_floats(12, 1)) +
                                                               "> { y = MatMul(x, w) }")));
  ASSERT_OK_AND(const auto observed, tensors_to_observe(*before, {}));
  EXPECT_EQ(observed, (std::vector<std::string>{"x", "y"}));
}

TEST_F(QdqFaultsTest, SixteenBitsBeforeOpset21AreThoseOfComMicrosoft) {
  for (const int opset : {10, 11, 13, 17, 21}) {
    const std::string text =
        model(opset, "g (float[2,64] x) => (float[2,3] y) <" + constant_text("w", {64, 3}, random_floats(192, 1)) +
                         "> { y = MatMul(x, w) }");
    for (const bool wide : {true, false}) {
      for (const bool per_channel : {true, false}) {
        QdqReport report;
        ASSERT_OK_AND(const double error, error_after(text, one("x", {2, 64}),
                                                      {.activation_type = wide ? DataType::uint16 : DataType::uint8,
                                                       .per_channel = per_channel},
                                                      &report));
        EXPECT_LT(error, wide ? 0.06 : 0.12) << opset;
        const bool contributed = (wide && opset < 21) || (per_channel && opset < 13);
        EXPECT_EQ(report.domain, contributed ? "com.microsoft" : "") << opset;
        EXPECT_EQ(report.warnings.size(), contributed ? 1u : 0u);
      }
    }
  }
}

TEST_F(QdqFaultsTest, BeforeOpset10ThereIsNothingToQuantizeWith) {
  ASSERT_OK_AND(const auto before, model_of_text(model(9, "g (float[2] x) => (float[2] y) { y = Neg(x) }")));
  const auto report = insert_qdq(*before, {}, {});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::unsupported);
}

TEST_F(QdqFaultsTest, TheLastOperatorHasItsScaleUnlessItIsNotWanted) {
  const std::string text =
      model(17, "g (float[1,2,4,4] x) => (float[1,2,4,4] y) <" +
                    constant_text("w", {2, 2, 1, 1}, {0.5f, -1, 1, 0.25f}) + "> { y = Conv(x, w) }");
  const Samples samples = one("x", {1, 2, 4, 4});
  for (const bool outputs : {true, false}) {
    ASSERT_OK_AND(const auto quantized, quantize(text, samples, {.quantize_outputs = outputs}));
    EXPECT_EQ(quantized.report.quantize_linear, outputs ? 2u : 1u);
    const Value* y = quantized.model->graph->outputs()[0];
    EXPECT_EQ(y->name(), "y");
    EXPECT_EQ(y->producer()->op_type, outputs ? "DequantizeLinear" : "Conv");
    ASSERT_OK_AND(const double error, error_of(text, *quantized.model, samples));
    EXPECT_LT(error, 0.02);
  }
}

TEST_F(QdqFaultsTest, WeightsBehindConstantCastAndTransposeAreFolded) {
  std::string values;
  for (const float value : random_floats(12, 1)) values += (values.empty() ? "" : ", ") + std::to_string(value);
  const std::string text =
      model(17, "g (float[2,4] x) => (float[2,3] y) { c = Constant<value = float[3,4] {" + values +
                    "}>() h = Cast<to = 10>(c) f = Cast<to = 1>(h) i = Identity(f) t = Transpose<perm = [1, 0]>(i) "
                    "y = MatMul(x, t) }");
  QdqReport report;
  ASSERT_OK_AND(const auto quantized, quantize(text, one("x", {2, 4}), {.per_channel = true}));
  EXPECT_EQ(quantized.report.weights, 1u);
  EXPECT_EQ(count_nodes(*quantized.model, "Transpose") + count_nodes(*quantized.model, "Cast") +
                count_nodes(*quantized.model, "Constant"),
            0u);
  ASSERT_OK_AND(const double error, error_of(text, *quantized.model, one("x", {2, 4})));
  EXPECT_LT(error, 0.03);
}

TEST_F(QdqFaultsTest, DeadAndTinyChannelsKeepTheirBias) {
  std::vector<float> weights = random_floats(4 * 9, 1);
  for (std::size_t i = 0; i < 9; ++i) {
    weights[i] = 0;             // a dead channel
    weights[9 + i] *= 1e-12f;   // a tiny one
    weights[18 + i] *= 1e-39f;  // one that is denormal
  }
  const std::string text =
      model(17, "g (float[1,1,6,6] x) => (float[1,4,4,4] y) <" + constant_text("w", {4, 1, 3, 3}, weights) + ", " +
                    constant_text("b", {4}, {0.013f, 1.5f, -0.7f, 0.2f}) + "> { y = Conv(x, w, b) }");
  for (const DataType type : {DataType::int8, DataType::uint8}) {
    for (const bool per_channel : {true, false}) {
      ASSERT_OK_AND(const double error,
                    error_after(text, one("x", {1, 1, 6, 6}), {.weight_type = type, .per_channel = per_channel}));
      EXPECT_LT(error, 0.03) << name_of(type) << per_channel;
    }
  }
}

TEST_F(QdqFaultsTest, BatchesOfAnySizeRunThroughOneModel) {
  const std::string text = model(17, "g (float[N,4] x) => (float[N,3] y) <" +
                                         constant_text("w", {4, 3}, random_floats(12, 1)) + "> { y = MatMul(x, w) }");
  const Samples samples{one("x", {1, 4}, 1)[0], one("x", {2, 4}, 2)[0], one("x", {3, 4}, 3)[0]};
  ASSERT_OK_AND(const double error, error_after(text, samples));
  EXPECT_LT(error, 0.03);
}

// Bytes that nobody could hold, and the most of them that anybody asked for at once.
class ManyZeros final : public ByteSource {
 public:
  explicit ManyZeros(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t, std::span<std::byte> out) const override {
    largest = std::max<std::uint64_t>(largest, out.size());
    std::fill(out.begin(), out.end(), std::byte{0});
    return {};
  }
  mutable std::uint64_t largest = 0;

 private:
  std::uint64_t size_;
};

TEST_F(QdqFaultsTest, LargeWeightsAreReadInBlocks) {
  constexpr std::int64_t columns = 64 << 10;
  const auto zeros = std::make_shared<ManyZeros>(static_cast<std::uint64_t>(columns) * 512 * 4);
  Model large;
  large.ir_version = 8;
  large.set_opset("", 17);
  Graph& g = *large.graph;
  Value* x = g.add_input("x", Type::tensor(DataType::float32, static_shape({1, 512})));
  Value* w = g.add_initializer(make_tensor("w", DataType::float32, {512, columns}, zeros));
  g.mark_output(g.add_op("MatMul", {x, w}, "y"));
  ASSERT_OK_AND(const auto report, insert_qdq(large, {{"x", {-1, 1}}, {"y", {-1, 1}}}, {.per_channel = true}));
  EXPECT_EQ(report.weights, 1u);
  const Bytes quantized = g.find("w_quantized")->initializer()->data;
  EXPECT_EQ(quantized->size(), static_cast<std::uint64_t>(columns) * 512);
  EXPECT_FALSE(quantized->in_memory());
  std::vector<std::byte> part(1 << 20);
  ASSERT_OK(quantized->read(12345, part));
  EXPECT_LE(zeros->largest, 1u << 20);
}

}  // namespace
}  // namespace mk
