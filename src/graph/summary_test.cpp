#include "graph/summary.h"

#include "testing/testing.h"

namespace mk {
namespace {

TEST(Summary, CountsWhatIsThere) {
  Model model;
  model.ir_version = 8;
  model.set_opset("", 17);
  model.producer_name = "someone";
  set(model.metadata, "task", "image-classification");
  Graph& graph = *model.graph;
  const Type floats = Type::tensor(DataType::float32, Shape{Dim::symbolic("n"), Dim::known(2)});
  Value* x = graph.add_input("x", floats);
  Value* condition = graph.add_input("c", Type::tensor(DataType::boolean, Shape{}));
  const float weights[] = {1, 2};
  Value* w = graph.add_initializer(make_tensor("w", DataType::float32, {2}, owned_values(std::span(weights))));
  Tensor missing = make_tensor("m", DataType::int8, {1000}, nullptr);
  missing.external = {{"location", "m.onnx.data"}};
  Value* m = graph.add_initializer(std::move(missing));
  graph.mark_input(w);
  Value* y = graph.add_op("Mul", {x, w}, "y");
  graph.add_op("Mul", {y, m}, "z");
  auto branch = std::make_unique<Graph>("branch");
  Value* constant = branch->add_op("Constant", {}, "k");
  constant->producer()->set_attribute({"value", scalar_tensor("", std::int64_t{3})});
  branch->mark_output(branch->add_op("QuantizeLinear", {y, constant}, "q"));
  Node* node = graph.add_node("If", {condition}, {graph.add_value("out")});
  node->set_attribute({"then_branch", std::move(branch)});
  graph.mark_output(node->output(0));
  model.functions.emplace_back().name = "F";
  model.functions.back().domain = "local";

  const ModelSummary summary = summarize(model);
  EXPECT_EQ(summary.ir_version, 8);
  EXPECT_EQ(summary.producer_name, "someone");
  ASSERT_EQ(summary.inputs.size(), 2u);
  EXPECT_EQ(to_string(summary.inputs[0].type), "float32[n, 2]");
  EXPECT_EQ(summary.outputs[0].name, "out");
  EXPECT_EQ(summary.nodes, 3u);
  EXPECT_EQ(summary.subgraphs, 1u);
  EXPECT_EQ(summary.subgraph_nodes, 2u);
  ASSERT_EQ(summary.operators.size(), 4u);
  EXPECT_EQ(summary.operators[0].op_type, "Mul");
  EXPECT_EQ(summary.operators[0].nodes, 2u);
  EXPECT_EQ(summary.functions, std::vector<std::string>{"local.F"});
  EXPECT_EQ(summary.initializers, 2u);
  EXPECT_EQ(summary.constants, 1u);
  ASSERT_EQ(summary.weights.size(), 3u);
  EXPECT_EQ(summary.weights[0].type, DataType::int8);
  EXPECT_EQ(summary.weights[0].bytes, 1000u);
  EXPECT_EQ(summary.weight_bytes, 1016u);
  EXPECT_EQ(summary.parameters, 1002u);
  ASSERT_EQ(summary.external_files.size(), 1u);
  EXPECT_TRUE(summary.external_files[0].missing);
  EXPECT_EQ(summary.external_files[0].bytes, 1000u);
  EXPECT_FALSE(summary.quantized);  // only nodes of the main graph count
  EXPECT_FALSE(summary.compiled);

  graph.add_op("DynamicQuantizeLinear", {x}, "d");
  graph.add_op("EPContext", {x}, "e");
  EXPECT_TRUE(summarize(model).quantized);
  EXPECT_TRUE(summarize(model).compiled);
}

}  // namespace
}  // namespace mk
