#include "graph/model_acceptance.h"

#include <gtest/gtest.h>

#include "graph/verifier.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

std::unique_ptr<Model> model_of(const std::string& graph, const std::string& imports = "\"\" : 17") {
  auto model = testing::model_of_text("<ir_version: 8, opset_import: [" + imports + "]>\n" + graph);
  if (!model) ADD_FAILURE() << model.error().to_string();
  return model ? std::move(*model) : nullptr;
}

std::string refusal(const std::string& graph, const std::string& imports = "\"\" : 17") {
  const auto accepted = accept_model(*model_of(graph, imports));
  if (accepted) return "accepted";
  EXPECT_EQ(exit_code(accepted.error().code), 3);
  return accepted.error().message;
}

TEST(AcceptModel, WhatIsRightStaysAsItIs) {
  const auto model = model_of("g (float[N, 4] x) => (float[N, 4] y) { h = Relu(x) y = Neg(h) }");
  ASSERT_OK_AND(const Acceptance accepted, accept_model(*model));
  EXPECT_FALSE(accepted.mended);
  EXPECT_TRUE(accepted.warnings.empty());
  EXPECT_EQ(model->graph->find("h")->type.kind, Type::Kind::none);  // the model does not state it
}

// Each of them is refused by ONNX Runtime 1.32, at the latest when it runs.
TEST(AcceptModel, RefusesWhatCannotRun) {
  EXPECT_EQ(refusal("g (float[2] x) => (float y) { y = Cast(x) }"), "Cast: its attribute to is missing");
  EXPECT_EQ(refusal("g (float[1, 3, 8, 8] x) => (float y) { y = Conv(x) }"), "Conv: Conv does not take 1 inputs");
  EXPECT_NE(refusal("g (float[4] x) => (float[5] a, float[5] b)"
                    "<int64[2] s = {5, 5}> { a, b = Split(x, s) }")
                .find("Mismatch between the sum of 'split' (10)"),
            std::string::npos);
  EXPECT_NE(refusal("g (float[4] x) => (float y) <int64[1] a = {0}, int64[1] b = {4}, int64[1] step = {0}>"
                    "{ y = Slice(x, a, b, a, step) }")
                .find("'step' cannot be 0"),
            std::string::npos);
  EXPECT_NE(refusal("g (float[4] x, int64[1] i) => (float y) { y = Gather<axis = 3>(x, i) }").find("axis must be in"),
            std::string::npos);
  EXPECT_NE(refusal("g (float[3, 2] x) => (float[2, 3] y) { y = Transpose<perm = [0, 5]>(x) }").find("perm {0, 5}"),
            std::string::npos);
  EXPECT_EQ(refusal("g (float[1, 3, 8, 8] x, float[4, 3, 3, 3] w) => (float y) { y = Conv<group = 0>(x, w) }"),
            "Conv: a group of 0");
  EXPECT_EQ(refusal("g (float[1, 4, 8, 8] x, float[4, 3, 3, 3] w) => (float y) { y = Conv(x, w) }"),
            "Conv: an input of 4 channels for weights that take 3");
  EXPECT_EQ(refusal("g (float[4] x) => (float[4] y) { y = Relu<slope = 2>(x) }").substr(0, 14), "ONNX's checker");
  EXPECT_EQ(refusal("g (float[4] x) => (float[4] y) { y = FooBar(x) }"), "ai.onnx 17 has no operator FooBar");
  EXPECT_EQ(refusal("g (float[3] x) => (int64[3] y) { y = Relu(x) }"),
            "the output y is declared as int64[3] but is float32[3]");
  EXPECT_EQ(refusal("g (float[3] x) => (float[3] y) { y = Relu(x) }", "\"\" : 99"),
            "the model has operators of version 99 of ai.onnx");
  EXPECT_EQ(refusal("g (float[3] x) => () { y = Relu(x) }"), "the model has no output");
  const auto untyped = model_of("g (float[3] x) => (float[3] y) { y = Relu(x) }");
  untyped->graph->find("x")->type = {};
  const auto accepted = accept_model(*untyped);
  ASSERT_FALSE(accepted);
  EXPECT_EQ(accepted.error().message, "the input has no type");
  EXPECT_EQ(accepted.error().where, "input x");
}

TEST(AcceptModel, OperatorsOfTheRuntimeAreNoFault) {
  const auto model = model_of(
      "g (float[2, 4] x, float[4] s) => (float[2, 4] y) { h = SimplifiedLayerNormalization(x, s) y = Relu(h) }");
  ASSERT_OK(accept_model(*model));
  ASSERT_OK(accept_model(
      *model_of("g (float[2, 4] x, float[4] s) => (float[2, 4] y) { y = LayerNormalization(x, s) }", "\"\" : 13")));
  ASSERT_OK(accept_model(
      *model_of("g (float[2] x) => (float[2] y) { y = my.domain.Foo(x) }", "\"\" : 17, \"my.domain\" : 1")));
}

// onnx.checker.check_model(full_check=True) refuses all of these before, and none after.
TEST(AcceptModel, MendsWhatRuntimesOverlook) {
  const auto model = model_of("g (float[2, 3] x) => (float[2, 9] y, float z) { y = Relu(x) z = Neg(x) }");
  Graph& graph = *model->graph;
  graph.name.clear();
  graph.find("z")->type = {};
  for (Node* node : graph.nodes()) node->name = "twin";
  model->metadata = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
  ASSERT_FALSE(check_onnx(*model));
  ASSERT_OK_AND(const Acceptance accepted, accept_model(*model));
  EXPECT_TRUE(accepted.mended);
  EXPECT_EQ(accepted.warnings,
            (std::vector<std::string>{"1 keys of the model's metadata were there twice: the last value counts",
                                      "the output y is declared as float32[2, 9] but is float32[2, 3]: corrected"}));
  EXPECT_EQ(to_string(graph.find("z")->type), "float32[2, 3]");
  EXPECT_EQ(graph.nodes().front()->name, "twin");
  EXPECT_EQ(graph.nodes().back()->name, "twin_2");
  EXPECT_EQ(model->metadata, (Metadata{{"b", "2"}, {"a", "3"}}));
  ASSERT_OK(check_onnx(*model));
}

// A symbol for a size that is declared is no contradiction.
TEST(AcceptModel, SizesAndSymbolsAgree) {
  ASSERT_OK_AND(const Acceptance accepted,
                accept_model(*model_of("g (float[N, M] x) => (float[N, 4] y) { y = Relu(x) }")));
  EXPECT_TRUE(accepted.warnings.empty());
}

}  // namespace
}  // namespace mk
