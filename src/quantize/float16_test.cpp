// Right values: ONNX Runtime's on the model before and after. The faults that users reported of other converters come
// first: a Cast that keeps its type, casts of the wrong inputs, colliding names, branches, a second conversion ...

#include "quantize/float16.h"

#include "quantize/float16_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

// An existing Cast to FLOAT follows what reads it.
TEST_F(Float16Test, CastsToFloatFollowTheirReaders) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[3] x, int64[3] n) => (float[3] y, float[3] z) {
    a = Cast<to = 1>(n)
    y = Mul(x, a)
    b = Cast<to = 1>(n)
    z = CumSum(b, axis)
    axis = Constant<value_int = 0>()
  })")));
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(c.type("b"), "float32");
  EXPECT_EQ(c.report.casts_added, 2u);  // x, y
  EXPECT_EQ(difference(c, {floats("x", {3}, {0.5f, -2, 3}), longs("n", {3}, {1, 2, 3})}), "");
}

// One that both read is made anew from its source, not widened.
TEST_F(Float16Test, CastsReadAsBothTypesStayExact) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (int64[2] n, float[2] x) => (float[2] y, float[2] z) {
    a = Cast<to = 1>(n)
    y = Mul(x, a)
    z = CumSum(a, axis)
    axis = Constant<value_int = 0>()
  })")));
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(difference(c, {longs("n", {2}, {2049, 4097}), floats("x", {2}, {1, 0})}, 1e-3), "");
  ASSERT_OK_AND(const auto z,
                run(*c.model, {longs("n", {2}, {2049, 4097}), floats("x", {2}, {1, 0})}, GraphOptimization::all, "z"));
  EXPECT_EQ(z, (std::vector<float>{2049, 6146}));
}

TEST_F(Float16Test, CastsThatAreOutputsStayExact) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (int64[2] n, float[2] x) => (float[2] z, float[2] y) {
    z = Cast<to = 1>(n)
    y = Mul(x, z)
  })")));
  ASSERT_OK_AND(const auto z, run(*c.model, {longs("n", {2}, {2049, 100001}), floats("x", {2}, {1, 0})},
                                  GraphOptimization::all, "z"));
  EXPECT_EQ(z, (std::vector<float>{2049, 100001}));
}

// Only float32 inputs of a blocked node are cast.
TEST_F(Float16Test, BlockedNodesOfOtherTypesAreLeftAlone) {
  ASSERT_OK_AND(const auto c,
                convert(at_opset(17, R"(g (int64[3] n, double[3] d, float[3] x) => (int64[3] a, double[3] b, float[3] y)
    <int64 axis = {0}> {
    a = CumSum(n, axis)
    b = CumSum(d, axis)
    h = Relu(x)
    s = CumSum(h, axis)
    y = Relu(s)
  })")));
  EXPECT_EQ(count_nodes(*c.model, "Cast"), 4u);  // x, h, s, y
  EXPECT_EQ(c.report.kept.size(), 1u);
  EXPECT_EQ(c.reason("CumSum -> s"), "blocked operator");
  const std::vector<double> doubles{1, 2, 1e300};
  EXPECT_EQ(difference(c, {longs("n", {3}, {1, 2, 3}), host_tensor<double>("d", DataType::float64, {3}, doubles),
                           floats("x", {3}, {1, -2, 3})}),
            "");
}

TEST_F(Float16Test, NamelessNodesGetDifferentNames) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[3] x) => (float[3] y, float[3] z) <int64 axis = {0}> {
    a = Relu(x)
    b = CumSum(a, axis)
    y = Neg(b)
    c = Abs(x)
    d = CumSum(c, axis)
    z = Neg(d)
  })")));
  std::vector<std::string> names;
  for (const Node* node : c.model->graph->nodes()) {
    if (node->op_type == "Cast") names.push_back(node->name);
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_EQ(names.size(), 7u);  // x once; a, c; b, d; y, z
  EXPECT_EQ(difference(c, {floats("x", {3}, {1, -2, 3})}), "");
}

// As other converters call theirs.
TEST_F(Float16Test, NamesInUseAreNotTakenAgain) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[3] x) => (float[3] y) {
    [graph_output_cast_0] x_float16 = Neg(x)
    [x_float16_cast] y_float16 = Neg(x_float16)
    [x_float16_1_cast] y = Neg(y_float16)
  })")));
  EXPECT_EQ(difference(c, {floats("x", {3}, {1, -2, 3})}), "");
}

// float16 -> float32 -> float16 goes; float32 -> float16 -> float32 rounds, and stays.
TEST_F(Float16Test, OnlyLosslessCastPairsGo) {
  ASSERT_OK_AND(const auto c,
                convert(at_opset(17, R"(g (float16[2] h, float[2] x) => (float16[2] y, float[2] z) <int64 axis = {0}> {
    a = Neg(h)
    b = Cast<to = 1>(a)
    c = Cast<to = 10>(b)
    y = Neg(c)
    d = CumSum(x, axis)
    e = Cast<to = 10>(d)
    f = Cast<to = 1>(e)
    z = CumSum(f, axis)
  })")));
  EXPECT_EQ(count_nodes(*c.model, "Cast"), 2u);
  EXPECT_EQ(c.type("f"), "float32");
  const std::vector<std::uint16_t> halves{0x3c00, 0xc000};
  const std::vector<HostTensor> inputs{host_tensor<std::uint16_t>("h", DataType::float16, {2}, halves),
                                       floats("x", {2}, {1.0001f, 2.0003f})};
  EXPECT_EQ(difference(c, inputs, 0), "");
}

// A graph of IR 3 lists its weights as inputs: no cast for those, and their type follows.
TEST_F(Float16Test, InitializersListedAsInputsAreNotCast) {
  ASSERT_OK_AND(const auto c,
                convert("<ir_version: 3, opset_import: [\"\" : 11]> "
                        "g (float[1,2] x, float[2,2] w) => (float[1,2] y) <float[2,2] w = {1.0,2.0,3.0,4.0}> "
                        "{ a = MatMul(x, w) y = Relu(a) }"));
  EXPECT_EQ(c.report.casts_added, 2u);
  EXPECT_EQ(c.type("w"), "float16");
  EXPECT_EQ(difference(c, {floats("x", {1, 2}, {1, 2})}), "");
}

// What the model says of its inputs and outputs stays, whatever inference finds.
TEST_F(Float16Test, InputsAndOutputsStayAsDeclared) {
  ASSERT_OK_AND(
      const auto c,
      convert(at_opset(
          17,
          R"(g (float[N, 4] x, float[4] unused) => (float[N, 4] y, float[N, 4] x, float[4] w) <float[4] w = {1.0, 0.1, 3.0, 4.0}> {
    y = Mul(x, w)
  })")));
  EXPECT_EQ(to_string(c.model->graph->inputs()[0]->type), "float32[N, 4]");
  EXPECT_EQ(to_string(c.model->graph->outputs()[0]->type), "float32[N, 4]");
  EXPECT_EQ(c.type("w"), "float32");  // an output: exact, with a float16 copy for the node
  EXPECT_EQ(difference(c, {floats("x", {1, 4}, {1, 2, 3, 4}), floats("unused", {4}, {0, 0, 0, 0})}), "");
}

TEST_F(Float16Test, InputsAndOutputsBecomeFloat16WhereAsked) {
  const std::string text =
      at_opset(17, R"(g (float[N, 2] x, int64 k) => (float[N, 2] y, float[N, 2] s) <float[2] w = {1.0, 0.5}> {
    y = Mul(x, w)
    axis = Constant<value_int = 1>()
    s = CumSum(x, axis)
  })");
  ASSERT_OK_AND(const auto c, convert(text, {.keep_io_types = false}));
  EXPECT_EQ(to_string(c.model->graph->inputs()[0]->type), "float16[N, 2]");
  EXPECT_EQ(to_string(c.model->graph->inputs()[1]->type), "int64[]");
  EXPECT_EQ(to_string(c.model->graph->outputs()[0]->type), "float16[N, 2]");
  EXPECT_EQ(to_string(c.model->graph->outputs()[1]->type), "float16[N, 2]");
  EXPECT_EQ(c.model->graph->outputs()[1]->name(), "s");
  EXPECT_EQ(c.report.casts_added, 2u);  // around the CumSum
}

// Shapes of one size only, left by whoever made the model, are not written again.
TEST_F(Float16Test, StaleShapesAreInferredAnew) {
  const std::string text = at_opset(17, R"(g (float[1, 1, H, W] x) => (float[1, 1, A, B] y)
    <float[4] scales = {1.0, 1.0, 2.0, 2.0}, float[1, 1, 8, 8] r, float[1, 1, 4, 4] a> {
    a = Relu(x)
    r = Resize<mode = "nearest">(a, , scales)
    y = Neg(r)
  })");
  ASSERT_OK_AND(const auto c, convert(text));
  EXPECT_EQ(c.type("scales"), "float32");
  EXPECT_EQ(to_string(c.model->graph->find("a")->type), "float16[1, 1, H, W]");
  for (const std::int64_t size : {2, 3}) {
    const auto values = random_floats(static_cast<std::size_t>(size * size), 3);
    EXPECT_EQ(difference(c, {floats("x", {1, 1, size, size}, values)}), "");
  }
}

TEST_F(Float16Test, ValuesPastTheRangeAreClippedAndNamed) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[2] x, bool[2] keep) => (float[2] y, float[2] z)
    <float[2] w = {100000.0, 0.000000001}, float mask = {-3.4e38}, float[2] fine = {1.0, -2.0}> {
    a = Mul(x, fine)
    z = Mul(a, w)
    b = Where(keep, a, mask)
    y = Softmax(b)
  })")));
  ASSERT_OK_AND(const auto lost, c.report.out_of_range());
  ASSERT_EQ(lost.size(), 2u);
  EXPECT_EQ(lost[0].tensor, "w");
  EXPECT_EQ(lost[0].clipped, 1u);
  EXPECT_EQ(lost[0].raised, 1u);
  EXPECT_EQ(lost[1].tensor, "mask");
  EXPECT_EQ(lost[1].clipped, 1u);
  ASSERT_OK_AND(const auto mask, number_values(*c.model->graph->find("mask")->initializer()));
  EXPECT_EQ(mask, std::vector<double>{-65504});
  ASSERT_OK_AND(const auto w, number_values(*c.model->graph->find("w")->initializer()));
  EXPECT_EQ(w, (std::vector<double>{65504, 0x1p-24}));
  const std::vector<HostTensor> inputs{
      floats("x", {2}, {1, 2}), host_tensor<bool>("keep", DataType::boolean, {2}, std::array<bool, 2>{true, false})};
  ASSERT_OK_AND(const auto y, run(*c.model, inputs, GraphOptimization::all, "y"));
  EXPECT_EQ(y, (std::vector<float>{1, 0}));
}

// Counted while the model is written, however it is read then.
TEST_F(Float16Test, LossesAreCountedOnceWhateverIsRead) {
  std::vector<float> values(100000, 1.0f);
  for (std::size_t i = 0; i < values.size(); i += 10) values[i] = 1e6f;
  Model model;
  model.set_opset({}, 17);
  Graph& graph = *model.graph;
  Value* x = graph.add_input("x", Type::tensor(DataType::float32, Shape{}));
  Value* w = graph.add_initializer(make_tensor("w", DataType::float32, {100000}, owned_values(values)));
  graph.mark_output(graph.add_op("Mul", {x, w}, "y"));
  ASSERT_OK_AND(const auto report, convert_to_float16(model));
  const Bytes bytes = graph.find("w")->initializer()->data;
  std::vector<std::byte> some(33333);
  ASSERT_OK(bytes->read(10, some));
  ASSERT_OK(bytes->read(0, some));
  ASSERT_OK(bytes->read(0, some));
  ASSERT_OK_AND(const auto whole, read_all(*bytes));
  for (int i = 0; i < 2; ++i) {
    ASSERT_OK_AND(const auto lost, report.out_of_range());
    ASSERT_EQ(lost.size(), 1u);
    EXPECT_EQ(lost[0].clipped, 10000u);
  }
  EXPECT_TRUE(std::equal(some.begin(), some.end(), whole.begin()));
}

// Infinity is clipped too, but not in a model that looks for it: here, rows that are masked throughout.
TEST_F(Float16Test, InfinityStaysWhereTheModelAsksForIt) {
  const std::string head =
      "g (float[1,2] x, bool[1,2] keep) => (float[1,2] y) <float inf = {-inf}, float zero = {0.0}> {"
      "a = Where(keep, x, inf) b = Softmax(a)";
  ASSERT_OK_AND(const auto plain, convert(at_opset(17, head + " y = Identity(b) }")));
  ASSERT_OK_AND(const auto lost, plain.report.out_of_range());
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0].infinite, 1u);
  ASSERT_OK_AND(const auto asked, convert(at_opset(17, head + " n = IsNaN(b) y = Where(n, zero, b) }")));
  ASSERT_OK_AND(const auto none, asked.report.out_of_range());
  EXPECT_TRUE(none.empty());
  for (const bool first : {true, false}) {
    const std::vector<HostTensor> inputs{
        floats("x", {1, 2}, {1, 2}),
        host_tensor<bool>("keep", DataType::boolean, {1, 2}, std::array<bool, 2>{first, false})};
    EXPECT_EQ(difference(asked, inputs), "");
  }
}

TEST_F(Float16Test, BlockedByNameByGlobAndByOperator) {
  const std::string graph = at_opset(17, R"(g (float[3] x) => (float[3] y) {
    [enc_a] a = Relu(x)
    [enc_b] b = Neg(a)
    c = Abs(b)
    [dec] y = Exp(c)
  })");
  ASSERT_OK_AND(const auto c, convert(graph, {.blocked_nodes = {"enc_*", "c", "nobody", "no?e"}}));
  EXPECT_EQ(c.type("a"), "float32");
  EXPECT_EQ(c.type("b"), "float32");
  EXPECT_EQ(c.type("c"), "float32");
  EXPECT_EQ(c.reason("enc_a"), "blocked node");
  EXPECT_EQ(c.report.converted_nodes, 1u);
  EXPECT_EQ(difference(c, {floats("x", {3}, {1, -2, 3})}), "");

  const std::string max =
      at_opset(17, "g (float[3] x) => (float[3] y) <float[1] w = {0.5}> { a = Max(x, w) y = Relu(a) }");
  ASSERT_OK_AND(const auto blocked, convert(max));
  EXPECT_EQ(blocked.type("w"), "float32");
  EXPECT_EQ(blocked.reason("Max -> a"), "blocked operator");
  ASSERT_OK_AND(const auto replaced, convert(max, {.blocked_ops = std::vector<std::string>{"Relu"}}));
  EXPECT_EQ(replaced.type("w"), "float16");
  EXPECT_EQ(replaced.reason("Relu -> y"), "blocked operator");
}

// A weight that both kinds of nodes read is there in both, exact for those that stay.
TEST_F(Float16Test, SharedWeightsAreThereTwice) {
  ASSERT_OK_AND(const auto c,
                convert(at_opset(17, R"(g (float[1] x) => (float[2] y, float[2] z) <float[2] w = {0.1, 0.2}> {
    y = Mul(x, w)
    z = Min(x, w)
  })")));
  EXPECT_EQ(c.type("w"), "float32");
  EXPECT_EQ(c.type("w_float16"), "float16");
  EXPECT_EQ(difference(c, {floats("x", {1}, {0.15f})}), "");
}

TEST_F(Float16Test, ConstantsOfEveryKind) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[2] x, int64[1] n) => (float[2] y) {
    a = Constant<value = float[2] {1.0, 2.0}>()
    b = Constant<value_float = 0.5>()
    c = Constant<value_floats = [3.0, 4.0]>()
    d = ConstantOfShape(n)
    e = ConstantOfShape<value = float[1] {7.0}>(n)
    f = Mul(x, a)
    h = Mul(f, b)
    i = Add(h, c)
    j = Add(i, d)
    y = Add(j, e)
  })")));
  for (const char* name : {"a", "b", "c", "d", "e"}) EXPECT_EQ(c.type(name), "float16") << name;
  EXPECT_EQ(c.report.converted_tensors, 5u);
  EXPECT_EQ(difference(c, {floats("x", {2}, {1, 2}), longs("n", {1}, {2})}), "");
}

TEST_F(Float16Test, ElementTypesInAttributesFollow) {
  const std::string graph = R"(g (float[2, 3] x) => (float[2, 3] y) {
    a = RandomNormalLike<dtype = 1, scale = 0.000001, mean = 1.5>(x)
    b = EyeLike<dtype = 1>(x)
    c = Add(a, b)
    y = Mul(c, x)
  })";
  ASSERT_OK_AND(const auto c, convert(at_opset(17, graph)));
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(c.type("b"), "float16");
  EXPECT_EQ(difference(c, {floats("x", {2, 3}, {1, 2, 3, 4, 5, 6})}), "");
}

// ONNX Runtime has no float16 form of these, and nothing float16 goes in that it could cast.
TEST_F(Float16Test, WhatMakesValuesFromNothingStays) {
  ASSERT_OK_AND(const auto c,
                convert(at_opset(17, R"(g (float[4] x, int64 n, int64[2, 2] i) => (float[4] y, float[2, 2] z) {
    a = HannWindow(n)
    b = RandomUniform<dtype = 1, low = 2.0, high = 2.0, shape = [4]>()
    c = Mul(x, a)
    y = Mul(c, b)
    d = EyeLike<dtype = 1>(i)
    z = Neg(d)
  })")));
  EXPECT_EQ(c.type("a"), "float32");
  EXPECT_EQ(c.reason("HannWindow -> a"), "makes its values as float32");
  EXPECT_EQ(difference(c, {floats("x", {4}, {1, 2, 3, 4}), longs("n", {}, {4}), longs("i", {2, 2}, {0, 0, 0, 0})}), "");
}

TEST_F(Float16Test, ReductionsThatOnnxRuntimeDoesNotRunStay) {
  ASSERT_OK_AND(const auto c, convert(at_opset(18, R"(g (float[3] x) => (float[3] y, float[3] z)
    <int64[2, 1] at = {0, 0}, int64[2] flat = {0, 0}, float[2] u = {1.0, 2.0}> {
    a = ScatterND<reduction = "add">(x, at, u)
    y = Neg(a)
    b = ScatterElements<reduction = "mul">(x, flat, u)
    z = Neg(b)
  })")));
  EXPECT_EQ(c.type("a"), "float32");
  EXPECT_EQ(difference(c, {floats("x", {3}, {1, 2, 3})}), "");
}

TEST_F(Float16Test, ContribOperators) {
  const std::string graph = at_opset(17,
                                     "g (float[1,2,4] x) => (float[1,2,2] y, float[1,2,1] mean) <" +
                                         constant_text("gamma", {4}, random_floats(4, 1)) + ", " +
                                         constant_text("beta", {4}, random_floats(4, 2)) + R"(> {
    n, m, , s = com.microsoft.SkipLayerNormalization(x, x, gamma, beta)
    h = com.microsoft.FastGelu(s)
    k = com.microsoft.BiasGelu(h, beta)
    y = com.microsoft.FusedMatMul<transB = 1>(n, k)
    mean = Neg(m)
  })",
                                     ", \"com.microsoft\" : 1");
  ASSERT_OK_AND(const auto c, convert(graph));
  EXPECT_EQ(c.type("gamma"), "float16");
  EXPECT_EQ(difference(c, {floats("x", {1, 2, 4}, random_floats(8, 5))}), "");
}

// What nobody told us of stays float32, with casts around it.
TEST_F(Float16Test, OperatorsOfOtherDomainsStay) {
  ASSERT_OK_AND(const auto c,
                convert(at_opset(17,
                                 "g (float[2,3] x) => (float[2,2] y) <float[2,2] u> "
                                 "{ a = Relu(x) u = com.microsoft.CDist<metric = \"euclidean\">(a, a) y = Neg(u) }",
                                 ", \"com.microsoft\" : 1")));
  EXPECT_EQ(c.type("u"), "float32");
  EXPECT_EQ(c.reason("CDist -> u"), "operator of com.microsoft not known in float16");
  EXPECT_EQ(difference(c, {floats("x", {2, 3}, random_floats(6, 5))}), "");
}

// Weights of 4 bits, activations of 16: the scales are float16, too.
TEST_F(Float16Test, BlockQuantizedWeights) {
  const std::string packed = "uint8[2,1,8] w = {1,35,69,103,137,171,205,239,16,50,84,118,152,186,220,254}";
  ASSERT_OK_AND(const auto c, convert(at_opset(17,
                                               "g (float[1,16] x) => (float[1,2] y) <" + packed +
                                                   ", float[2] s = {0.01, 0.3}> { a = com.microsoft.MatMulNBits<K = "
                                                   "16, N = 2, bits = 4, block_size = 16>(x, w, s) y = Neg(a) }",
                                               ", \"com.microsoft\" : 1")));
  EXPECT_EQ(c.type("w"), "uint8");
  EXPECT_EQ(c.type("s"), "float16");
  EXPECT_EQ(difference(c, {floats("x", {1, 16}, random_floats(16, 3))}), "");
}

TEST_F(Float16Test, MasksInAttributesAreClipped) {
  const std::string weights =
      constant_text("w", {4, 12}, random_floats(48, 1)) + ", " + constant_text("b", {12}, random_floats(12, 2));
  ASSERT_OK_AND(
      const auto c,
      convert(at_opset(17,
                       "g (float[1,3,4] x, int32[1,3] m) => (float[1,3,4] y) <" + weights +
                           "> { y = com.microsoft.Attention<num_heads = 2, mask_filter_value = -3.4e38>(x, w, b, m) }",
                       ", \"com.microsoft\" : 1")));
  EXPECT_EQ(find_node(*c.model, "Attention")->real("mask_filter_value", 0), -65504.0f);
  const std::vector<std::int32_t> mask{1, 1, 0};
  EXPECT_EQ(difference(c, {floats("x", {1, 3, 4}, random_floats(12, 3)),
                           host_tensor<std::int32_t>("m", DataType::int32, {1, 3}, mask)}),
            "");
}

TEST_F(Float16Test, RefusesWithoutTouchingTheModel) {
  ASSERT_OK_AND(auto model, model_of_text(at_opset(17,
                                                   "g (float[2] x) => (float[2] y) <float[2] w = {1.0, 2.0}, float[2] "
                                                   "v = {1.0, 2.0}> { a = Mul(x, w) y = Mul(a, v) }")));
  model->graph->find("v")->initializer()->data = nullptr;
  model->graph->find("v")->initializer()->external = {{"location", "gone.data"}};
  ASSERT_OK_AND(const std::string before, serialize_onnx(*model));
  const auto report = convert_to_float16(*model);
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().to_string().find("tensor v"), std::string::npos) << report.error().to_string();
  ASSERT_OK_AND(const std::string after, serialize_onnx(*model));
  EXPECT_EQ(before, after);
  ASSERT_OK_AND(auto old, model_of_text(at_opset(5, "g (float[2] x) => (float[2] y) { y = Neg(x) }")));
  const auto too_old = convert_to_float16(*old);
  ASSERT_FALSE(too_old.has_value());
  EXPECT_EQ(too_old.error().code, ErrorCode::unsupported);
  Model empty;
  const auto no_opset = convert_to_float16(empty);
  ASSERT_FALSE(no_opset.has_value());
  EXPECT_EQ(no_opset.error().code, ErrorCode::malformed);
}

}  // namespace
}  // namespace mk
