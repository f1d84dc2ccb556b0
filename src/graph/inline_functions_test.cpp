#include "graph/inline_functions.h"

#include <gtest/gtest.h>

#include "graph/verifier.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::model_of_text;

std::vector<std::string> operators(const Model& model) {
  std::vector<std::string> types;
  for (const Node* node : model.graph->nodes()) types.push_back(node->op_type);
  return types;
}

// The call's attribute, else the default, else none; inputs that are left out; names of their own.
TEST(InlineFunctions, BindsAttributesAndInputs) {
  ASSERT_OK_AND(auto model, model_of_text(R"(<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
g (float[2] x) => (float[2] y, float[2] z) {
  [one] y = local.f<axis = 1>(x)
  z = local.f(y)
}
<domain: "local", opset_import: ["" : 17]>
f<axis: int = 7, other> (p, low) => (r) {
  [cat] a = Concat<axis: int = @axis>(p, p)
  b = Softmax<axis: int = @other>(a)
  r = Clip(b, low)
}
)"));
  const InliningReport report = inline_functions(*model);
  EXPECT_EQ(report.inlined, 2u);
  EXPECT_EQ(report.left, 0u);
  ASSERT_OK(verify(*model));
  EXPECT_TRUE(model->functions.empty());
  EXPECT_EQ(operators(*model), (std::vector<std::string>{"Concat", "Softmax", "Clip", "Concat", "Softmax", "Clip"}));
  const Node& first = *model->graph->nodes().front();
  EXPECT_EQ(first.integer("axis", 0), 1);
  EXPECT_EQ(first.name, "one/cat");
  EXPECT_EQ(model->graph->find("z")->producer()->inputs().size(), 1u);
  const Node* softmax = model->graph->find("z")->producer()->input(0)->producer();
  EXPECT_EQ(softmax->attribute("axis"), nullptr);
  EXPECT_EQ(softmax->input(0)->producer()->integer("axis", 0), 7);
}

// An output that is an input, the same one twice, and both outputs of the graph.
TEST(InlineFunctions, PassesValuesThrough) {
  ASSERT_OK_AND(auto model, model_of_text(R"(<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
g (float[2] x) => (float[2] y, float[2] z, float[2] w) { y, z, w = local.f(x) }
<domain: "local", opset_import: ["" : 17]>
f (p) => (p, q, q) { q = Neg(p) }
)"));
  EXPECT_EQ(inline_functions(*model).inlined, 1u);
  ASSERT_OK(verify(*model));
  EXPECT_EQ(operators(*model), (std::vector<std::string>{"Neg", "Identity", "Identity"}));
  for (const char* name : {"y", "z", "w"}) EXPECT_TRUE(model->graph->find(name)->is_graph_output()) << name;
}

// Calls in branches and in functions; a branch of a function that captures its input.
TEST(InlineFunctions, NestedCallsAndBranches) {
  ASSERT_OK_AND(auto model, model_of_text(R"(<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
g (float[2] x, bool b) => (float[2] y) {
  t = Neg(x)
  y = If(b) <then_branch = g1 () => (float[2] r) { r = local.f(t, b) }, else_branch = g2 () => (float[2] t2) { t2 = Abs(t) }>
}
<domain: "local", opset_import: ["" : 17, "local" : 1]>
f (p, c) => (r) {
  t = local.h(p)
  r = If(c) <then_branch = g3 () => (u) { u = Add(t, p) }, else_branch = g4 () => (u) { u = local.h(p) }>
}
<domain: "local", opset_import: ["" : 17]>
h (p) => (t) { t = Exp(p) }
)"));
  EXPECT_EQ(inline_functions(*model).inlined, 3u);
  ASSERT_OK(verify(*model));
  EXPECT_TRUE(model->functions.empty());
}

TEST(InlineFunctions, LeavesWhatItCannotInline) {
  ASSERT_OK_AND(auto model, model_of_text(R"(<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
g (float[2] x) => (float[2] y) { y = local.old(x) }
<domain: "local", opset_import: ["" : 13]>
old (p) => (r) { r = Exp(p) }
<domain: "local", opset_import: ["" : 17]>
unused (p) => (r) { r = Exp(p) }
)"));
  const InliningReport report = inline_functions(*model);
  EXPECT_EQ(report.inlined, 0u);
  EXPECT_EQ(report.left, 1u);
  ASSERT_EQ(model->functions.size(), 1u);
  EXPECT_EQ(model->functions[0].name, "old");
}

}  // namespace
}  // namespace mk
