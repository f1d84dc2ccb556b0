#include "graph/precision.h"

#include "testing/testing.h"

namespace mk {
namespace {

Tensor zeros(std::string name, DataType type, std::vector<std::int64_t> dims) {
  Tensor tensor = make_tensor(std::move(name), type, std::move(dims), nullptr);
  tensor.data = owned_bytes(std::vector<std::byte>(*byte_size(type, tensor.element_count())));
  return tensor;
}

// One quantized weight and one quantized activation, a bias of 32 bits, and float scales.
void add_qdq(Graph& graph, DataType weight, std::optional<DataType> activation) {
  Value* scale = graph.add_initializer(zeros("scale", DataType::float32, {}));
  Value* w = graph.add_initializer(zeros("w", weight, {4}));
  graph.add_op("DequantizeLinear", {w, scale, graph.add_initializer(zeros("w_zero", weight, {}))}, "w_float");
  Value* bias = graph.add_initializer(zeros("bias", DataType::int32, {4}));
  for (int i = 0; i < 5; ++i)
    graph.add_op("DequantizeLinear",
                 {bias, scale, graph.add_initializer(zeros("b" + std::to_string(i), DataType::int32, {}))}, "f");
  if (!activation) return;
  Value* x = graph.add_input("x", Type::tensor(DataType::float32));
  Value* zero = graph.add_initializer(zeros("zero", *activation, {}));
  Value* q = graph.add_op("QuantizeLinear", {x, scale, zero}, "q");
  graph.add_op("DequantizeLinear", {q, scale, zero}, "dq");
}

std::optional<std::string> of(const std::function<void(Graph&)>& fill) {
  Model model;
  fill(*model.graph);
  return detected_precision(model);
}

TEST(Precision, QuantizeAndDequantize) {
  EXPECT_EQ(of([](Graph& g) { add_qdq(g, DataType::int8, DataType::uint8); }), "w8a8");
  EXPECT_EQ(of([](Graph& g) { add_qdq(g, DataType::uint8, DataType::uint16); }), "w8a16");
  EXPECT_EQ(of([](Graph& g) { add_qdq(g, DataType::int4, std::nullopt); }), "w4a4");
}

TEST(Precision, ZeroPointsMayBeAbsent) {
  EXPECT_EQ(of([](Graph& g) {
              Value* x = g.add_input("x", Type::tensor(DataType::float32));
              Value* scale = g.add_initializer(zeros("scale", DataType::float32, {}));
              g.add_op("QuantizeLinear", {x, scale}, "q");
            }),
            "w8a8");
}

TEST(Precision, WeightOnly) {
  EXPECT_EQ(of([](Graph& g) {
              Value* x = g.add_input("x", Type::tensor(DataType::float16));
              Value* scales = g.add_initializer(zeros("scales", DataType::float16, {4}));
              g.add_op("MatMulNBits", {x, scales}, "y")->producer()->set_attribute({"bits", 8});
              g.add_op("MatMulNBits", {x, scales}, "z")->producer()->set_attribute({"bits", 4});
            }),
            "w4a16");
  EXPECT_EQ(of([](Graph& g) {
              Value* x = g.add_input("x", Type::tensor(DataType::float32));
              g.add_op("MatMulNBits", {x, g.add_initializer(zeros("scales", DataType::float32, {4}))}, "y");
            }),
            "w4a32");
}

TEST(Precision, FloatsByTheirNumber) {
  EXPECT_EQ(of([](Graph& g) {
              g.add_initializer(zeros("a", DataType::float16, {100}));
              g.add_initializer(zeros("b", DataType::float32, {10}));
              g.add_initializer(zeros("ids", DataType::int64, {1000}));
            }),
            "fp16");
  EXPECT_EQ(of([](Graph& g) { g.add_initializer(zeros("a", DataType::bfloat16, {2})); }), "bf16");
  EXPECT_EQ(of([](Graph& g) {
              g.add_initializer(zeros("a", DataType::bfloat16, {200}));
              g.add_initializer(zeros("b", DataType::float16, {2}));
            }),
            "fp16");
  EXPECT_EQ(of([](Graph& g) {
              Value* constant = g.add_op("Constant", {}, "c");
              constant->producer()->set_attribute({"value", zeros("c", DataType::float32, {3})});
            }),
            "fp32");
  EXPECT_EQ(of([](Graph&) {}), std::nullopt);
}

}  // namespace
}  // namespace mk
