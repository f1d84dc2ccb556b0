#include "optimize/raise_opset.h"

#include "graph/shape_inference.h"
#include "graph/verifier.h"
#include "optimize/constants.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

std::string text(int opset, const std::string& body) {
  return "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) +
         "]>\ng (float[2, 3] x) => (float[2, 3] y) " + body;
}

TEST(RaiseOpset, RaisesWhereOperatorsMeanTheSame) {
  ASSERT_OK_AND(const auto model, testing::model_of_text(text(13, "{ a = Relu(x) y = Softmax(a) }")));
  model->ir_version = 7;
  EXPECT_EQ(cannot_raise_opset(*model, 17), std::nullopt);
  raise_opset(*model, 17);
  EXPECT_EQ(model->opset(), 17);
  EXPECT_EQ(model->ir_version, 8);
  raise_opset(*model, 13);
  EXPECT_EQ(model->opset(), 17);
}

TEST(RaiseOpset, NamesTheNodeThatChanges) {
  ASSERT_OK_AND(const auto model, testing::model_of_text(text(13, "{ y = ReduceMean<axes = [1]>(x) }")));
  EXPECT_EQ(cannot_raise_opset(*model, 17), std::nullopt);  // changes in 18
  const auto refused = cannot_raise_opset(*model, 18);
  ASSERT_TRUE(refused.has_value());
  EXPECT_NE(refused->find("ReduceMean changes in opset 18 (node ReduceMean -> y)"), std::string::npos) << *refused;
}

TEST(RaiseOpset, LooksIntoSubGraphs) {
  ASSERT_OK_AND(const auto model,
                testing::model_of_text("<ir_version: 8, opset_import: [\"\" : 13]>\n"
                                       "g (float[2, 3] x, bool c) => (float[2, 1] y) { y = If(c) <then_branch = t () "
                                       "=> (float[2, 1] p) { p = ReduceMax<axes = [1]>(x) }, else_branch = e () => "
                                       "(float[2, 1] q) { q = ReduceMax<axes = [1]>(x) }> }"));
  EXPECT_TRUE(cannot_raise_opset(*model, 18).has_value());
}

TEST(RaiseOpset, AxesAndSizesBecomeInputs) {
  ASSERT_OK_AND(const auto model,
                testing::model_of_text(text(11,
                                            "{ u = Unsqueeze<axes = [0]>(x) a, b = Split<axis = 2, split = [1, "
                                            "2]>(u) c = Concat<axis = 2>(a, b) s = Squeeze<axes = [0]>(c) d = "
                                            "Dropout<ratio = 0.1>(s) y = Softmax(d) }")));
  ASSERT_OK(infer_shapes(*model));
  ASSERT_EQ(cannot_raise_opset(*model, 17), std::nullopt);
  raise_opset(*model, 17);
  renew_nodes(*model, 11);
  ASSERT_OK(check_onnx(*model));  // by the schemas of opset 17
  EXPECT_EQ(integers_of(model->graph->find("a")->producer()->input(1)), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(integers_of(model->graph->find("s")->producer()->input(1)), (std::vector<std::int64_t>{0}));
  EXPECT_EQ(model->graph->find("y")->producer()->integer("axis", 0), -1);
}

TEST(RaiseOpset, LeavesWhatMeantSomethingElse) {
  ASSERT_OK_AND(const auto model,
                testing::model_of_text("<ir_version: 8, opset_import: [\"\" : 11]>\ng (float[2, 3, 4] "
                                       "x) => (float[2, 3, 4] y) { y = Softmax(x) }"));
  ASSERT_OK(infer_shapes(*model));  // it was the Softmax of 12 elements
  EXPECT_TRUE(cannot_raise_opset(*model, 17).has_value());
}

TEST(RaiseOpset, LeavesOldModels) {
  ASSERT_OK_AND(const auto model, testing::model_of_text(text(9, "{ y = Relu(x) }")));
  EXPECT_TRUE(cannot_raise_opset(*model, 17).has_value());
}

}  // namespace
}  // namespace mk
