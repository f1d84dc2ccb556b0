// Models that are quantized already, and arithmetic on integers: what stays float32 for the sake of its values.

#include "quantize/float16_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

// Sums of 300 products of 8 bits are far past 65504; their scales' products are below the normal range.
TEST_F(Float16Test, DynamicQuantizationKeepsItsSums) {
  std::string weights = "int8[300, 2] w = {";
  for (int i = 0; i < 600; ++i) weights += (i ? "," : "") + std::to_string(i % 2 ? 100 : (i % 100) - 30);
  const std::string text = at_opset(17, "g (float[1, 300] x) => (float[1, 2] y) <" + weights +
                                            "}, int8 wz = {0}, float ws = {0.0001}, float[2] b = {0.5, -0.25}> {" + R"(
    q, s, z = DynamicQuantizeLinear(x)
    i = MatMulInteger(q, w, z, wz)
    f = Cast<to = 1>(i)
    k = Mul(s, ws)
    m = Mul(f, k)
    y = Add(m, b)
  })");
  ASSERT_OK_AND(const auto c, convert(text));
  EXPECT_EQ(c.type("f"), "float32");
  EXPECT_EQ(c.type("m"), "float32");
  EXPECT_EQ(c.type("ws"), "float16");  // in the file; the node takes it as float32
  EXPECT_EQ(c.type("b"), "float16");
  EXPECT_EQ(c.type("w"), "int8");
  EXPECT_EQ(difference(c, {floats("x", {1, 300}, random_floats(300, 4, 0, 1))}), "");
}

std::string qdq_conv(int opset, float bias_scale) {
  return at_opset(opset, "g (float[1,1,4,4] x) => (float[1,1,4,4] y) <" + constant_text("tail", {1, 1, 1, 1}, {0.5f}) +
                             R"(,
    float xs = {0.02}, uint8 xz = {128}, float ws = {0.01}, int8 wz = {0}, float ys = {0.05}, uint8 yz = {128},
    int8[1,1,3,3] w = {1,2,3,4,5,6,7,8,9}, int32[1] b = {50}, int32 bz = {0}, float bs = {)" +
                             std::to_string(bias_scale) + R"(}> {
    xq = QuantizeLinear(x, xs, xz)
    xd = DequantizeLinear(xq, xs, xz)
    wd = DequantizeLinear(w, ws, wz)
    bd = DequantizeLinear(b, bs, bz)
    c = Conv<pads = [1,1,1,1]>(xd, wd, bd)
    r = Relu(c)
    rq = QuantizeLinear(r, ys, yz)
    rd = DequantizeLinear(rq, ys, yz)
    t = Mul(rd, tail)
    y = Sigmoid(t)
  })");
}

// Quantized nodes stay as they are; what is still float between them and the output converts.
TEST_F(Float16Test, QuantizedNodesStayAndTheRestConverts) {
  for (const int opset : {13, 19, 21}) {
    ASSERT_OK_AND(const auto c, convert(qdq_conv(opset, 0.0002f)));
    EXPECT_EQ(c.type("c"), "float32") << opset;
    EXPECT_EQ(c.type("r"), "float32") << opset;
    EXPECT_EQ(c.type("bs"), "float32") << opset;
    EXPECT_EQ(c.type("tail"), "float16") << opset;
    EXPECT_EQ(c.type("t"), "float16") << opset;
    // From opset 19 a DequantizeLinear gives float16 itself.
    EXPECT_EQ(c.type("rd"), opset >= 19 ? "float16" : "float32") << opset;
    EXPECT_EQ(c.report.casts_added, opset >= 19 ? 1u : 2u) << opset;
    EXPECT_EQ(difference(c, {floats("x", {1, 1, 4, 4}, random_floats(16, 6))}), "") << opset;
  }
}

// Weights alone quantized: they come out as float16 where the opset has it, unless their scale is too small.
TEST_F(Float16Test, QuantizedWeightsOfFloatNodes) {
  for (const int opset : {13, 21}) {
    for (const char* scale : {"0.01", "0.00000001"}) {
      ASSERT_OK_AND(
          const auto c,
          convert(at_opset(
              opset, std::string("g (float[1,2] x) => (float[1,2] y) <int8[2,2] w = {1,2,-3,4}, float s = {") + scale +
                         "}, int8 z = {0}> { d = DequantizeLinear(w, s, z) a = MatMul(x, d) y = Neg(a) }")));
      const bool small = std::string_view(scale) == "0.00000001";
      EXPECT_EQ(c.type("a"), "float16");
      EXPECT_EQ(c.type("d"), opset == 21 && !small ? "float16" : "float32") << opset << ' ' << scale;
      EXPECT_EQ(c.type("s"), c.type("d"));
      EXPECT_EQ(difference(c, {floats("x", {1, 2}, {1, -2})}, small ? 1 : 5e-3), "");
    }
  }
}

TEST_F(Float16Test, ActivationsQuantizedBetweenFloat16Nodes) {
  for (const int opset : {13, 21}) {
    ASSERT_OK_AND(
        const auto c,
        convert(at_opset(
            opset, R"(g (float[2] x) => (float[2] y) <float s = {0.02}, uint8 z = {100}, float[2] w = {1.0, 0.5}> {
      a = Mul(x, w)
      q = QuantizeLinear(a, s, z)
      d = DequantizeLinear(q, s, z)
      y = Mul(d, w)
    })")));
    EXPECT_EQ(c.type("a"), "float16");
    EXPECT_EQ(c.type("s"), opset == 21 ? "float16" : "float32");
    EXPECT_EQ(c.report.casts_added, opset == 21 ? 2u : 4u);
    EXPECT_EQ(difference(c, {floats("x", {2}, {1, -0.5})}), "");
  }
}

// 4001 is no float16, and neither is its double: sizes are computed in float32.
TEST_F(Float16Test, ArithmeticOnShapesStaysExact) {
  ASSERT_OK_AND(
      const auto c,
      convert(at_opset(17, R"(g (float[N] x) => (float[M] y, int64[1] n) <float two = {2.0}, float[1] w = {0.5}> {
    s = Shape(x)
    f = Cast<to = 1>(s)
    d = Mul(f, two)
    e = Floor(d)
    n = Cast<to = 7>(e)
    h = Mul(x, w)
    r = Concat<axis = 0>(h, h)
    y = Reshape(r, n)
  })")));
  EXPECT_EQ(c.type("d"), "float32");
  EXPECT_EQ(c.type("r"), "float16");
  EXPECT_EQ(c.reason("Mul -> d"), "lies between integers");
  EXPECT_EQ(difference(c, {floats("x", {4001}, random_floats(4001, 1))}), "");
}

// A size from constants alone: 37 as float16's power gives it is just below.
TEST_F(Float16Test, SizesFromConstantsStayExact) {
  ASSERT_OK_AND(
      const auto c,
      convert(at_opset(17, R"(g (float[37] x) => (float[37] y) <float[1] all = {1369.0}, float[1] half = {0.5}> {
    p = Pow(all, half)
    n = Cast<to = 7>(p)
    h = Relu(x)
    y = Reshape(h, n)
  })")));
  EXPECT_EQ(c.type("p"), "float32");
  EXPECT_EQ(difference(c, {floats("x", {37}, random_floats(37, 1))}), "");
}

// Scales of a Resize, computed from a shape.
TEST_F(Float16Test, ComputedScalesStayFloat32) {
  ASSERT_OK_AND(
      const auto c,
      convert(at_opset(
          13, R"(g (float[1,1,H,W] x) => (float[1,1,A,B] y) <float[2] ones = {1.0, 1.0}, float[1] big = {6.0}> {
    a = Relu(x)
    s = Shape(a)
    two = Constant<value_ints = [2]>()
    four = Constant<value_ints = [4]>()
    hw = Slice(s, two, four)
    f = Cast<to = 1>(hw)
    k = Div(big, f)
    scales = Concat<axis = 0>(ones, k)
    r = Resize<mode = "linear">(a, , scales)
    y = Neg(r)
  })")));
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(c.type("r"), "float16");
  EXPECT_EQ(difference(c, {floats("x", {1, 1, 3, 2}, random_floats(6, 1))}), "");
}

// Positions times frequencies, as rotary embeddings have them: at position 1500, float16 has no digits of the angle.
TEST_F(Float16Test, AnglesOfPositionsStayExact) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (int64[1, N] p, float[1, N, 4] x) => (float[1, N, 4] y)
    <float[1, 2, 1] frequency = {1.0, 0.37}> {
    one = Constant<value_ints = [1]>()
    u = Unsqueeze(p, one)
    f = Cast<to = 1>(u)
    m = MatMul(frequency, f)
    t = Transpose<perm = [0, 2, 1]>(m)
    e = Concat<axis = -1>(t, t)
    c = Cos(e)
    s = Sin(e)
    a = Mul(x, c)
    b = Mul(x, s)
    y = Add(a, b)
  })")));
  EXPECT_EQ(c.type("s"), "float32");
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(c.type("frequency"), "float32");
  EXPECT_EQ(c.report.kept.size(), 5u);
  EXPECT_EQ(difference(c, {longs("p", {1, 2}, {1500, 1777}), floats("x", {1, 2, 4}, random_floats(8, 9))}), "");
  // Of activations, a sine is like any other function.
  ASSERT_OK_AND(const auto snake, convert(at_opset(17, R"(g (float[2] x) => (float[2] y) {
    a = Tanh(x)
    s = Sin(a)
    y = Add(s, a)
  })")));
  EXPECT_EQ(snake.type("s"), "float16");
}

// Weights far over 2 GiB, of which the disk holds nothing: no pass over them, no copy of them.
TEST_F(Float16Test, WeightsOfAnySize) {
  TemporaryFolder folder;
  constexpr std::uint64_t bytes = 6ull << 30;
  const Path data = folder.write("w.bin", "");
  std::filesystem::resize_file(data, bytes);
  ASSERT_OK_AND(const auto file, File::open(data));
  Model model;
  model.set_opset({}, 17);
  Graph& graph = *model.graph;
  graph.name = "g";
  Value* x = graph.add_input("x", Type::tensor(DataType::float32, static_shape({1, 1024})));
  constexpr auto columns = static_cast<std::int64_t>(bytes / 4 / 1024);
  Value* w = graph.add_initializer(make_tensor("w", DataType::float32, {1024, columns}, file_bytes({file, 0, bytes})));
  Value* y = graph.add_op("MatMul", {x, w}, "y");
  y->type = Type::tensor(DataType::float32, static_shape({1, columns}));
  graph.mark_output(y);
  ASSERT_OK_AND(const auto report, convert_to_float16(model));
  ASSERT_OK(verify(model));
  ASSERT_OK(check_onnx(model));
  EXPECT_EQ(report.converted_tensors, 1u);
  EXPECT_EQ(w->initializer()->type, DataType::float16);
  EXPECT_EQ(w->initializer()->data->size(), bytes / 2);
  std::vector<std::byte> some(64);
  ASSERT_OK(w->initializer()->data->read(bytes / 2 - 64, some));
}

}  // namespace
}  // namespace mk
