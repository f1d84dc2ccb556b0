#include "graph/ir.h"

#include <algorithm>

#include "testing/testing.h"

namespace mk {
namespace {

Type floats(std::vector<std::int64_t> dims) { return Type::tensor(DataType::float32, static_shape(dims)); }

std::vector<std::string> op_types(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node* node : graph.nodes()) names.push_back(node->op_type);
  return names;
}

TEST(Graph, ValuesKnowProducerAndUses) {
  Graph graph;
  Value* x = graph.add_input("x", floats({2}));
  Value* w = graph.add_initializer(scalar_tensor("w", 2.0f));
  Value* y = graph.add_op("Mul", {x, w}, "y");
  Value* z = graph.add_op("Add", {y, y}, "z");
  graph.mark_output(z);

  EXPECT_EQ(y->producer()->op_type, "Mul");
  EXPECT_EQ(y->uses().size(), 2u);
  EXPECT_EQ(w->uses().front(), (Use{y->producer(), 1}));
  EXPECT_TRUE(x->is_graph_input());
  EXPECT_TRUE(z->is_graph_output());
  EXPECT_EQ(to_string(w->type), "float32[]");
  EXPECT_EQ(graph.find("y"), y);
  EXPECT_EQ(graph.find("nothing"), nullptr);
}

TEST(Graph, ReplaceUsesAndErase) {
  Graph graph;
  Value* x = graph.add_input("x", floats({2}));
  Value* y = graph.add_op("Identity", {x}, "y");
  Value* z = graph.add_op("Add", {y, y}, "z");
  graph.mark_output(y);
  graph.mark_output(z);

  graph.replace_uses(y, x);
  EXPECT_EQ(z->producer()->inputs(), (std::vector<Value*>{x, x}));
  EXPECT_EQ(x->uses().size(), 3u);
  EXPECT_TRUE(y->uses().empty());
  EXPECT_EQ(graph.outputs().front(), y);
  graph.replace_uses(y, x, /*outputs=*/true);
  EXPECT_EQ(graph.outputs().front(), x);
  EXPECT_TRUE(y->is_unused());
  graph.erase(y->producer());
  EXPECT_EQ(graph.find("y"), nullptr);
  EXPECT_EQ(graph.node_count(), 1u);
  EXPECT_EQ(x->uses().size(), 2u);
}

TEST(Graph, InputsCanBeAbsentAndChanged) {
  Graph graph;
  Value* x = graph.add_input("x", floats({2}));
  Value* y = graph.add_value("y");
  Node* clip = graph.add_node("Clip", {x}, {y});
  Value* max = graph.add_initializer(scalar_tensor("max", 6.0f));
  clip->set_input(2, max);
  EXPECT_EQ(clip->inputs(), (std::vector<Value*>{x, nullptr, max}));
  clip->set_input(0, max);
  EXPECT_TRUE(x->uses().empty());
  clip->resize_inputs(1);
  EXPECT_EQ(max->uses(), (std::vector<Use>{{clip, 0}}));
  clip->resize_inputs(0);
  graph.erase_unused(max);
  EXPECT_TRUE(graph.initializers().empty());
}

TEST(Graph, UniqueNamesLookEverywhere) {
  Graph graph;
  Value* condition = graph.add_input("c", Type::tensor(DataType::boolean, Shape{}));
  auto branch = std::make_unique<Graph>("branch");
  branch->mark_output(branch->add_op("Constant", {}, "inner"));
  Value* y = graph.add_value("y");
  Node* node = graph.add_node("If", {condition}, {y});
  node->set_attribute({"then_branch", std::move(branch)});
  Graph* inner = node->subgraphs().front();

  EXPECT_EQ(graph.unique_name("new"), "new");
  EXPECT_EQ(graph.unique_name("inner"), "inner_1");
  EXPECT_EQ(inner->unique_name("y"), "y_1");
  EXPECT_EQ(inner->unique_name("y"), "y_2");
  EXPECT_EQ(inner->resolve("c"), condition);
  EXPECT_EQ(inner->outer(), &graph);
}

TEST(Graph, RenameKeepsTheTensorsName) {
  Graph graph;
  Value* w = graph.add_initializer(scalar_tensor("w", 2.0f));
  graph.rename(w, "weight");
  EXPECT_EQ(graph.find("w"), nullptr);
  EXPECT_EQ(graph.find("weight"), w);
  EXPECT_EQ(w->initializer()->name, "weight");
}

TEST(Graph, CapturesAreUsesUntilTheNodeGoes) {
  Graph graph;
  Value* x = graph.add_input("x", floats({2}));
  Value* condition = graph.add_input("c", Type::tensor(DataType::boolean, Shape{}));
  auto branch = std::make_unique<Graph>("branch");
  branch->mark_output(branch->add_op("Relu", {x}, "r"));
  EXPECT_EQ(x->uses().size(), 1u);
  Node* node = graph.add_node("If", {condition}, {graph.add_value("y")});
  node->set_attribute({"then_branch", std::move(branch)});
  EXPECT_EQ(x->uses().front().node->graph(), node->subgraphs().front());
  int visited = 0;
  for_each_node(graph, [&](Node&) { ++visited; });
  EXPECT_EQ(visited, 2);

  node->set_attribute({"then_branch", std::make_unique<Graph>("empty")});
  EXPECT_TRUE(x->uses().empty());
  graph.erase(node);
  EXPECT_TRUE(condition->uses().empty());
}

TEST(Graph, SortIsStableAndFindsCycles) {
  Graph graph;
  Value* x = graph.add_input("x", floats({2}));
  Value* a = graph.add_value("a");
  Value* b = graph.add_value("b");
  Value* c = graph.add_value("c");
  graph.add_node("Third", {b}, {c});
  Node* second = graph.add_node("Second", {a}, {b});
  graph.add_node("First", {x}, {a});
  graph.add_node("Other", {x}, {graph.add_value("d")});
  ASSERT_OK(graph.sort());
  EXPECT_EQ(op_types(graph), (std::vector<std::string>{"First", "Second", "Third", "Other"}));
  ASSERT_OK(graph.sort());
  EXPECT_EQ(op_types(graph), (std::vector<std::string>{"First", "Second", "Third", "Other"}));

  a->producer()->set_input(0, c);
  second->name = "two";
  const Status status = graph.sort();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::malformed);
  EXPECT_EQ(graph.node_count(), 4u);
}

TEST(Graph, SortSeesCaptures) {
  Graph graph;
  Value* condition = graph.add_input("c", Type::tensor(DataType::boolean, Shape{}));
  Value* late = graph.add_value("late");
  auto branch = std::make_unique<Graph>("branch");
  branch->mark_output(branch->add_op("Relu", {late}, "r"));
  Node* node = graph.add_node("If", {condition}, {graph.add_value("y")});
  node->set_attribute({"then_branch", std::move(branch)});
  graph.add_node("Constant", {}, {late});
  ASSERT_OK(graph.sort());
  EXPECT_EQ(op_types(graph), (std::vector<std::string>{"Constant", "If"}));
}

// Deep recursion and quadratic searches would show here.
TEST(Graph, LongChainsAreLinear) {
  Graph graph;
  constexpr int length = 200000;
  Value* one = graph.add_initializer(scalar_tensor("one", 1.0f));
  Value* value = graph.add_input("x", floats({2}));
  for (int i = 0; i < length; ++i) value = graph.add_op("Mul", {value, one}, "Mul");
  ASSERT_OK(graph.sort());
  Value* two = graph.add_initializer(scalar_tensor("two", 2.0f));
  std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
  for (Node* node : nodes) node->set_input(1, two);
  std::reverse(nodes.begin(), nodes.end());
  for (Node* node : nodes) graph.erase(node);
  EXPECT_EQ(graph.node_count(), 0u);
  EXPECT_TRUE(two->uses().empty());
}

TEST(Graph, GoesWithSubgraphsThatCaptureWhatItsNodesUse) {
  Graph graph;
  Value* x = graph.add_input("x", floats({2}));
  Value* other = graph.add_input("other", floats({2}));
  Value* first = graph.add_op("Relu", {other}, "first");
  auto branch = std::make_unique<Graph>("branch");
  branch->add_op("Relu", {x}, "inner");
  Value* choice = graph.add_op("If", {other}, "choice");
  choice->producer()->set_attribute({"then_branch", std::move(branch)});
  first->producer()->set_input(0, x);  // now the last of the uses of x, by the node that goes first
  EXPECT_EQ(x->uses().size(), 2u);
}

TEST(Clone, IsDeepAndKeepsCaptures) {
  Model model;
  model.set_opset("", 17);
  Value* x = model.graph->add_input("x", floats({2}));
  Value* condition = model.graph->add_input("c", Type::tensor(DataType::boolean, Shape{}));
  auto branch = std::make_unique<Graph>("branch");
  branch->mark_output(branch->add_op("Relu", {x}, "r"));
  Node* node = model.graph->add_node("If", {condition}, {model.graph->add_value("y")});
  node->set_attribute({"then_branch", std::move(branch)});
  node->set_attribute({"axis", 1});
  model.graph->mark_output(node->output(0));

  const auto copy = clone(model);
  EXPECT_EQ(x->uses().size(), 1u);
  const Node* copied = copy->graph->nodes().front();
  EXPECT_EQ(copied->integer("axis", 0), 1);
  const Graph* inner = copied->subgraphs().front();
  EXPECT_EQ(inner->nodes().front()->input(0), copy->graph->find("x"));
  EXPECT_EQ(copy->graph->find("x")->uses().size(), 1u);
  EXPECT_EQ(copy->opset("ai.onnx"), 17);

  {
    const Attribute again = node->attribute("then_branch")->clone();
    EXPECT_EQ(x->uses().size(), 2u);
  }
  EXPECT_EQ(x->uses().size(), 1u);
}

TEST(Model, Opsets) {
  Model model;
  EXPECT_EQ(model.opset(), 0);
  model.set_opset("ai.onnx", 11);
  model.set_opset("", 17);
  model.set_opset("com.microsoft", 1);
  EXPECT_EQ(model.opset_imports.size(), 2u);
  EXPECT_EQ(model.opset(), 17);
  EXPECT_EQ(model.opset("com.microsoft"), 1);
}

TEST(Metadata, SetReplaces) {
  Metadata metadata;
  set(metadata, "a", "1");
  set(metadata, "b", "2");
  set(metadata, "a", "3");
  EXPECT_EQ(*find(metadata, "a"), "3");
  EXPECT_EQ(find(metadata, "c"), nullptr);
  EXPECT_EQ(metadata.size(), 2u);
}

}  // namespace
}  // namespace mk
