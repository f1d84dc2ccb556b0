// Sub-graphs and model-local functions.

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/shape_inference.h"
#include "testing/onnx_text.h"

namespace mk {
namespace {

struct Inferred {
  std::unique_ptr<Model> model;
  InferenceReport report;

  static std::string in(const Graph& graph, std::string_view name) {
    if (const Value* value = graph.find(name)) return to_string(value->type);
    for (const Node* node : graph.nodes()) {
      for (const Graph* inner : node->subgraphs()) {
        if (const std::string found = in(*inner, name); !found.empty()) return found;
      }
    }
    return {};
  }
  std::string operator[](std::string_view name) const { return in(*model->graph, name); }
  bool notes(std::string_view node, std::string_view text) const {
    return std::any_of(report.notes.begin(), report.notes.end(), [&](const InferenceNote& note) {
      return note.node.find(node) != std::string::npos && note.message.find(text) != std::string::npos;
    });
  }
};

Inferred infer(const std::string& text, const std::string& imports = "\"\" : 17") {
  auto model = testing::model_of_text("<ir_version: 9, opset_import: [" + imports + "]>\n" + text);
  if (!model) {
    ADD_FAILURE() << model.error().to_string();
    return {std::make_unique<Model>(), {}};
  }
  auto report = infer_shapes(**model);
  if (!report) ADD_FAILURE() << report.error().to_string();
  return {std::move(*model), report ? std::move(*report) : InferenceReport{}};
}

const std::string with_functions = "\"\" : 17, \"local\" : 1";

TEST(Subgraphs, BranchesSeeOuterValuesAndAgreeOnTheirOutput) {
  const auto result = infer(R"(g (bool c, float[N, 4] x) => (float[] y) {
      twice = Add(x, x)
      y = If(c) <
        then_branch = then () => (float[] t) { inner = Relu(twice) t = Neg(inner) },
        else_branch = otherwise () => (float[] e) { e = Concat<axis = 0>(x, twice) }>
  })");
  EXPECT_EQ(result["inner"], "float32[N, 4]");
  EXPECT_EQ(result["e"], "float32[2*N, 4]");
  EXPECT_EQ(result["y"], "float32[unk__0, 4]");
}

TEST(Subgraphs, AKnownConditionTakesItsBranch) {
  const auto result = infer(R"(g (float[N, 4, 1] x) => (float[] y) {
      shape = Shape(x) two = Constant<value_int = 2>() last = Gather(shape, two) one = Constant<value_int = 1>()
      c = Equal(last, one)
      y = If(c) <
        then_branch = then () => (float[] t) { axes = Constant<value_ints = [2]>() t = Squeeze(x, axes) },
        else_branch = otherwise () => (float[] e) { e = Identity(x) }>
  })");
  EXPECT_EQ(result["y"], "float32[N, 4]");
}

TEST(Subgraphs, LoopsGiveStateAndScanOutputs) {
  const auto result = infer(R"(g (int64 m, bool c, float[N, 4] x) => (float[] y, float[] all) {
      y, all = Loop(m, c, x) <
        body = body (int64 i, bool go, float[N, 4] s) => (bool on, float[N, 4] next, float[] row) {
          on = Identity(go) next = Relu(s) row = ReduceMax<keepdims = 0, axes = [0]>(next) }>
  })");
  EXPECT_EQ(result["row"], "float32[4]");
  EXPECT_EQ(result["all"], "float32[unk__0, 4]");
}

TEST(Subgraphs, LoopStateKeepsTheShapeThatNoIterationChanges) {
  const auto result =
      infer(R"(g (int64 m, bool c, float[N, 4] x, float[2, 8] z) => (float[] y, float[] grown, float[] r) {
      y, grown, r = Loop(m, c, x, z, x) <
        body = body (int64 i, bool go, float[] s, float[] t, float[] u) => (bool on, float[] a, float[] b, float[] d) {
          on = Identity(go) a = Relu(s) b = Concat<axis = 0>(t, t) d = MatMul(u, u) }>
  })");
  EXPECT_EQ(result["y"], "float32[N, 4]");
  EXPECT_EQ(result["a"], "float32[N, 4]");
  EXPECT_EQ(result["grown"].substr(0, 13), "float32[unk__");
  EXPECT_TRUE(result["grown"].ends_with(", 8]")) << result["grown"];
  EXPECT_EQ(result["r"], "float32[N, 4]");
}

TEST(Subgraphs, ScanSplitsItsInput) {
  const auto result = infer(R"(g (float[3] zero, float[T, 3] x) => (float[] last, float[] all) {
      last, all = Scan(zero, x) <num_scan_inputs = 1,
        body = body (float[3] s, float[3] row) => (float[3] next, float[3] out) {
          next = Add(s, row) out = Identity(next) }>
  })");
  EXPECT_EQ(result["last"], "float32[3]");
  EXPECT_EQ(result["all"], "float32[T, 3]");
}

TEST(Subgraphs, ThoseOfUnknownOperatorsAreInferredToo) {
  const auto result = infer(R"(g (float[N, 4] x) => (float[] y) {
      y = local.Mystery(x) <body = body (float[2, 2] a) => (float[] b) { inner = Relu(a) b = MatMul(inner, a) }>
  })",
                            with_functions);
  EXPECT_EQ(result["b"], "float32[2, 2]");
  EXPECT_TRUE(result.notes("", "local:Mystery"));
}

TEST(Functions, AreInferredWithTheTypesOfEachCall) {
  const auto result = infer(R"(g (float[N, 4] x, float16[2, M] h) => (float[] y, float16[] z) {
      y = local.twice(x)
      z = local.twice(h)
  }
  <domain: "local", opset_import: ["" : 17]> twice (a) => (b) { t = Neg(a) b = Concat<axis = 0>(a, t) }
  )",
                            with_functions);
  EXPECT_EQ(result["y"], "float32[2*N, 4]");
  EXPECT_EQ(result["z"], "float16[4, M]");
  // The body is for all calls: it has no types of one.
  EXPECT_EQ(to_string(result.model->functions.at(0).body->find("t")->type), "?");
}

TEST(Functions, TakeAttributesAndTheirDefaults) {
  const auto result = infer(R"(g (float[N, 4] x) => (float[] y, float[] z) {
      y = local.join<axis = 1>(x)
      z = local.join(x)
  }
  <domain: "local", opset_import: ["" : 17]> join <axis: int = 0> (a) => (b) { b = Concat<axis: int = @axis>(a, a) }
  )",
                            with_functions);
  EXPECT_EQ(result["y"], "float32[N, 8]");
  EXPECT_EQ(result["z"], "float32[2*N, 4]");
}

TEST(Functions, PassValuesInAndOut) {
  const auto result = infer(R"(g (float[N, 4] x) => (float[] y) {
      shape = Shape(x)
      rows = local.first(shape)
      minus = Constant<value_ints = [-1]>()
      target = Concat<axis = 0>(minus, rows)
      y = Reshape(x, target)
  }
  <domain: "local", opset_import: ["" : 17]> first (s) => (r) {
      zero = Constant<value_ints = [0]>() r = Gather(s, zero) }
  )",
                            with_functions);
  EXPECT_EQ(result["y"], "float32[4, N]");
}

TEST(Functions, CallEachOtherButNotThemselves) {
  const auto result = infer(R"(g (float[N, 4] x) => (float[] y, float[] z) {
      y = local.outer(x)
      [again] z = local.loop(x)
  }
  <domain: "local", opset_import: ["" : 17, "local" : 1]> outer (a) => (b) { t = local.inner(a) b = Relu(t) }
  <domain: "local", opset_import: ["" : 17]> inner (a) => (b) { b = Transpose(a) }
  <domain: "local", opset_import: ["" : 17, "local" : 1]> loop (a) => (b) { b = local.loop(a) }
  )",
                            with_functions);
  EXPECT_EQ(result["y"], "float32[4, N]");
  EXPECT_EQ(result["z"], "float32[...]");
  EXPECT_TRUE(result.notes("again", "calls itself"));
}

TEST(Functions, WhoseCallsMultiplyEndInTime) {
  std::string functions;
  for (int i = 0; i < 60; ++i) {
    const std::string next = i == 59 ? "Relu" : "local.f" + std::to_string(i + 1);
    functions += "<domain: \"local\", opset_import: [\"\" : 17, \"local\" : 1]> f" + std::to_string(i) +
                 " (a) => (b) { t = " + next + "(a) b = " + next + "(t) }\n";
  }
  const auto result = infer("g (float[N] x) => (float[] y) { y = local.f0(x) }\n" + functions, with_functions);
  EXPECT_TRUE(result.notes("", "nested too often"));
}

TEST(Functions, LeaveOutOptionalInputs) {
  const auto result = infer(R"(g (float[N, 4] x) => (float[] y) { y = local.clip(x) }
  <domain: "local", opset_import: ["" : 17]> clip (a, low) => (b) { b = Clip(a, low) }
  )",
                            with_functions);
  EXPECT_EQ(result["y"], "float32[N, 4]");
}

}  // namespace
}  // namespace mk
