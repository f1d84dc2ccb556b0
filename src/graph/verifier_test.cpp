#include "graph/verifier.h"

#include <functional>

#include "testing/testing.h"

namespace mk {
namespace {

Type floats() { return Type::tensor(DataType::float32, static_shape({2})); }

// x -> Neg -> If(c){ Abs(y) } -> z, with an initializer and a function.
std::unique_ptr<Model> valid_model() {
  auto model = std::make_unique<Model>();
  model->set_opset("", 17);
  Graph& graph = *model->graph;
  graph.name = "main";
  Value* x = graph.add_input("x", floats());
  Value* condition = graph.add_input("c", Type::tensor(DataType::boolean, Shape{}));
  Value* w = graph.add_initializer(scalar_tensor("w", 1.0f));
  Value* y = graph.add_op("Mul", {x, w}, "y");
  y->producer()->name = "mul";
  auto branch = std::make_unique<Graph>("branch");
  branch->mark_output(branch->add_op("Abs", {y}, "a"));
  Node* node = graph.add_node("If", {condition}, {graph.add_value("z")});
  node->name = "if";
  node->set_attribute({"then_branch", std::move(branch)});
  graph.mark_output(node->output(0));
  Function& function = model->functions.emplace_back();
  function.name = "F";
  function.domain = "local";
  function.opset_imports = {{"", 17}};
  function.body = std::make_unique<Graph>("F");
  Value* in = function.body->add_input("in", {});
  Value* out = function.body->add_op("LeakyRelu", {in}, "out");
  Attribute alpha;
  alpha.name = "alpha";
  alpha.kind = Attribute::Kind::real;
  alpha.reference = "alpha";
  out->producer()->set_attribute(std::move(alpha));
  function.body->mark_output(out);
  return model;
}

TEST(Verifier, AcceptsWhatIsRight) { ASSERT_OK(verify(*valid_model())); }

struct Fault {
  const char* expected;
  std::function<void(Model&)> inflict;
};

TEST(Verifier, NamesEveryFault) {
  const auto node = [](Model& m, const char* output) { return m.graph->find(output)->producer(); };
  const Fault faults[] = {
      {"the domain \"com.microsoft\" of Mul is not imported (node mul)",
       [&](Model& m) { node(m, "y")->domain = "com.microsoft"; }},
      {"the input z is not defined before the node (node mul)",
       [&](Model& m) { node(m, "y")->set_input(1, m.graph->find("z")); }},
      {"the input ghost is not defined before the node (node mul)",
       [&](Model& m) { node(m, "y")->set_input(1, m.graph->add_value("ghost")); }},
      {"the input a is not in scope (node mul)",
       [&](Model& m) { node(m, "y")->set_input(1, node(m, "z")->subgraphs()[0]->find("a")); }},
      {"not defined before the node (node Abs -> a)",
       [&](Model& m) { m.graph->move_before(node(m, "z"), node(m, "y")); }},
      {"no operator (node mul)", [&](Model& m) { node(m, "y")->op_type.clear(); }},
      {"is a value of another graph (graph branch). Return it through an Identity node",
       [&](Model& m) { node(m, "z")->subgraphs()[0]->set_output(0, m.graph->find("y")); }},
      {"nothing defines the output ghost (graph main)",
       [](Model& m) { m.graph->mark_output(m.graph->add_value("ghost")); }},
      {"the output x has the name of a value outside the sub-graph (node Abs -> x)",
       [&](Model& m) {
         Graph& inner = *node(m, "z")->subgraphs()[0];
         inner.rename(inner.find("a"), "x");
       }},
      {"4 bytes of data where its shape says 12 (tensor w)",
       [](Model& m) { m.graph->find("w")->initializer()->dims = {3}; }},
      {"no data (tensor w)", [](Model& m) { m.graph->find("w")->initializer()->data = nullptr; }},
      {"the attribute k has a value of another kind (node mul)",
       [&](Model& m) {
         node(m, "y")->set_attribute({"k", 1});
         node(m, "y")->attributes()[0].kind = Attribute::Kind::real;
       }},
      {"the attribute k is there twice (node mul)",
       [&](Model& m) {
         node(m, "y")->append_attribute({"k", 1});
         node(m, "y")->append_attribute({"k", 2});
       }},
      {"refers to alpha outside a function (node mul)",
       [&](Model& m) {
         Attribute attribute;
         attribute.name = "k";
         attribute.reference = "alpha";
         node(m, "y")->set_attribute(std::move(attribute));
       }},
      {"there are two of this function (function local.F)",
       [](Model& m) { m.functions.push_back(std::move(clone(m)->functions.front())); }},
      {"(function local.F, node LeakyRelu -> out)", [](Model& m) { m.functions[0].opset_imports.clear(); }},
  };
  for (const Fault& fault : faults) {
    auto model = valid_model();
    fault.inflict(*model);
    const Status status = verify(*model);
    ASSERT_FALSE(status.has_value()) << fault.expected;
    EXPECT_EQ(status.error().code, ErrorCode::malformed);
    EXPECT_NE(status.error().to_string().find(fault.expected), std::string::npos) << status.error().to_string();
  }
}

TEST(Verifier, MissingExternalDataIsNoFault) {
  auto model = valid_model();
  Tensor& tensor = *model->graph->find("w")->initializer();
  tensor.data = nullptr;
  tensor.external = {{"location", "w.bin"}};
  ASSERT_OK(verify(*model));
}

}  // namespace
}  // namespace mk
