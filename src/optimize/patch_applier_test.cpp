#include "optimize/patch_applier.h"

#include <set>

#include "graph/onnx_writer.h"
#include "graph/verifier.h"
#include "optimize/constants.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

class PatchApplierTest : public ::testing::Test {
 protected:
  void graph(const std::string& text) {
    ASSERT_OK_AND(model_, testing::model_of_text("<ir_version: 8, opset_import: [\"\" : 17]>\n" + text));
    ASSERT_OK(infer_shapes(*model_));
    index_ = std::make_unique<NodeIndex>(*model_->graph);
    applier_ = std::make_unique<PatchApplier>(*model_, *index_);
  }
  Value* value(const char* name) { return model_->graph->find(name); }
  Node& node(const char* output) { return *value(output)->producer(); }

  // That the patch is refused for this reason and changes not a byte.
  void expect_refused(Patch patch, const char* anchor, const std::string& reason) {
    ASSERT_OK_AND(const std::string before, serialize_onnx(*model_));
    const std::size_t nodes = index_->size();
    const auto refused = applier_->apply(std::move(patch), node(anchor));
    ASSERT_TRUE(refused.has_value());
    EXPECT_NE(refused->find(reason), std::string::npos) << *refused;
    ASSERT_OK_AND(const std::string after, serialize_onnx(*model_));
    EXPECT_EQ(before, after);
    EXPECT_EQ(index_->size(), nodes);
    EXPECT_OK(verify(*model_));
  }
  static void EXPECT_OK(const Status& status) {
    EXPECT_TRUE(status.has_value()) << (status ? std::string() : status.error().to_string());
  }

  std::unique_ptr<Model> model_;
  std::unique_ptr<NodeIndex> index_;
  std::unique_ptr<PatchApplier> applier_;
};

TEST_F(PatchApplierTest, ReplacesAndSweeps) {
  graph("g (float[2] x) => (float[2] y) <float w = {2}> { a = Mul(x, w) b = Exp(a) y = Neg(b) }");
  node("b").name = "exp";
  Patch patch(17);
  patch.replace(value("b"), patch.op("Tanh", {value("x")}));
  EXPECT_EQ(applier_->apply(std::move(patch), node("b")), std::nullopt);
  EXPECT_EQ(model_->graph->node_count(), 2u);  // Mul went with its weight
  EXPECT_EQ(value("w"), nullptr);
  EXPECT_EQ(node("y").input(0)->producer()->name, "exp");
  EXPECT_EQ(index_->of("Mul").front(), nullptr);
  EXPECT_OK(verify(*model_));
}

TEST_F(PatchApplierTest, AGraphOutputKeepsItsName) {
  graph("g (float[N, 2] x) => (float[N, 2] y) { y = Exp(x) }");
  Patch patch(17);
  patch.replace(value("y"), patch.op("Tanh", {value("x")}));
  EXPECT_EQ(applier_->apply(std::move(patch), node("y")), std::nullopt);
  EXPECT_EQ(model_->graph->outputs().front()->name(), "y");
  EXPECT_EQ(node("y").op_type, "Tanh");
  EXPECT_EQ(to_string(value("y")->type), "float32[N, 2]");
}

TEST_F(PatchApplierTest, NodesGetNamesOfTheirOwn) {
  graph("g (float[2] x) => (float[2] y) { y = Exp(x) }");
  node("y").name = "n";
  Patch patch(17);
  patch.replace(value("y"), patch.op("Tanh", {patch.op("Tanh", {patch.op("Tanh", {value("x")})})}));
  EXPECT_EQ(applier_->apply(std::move(patch), node("y")), std::nullopt);
  EXPECT_EQ(node("y").name, "n");
  std::set<std::string> names;
  for (const Node* made : model_->graph->nodes()) names.insert(made->name);
  EXPECT_EQ(names.size(), 3u);
}

TEST_F(PatchApplierTest, RefusesAnotherType) {
  graph("g (float[2] x) => (float[2] y) { a = Exp(x) y = Neg(a) }");
  Patch patch(17);
  patch.replace(value("a"), patch.op("Cast", {value("x")}).with("to", 10));
  expect_refused(std::move(patch), "a", "makes float16[2] where there is float32[2]");
}

TEST_F(PatchApplierTest, RefusesAnotherShape) {
  graph("g (float[2, 3] x) => (float[2, 3] y) { a = Exp(x) y = Neg(a) }");
  Patch patch(17);
  patch.replace(value("a"), patch.op("Transpose", {value("x")}));
  expect_refused(std::move(patch), "a", "float32[3, 2]");
}

TEST_F(PatchApplierTest, RefusesANodeThatCannotRun) {
  graph("g (float[2, 3] x, float[2, 3] z) => (float[2, 3] y) { a = Exp(x) y = Neg(a) }");
  Patch patch(17);
  patch.replace(value("a"), patch.op("MatMul", {value("x"), value("z")}));
  expect_refused(std::move(patch), "a", "cannot run");
}

TEST_F(PatchApplierTest, ARefusedPatchImportsNoDomain) {
  graph("g (float[2] x) => (float[2] y) { y = Identity(x) }");
  Patch patch(17);
  patch.op("com.microsoft.Gelu", {value("x")}).like(value("y"));
  patch.replace(value("y"), value("x"));
  expect_refused(std::move(patch), "y", "would rename x");
}

TEST_F(PatchApplierTest, RefusesToRenameAnInput) {
  graph("g (float[2] x) => (float[2] y) { y = Identity(x) }");
  Patch patch(17);
  patch.replace(value("y"), value("x"));
  expect_refused(std::move(patch), "y", "would rename x");
}

TEST_F(PatchApplierTest, RefusesToMergeTwoOutputs) {
  graph("g (float[2] x) => (float[2] y, float[2] z) { y = Exp(x) z = Exp(x) }");
  Patch patch(17);
  patch.replace(value("z"), value("y"));
  expect_refused(std::move(patch), "z", "would rename y");
}

TEST_F(PatchApplierTest, RefusesAnInputThatANodeCannotTake) {
  graph("g (float[2, 3] x, float[3, 4] w, float[2, 4] v) => (float[2, 4] y) { y = MatMul(x, w) }");
  Patch patch(17);
  patch.set_input(&node("y"), 1, value("v"));
  patch.set_attribute(&node("y"), Attribute("extra", 1));
  expect_refused(std::move(patch), "y", "cannot run");
}

TEST_F(PatchApplierTest, ChangesInputsAndAttributes) {
  graph("g (float[N, 6] x) => (float[N, 2, 3] y) <int64[3] s = {-1, 2, 3}> { y = Reshape(x, s) }");
  Patch patch(17);
  patch.set_input(&node("y"), 1, patch.integers({0, 2, 3}));
  patch.set_attribute(&node("y"), Attribute("allowzero", 0));
  EXPECT_EQ(applier_->apply(std::move(patch), node("y")), std::nullopt);
  EXPECT_EQ(value("s"), nullptr);
  EXPECT_EQ(integers_of(node("y").input(1)), (std::vector<std::int64_t>{0, 2, 3}));
  EXPECT_NE(node("y").attribute("allowzero"), nullptr);
  EXPECT_OK(verify(*model_));
}

TEST_F(PatchApplierTest, WorksInsideSubGraphs) {
  graph(
      "g (float[2] x, bool c) => (float[2] y) { k = Neg(x) y = If(c) <then_branch = t () => (float[2] p) { a = Exp(k) "
      "p "
      "= Neg(a) }, else_branch = e () => (float[2] q) { q = Abs(x) }> }");
  Graph& branch = *node("y").subgraphs().front();
  Value* a = branch.find("a");
  Patch patch(17);
  patch.replace(a, patch.op("Tanh", {value("x")}));
  EXPECT_EQ(applier_->apply(std::move(patch), *a->producer()), std::nullopt);
  EXPECT_EQ(branch.node_count(), 2u);
  EXPECT_EQ(value("k"), nullptr);  // only the branch used it
  EXPECT_OK(verify(*model_));
}

}  // namespace
}  // namespace mk
