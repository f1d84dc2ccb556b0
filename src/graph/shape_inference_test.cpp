// Right values are those of ONNX Runtime 1.32 and numpy on the same graphs, or follow from the operators'
// specifications; the faults that users reported of other tools come first.

#include "graph/shape_inference.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/onnx_reader.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::model_of_text;

struct Inferred {
  std::unique_ptr<Model> model;
  Result<InferenceReport> report;

  std::string operator[](std::string_view name) const {
    const Value* value = model->graph->find(name);
    return value ? to_string(value->type) : "(no such value)";
  }
  bool notes(std::string_view node, std::string_view text) const {
    return report && std::any_of(report->notes.begin(), report->notes.end(), [&](const InferenceNote& note) {
             return note.node.find(node) != std::string::npos && note.message.find(text) != std::string::npos;
           });
  }
};

// A graph in ONNX's text syntax, with IR 8 and opset 17 (or another).
Inferred infer(const std::string& graph, int opset = 17, const std::string& imports = {}) {
  const std::string head = "<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) + imports + "]>\n";
  auto model = model_of_text(head + graph);
  if (!model) {
    ADD_FAILURE() << model.error().to_string();
    return {std::make_unique<Model>(), InferenceReport{}};
  }
  auto report = infer_shapes(**model);
  return {std::move(*model), std::move(report)};
}

// What a Reshape of a float[`input`] to `target` gives: its type, or the error.
std::string reshaped(const std::string& input, const std::string& target, bool allow_zero = false) {
  const auto count = std::to_string(1 + std::count(target.begin(), target.end(), ','));
  const auto result = infer("g (float[" + input + "] x) => (float[] y) <int64[" + count + "] s = {" + target + "}> " +
                            "{ [reshape_it] y = Reshape<allowzero = " + (allow_zero ? "1" : "0") + ">(x, s) }");
  return result.report ? result["y"] : result.report.error().to_string();
}

void expect_refused(const std::string& outcome, std::string_view why) {
  EXPECT_NE(outcome.find("reshape_it"), std::string::npos) << outcome;
  EXPECT_NE(outcome.find(why), std::string::npos) << outcome;
}

TEST(ReshapeInference, ZerosAreHonouredWithAllowzero) {  // S1
  EXPECT_EQ(reshaped("0, 8, 2", "0, 0, 4", true), "float32[0, 0, 4]");
  EXPECT_EQ(reshaped("0, 4", "3, 0", true), "float32[3, 0]");
  EXPECT_EQ(reshaped("N, 4", "0, 4", true), "float32[0, 4]");
  EXPECT_EQ(reshaped("0, 4", "0, 0, 3"), "float32[0, 4, 3]");
}

TEST(ReshapeInference, MinusOneIsWhatTheCopiedDimensionsLeave) {  // S2
  EXPECT_EQ(reshaped("2, 3, 4", "0, -1"), "float32[2, 12]");
  EXPECT_EQ(reshaped("N, 3, 4", "0, -1"), "float32[N, 12]");
  EXPECT_EQ(reshaped("N, 3, 4", "-1, 4"), "float32[3*N, 4]");
  EXPECT_EQ(reshaped("N, M, 768", "0, 0, 12, -1"), "float32[N, M, 12, 64]");
  EXPECT_EQ(reshaped("N, M, 4", "-1, 4"), "float32[M*N, 4]");
  EXPECT_EQ(reshaped("?, 3, 4", "0, -1"), "float32[unk__0, 12]");
  expect_refused(reshaped("2, 3, 4", "0, -1", true), "allowzero");
}

TEST(ReshapeInference, NoNegativeDimensionStays) {        // S4
  EXPECT_EQ(reshaped("0, 4", "-1, 0"), "float32[0, 4]");  // position 1 copies the 4; 0 elements leave 0
  expect_refused(reshaped("2, 3", "-2, 3"), "negative");
  expect_refused(reshaped("2, 3", "-1, -1"), "more than one");
  expect_refused(reshaped("4, 0", "-1, 0"), "cannot be reshaped");
  expect_refused(reshaped("0, 4", "0, -1"), "cannot be reshaped");
  expect_refused(reshaped("0, 4", "-1, 0", true), "allowzero");
}

TEST(ReshapeInference, ElementCountsMustAgree) {
  expect_refused(reshaped("2, 3", "4"), "[2, 3]");
  expect_refused(reshaped("2, 3", "4, -1"), "cannot be reshaped");
  expect_refused(reshaped("2, 3", "2, 3, 0"), "position 2");
  expect_refused(reshaped("0, 4", "2, 0, 3"), "cannot be reshaped");
  EXPECT_EQ(reshaped("N, 3", "4, 5"), "float32[4, 5]");
}

TEST(ReshapeInference, UnknownTargetsGiveTheRank) {  // S9
  const auto result = infer("g (float[N, 4] x, int64[3] s) => (float[] y) { y = Reshape(x, s) }");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["y"], "float32[unk__0, unk__1, unk__2]");
}

TEST(ShapeInference, InitializerWinsOverTheInputOfItsName) {  // S6
  auto result = infer("g (float[N, 256] x, float[2] w) => (float[] y) <float[4] w = {1, 2, 3, 4}> { y = Identity(w) }");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["w"], "float32[4]");
  EXPECT_EQ(result["y"], "float32[4]");
}

TEST(ShapeInference, NegativeDimensionsOfInputsBecomeSymbols) {  // S7
  auto model =
      model_of_text("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2, 4] x) => (float[] y) { y = Relu(x) }");
  ASSERT_OK(model);
  (*model)->graph->find("x")->type.shape = Shape{Dim{-1, {}, {}}, Dim::known(4)};
  ASSERT_OK(infer_shapes(**model));
  EXPECT_EQ(to_string((*model)->graph->find("x")->type), "float32[unk__0, 4]");
  EXPECT_EQ(to_string((*model)->graph->find("y")->type), "float32[unk__0, 4]");
}

TEST(ShapeInference, AnExpandThatCannotBeIsANoteAndTheRestGoesOn) {  // S9
  const auto result = infer(R"(g (float[3] x, float[N, 4] z) => (float[] y, float[] w) <int64[1] s = {2}> {
      [grow] y = Expand(x, s)
      w = Relu(z)
  })");
  ASSERT_OK(result.report);
  EXPECT_TRUE(result.notes("grow", "Expand"));
  EXPECT_EQ(result["y"], "float32[...]");
  EXPECT_EQ(result["w"], "float32[N, 4]");
}

// As RoBERTa's segment ids are exported: the first tokens of a buffer, for the whole batch.
TEST(ShapeInference, ASliceThatIsExpandedToItsOwnEnd) {
  const auto result =
      infer(R"(g (int64[N, T] ids) => (int64[] y) <int64[1, 4] buffer = {0, 0, 0, 0}, int64[1] zero = {0},
          int64[1] one = {1}, int64[1] two = {2}> {
      shape = Shape(ids)
      length = Slice(shape, one, two, zero)
      first = Slice(buffer, zero, length, one)
      y = Expand(first, shape)
  })");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["first"], "int64[1, min(4, T)]");
  EXPECT_EQ(result["y"], "int64[N, T]");
}

TEST(ShapeInference, DimensionsThatCannotMatchNameTheNode) {
  for (const char* node : {"y = Add(a, b)", "y = MatMul(a, b)", "y = Concat<axis = 1>(a, b)", "y = Where(c, a, b)"}) {
    const auto result =
        infer("g (float[2, 3] a, float[4, 3] b, bool[1] c) => (float[] y) { [the_node] " + std::string(node) + " }");
    ASSERT_FALSE(result.report) << node;
    EXPECT_EQ(result.report.error().code, ErrorCode::malformed);
    EXPECT_EQ(result.report.error().where, "the_node");
  }
}

TEST(ShapeInference, ImpossibleNodesOfBranchesAreOnlyNotes) {
  const auto result = infer(R"(g (bool c, float[2, 3] a, float[4, 3] b) => (float[] y) {
      y = If(c) <
        then_branch = then () => (float[] t) { [sum] t = Add(a, b) },
        else_branch = otherwise () => (float[] e) { e = Relu(a) }>
  })");
  ASSERT_OK(result.report);
  EXPECT_TRUE(result.notes("sum", "Incompatible dimensions"));
}

TEST(ShapeInference, DeclaredTypesOfUnknownOperatorsAreUsedButNotBelieved) {
  const auto result = infer(R"(g (float[2, 3] a) => (float[] y) <float[4, 3] b> {
      b = com.microsoft.Mystery(a)
      c = com.microsoft.Mystery(b)
      y = Add(a, b)
  })",
                            17, ", \"com.microsoft\" : 1");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["b"], "float32[4, 3]");
  EXPECT_TRUE(result.notes("", "com.microsoft:Mystery"));
  EXPECT_EQ(std::count_if(result.report->notes.begin(), result.report->notes.end(),
                          [](const InferenceNote& note) { return note.message.find("Mystery") != std::string::npos; }),
            1);
}

TEST(ShapeInference, StaleDeclarationsGiveWay) {
  const auto result = infer(R"(g (float[batch, 3] x) => (float[1, 6] y) <float[1, 3] a, float16[7] b> {
      a = Relu(x)
      b = Sigmoid(a)
      y = Concat<axis = 1>(a, b)
  })");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["a"], "float32[batch, 3]");
  EXPECT_EQ(result["b"], "float32[batch, 3]");
  EXPECT_EQ(result["y"], "float32[batch, 6]");
  EXPECT_TRUE(result.notes("a", "declared as float32[1, 3]"));
}

TEST(ShapeInference, DeclarationsCompleteWhatIsNotInferred) {
  const auto result = infer(R"(g (float[N, 3] x, int64[2] s) => (float[M, 8] y) <float[?, 8] a> {
      a = Reshape(x, s)
      y = Relu(a)
  })");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["a"], "float32[unk__0, 8]");
  EXPECT_EQ(result["y"], "float32[M, 8]");
}

TEST(ShapeInference, OutputsKeepTheNamesOfTheirDimensions) {
  const auto result = infer("g (float[batch, 3] x) => (float[rows, 3] y) { a = Relu(x) y = Relu(a) }");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["a"], "float32[batch, 3]");
  EXPECT_EQ(result["y"], "float32[rows, 3]");
}

TEST(ShapeInference, RepeatingItChangesNothing) {
  auto result = infer(R"(g (float[N, ?] x, int64[2] s) => (float[] y) {
      a = Reshape(x, s)
      b = NonZero(a)
      c = Gather(a, b)
      y = Relu(c)
  })");
  ASSERT_OK(result.report);
  std::vector<std::string> before;
  for (const char* name : {"x", "a", "b", "c", "y"}) before.push_back(result[name]);
  ASSERT_OK(infer_shapes(*result.model));
  std::vector<std::string> after;
  for (const char* name : {"x", "a", "b", "c", "y"}) after.push_back(result[name]);
  EXPECT_EQ(before, after);
}

TEST(ShapeInference, UnknownDimensionsStayTheSameOnes) {
  const auto result = infer("g (float[] x) => (float[] y, int64[] z) { a = NonZero(x) z = Relu(a) y = Identity(x) }");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["a"], result["z"]);
}

TEST(ShapeInference, MalformedNodesAreNotes) {
  const auto result = infer(R"(g (float[2, 3] x) => (float[] y) {
      [few] a = Gather(x)
      [typed] b = Concat<axis = "one">(x, x)
      [none] c = Concat(x, x)
      y = Relu(x)
  })");
  ASSERT_OK(result.report);
  EXPECT_TRUE(result.notes("few", "inputs"));
  EXPECT_TRUE(result.notes("typed", "axis"));
  EXPECT_TRUE(result.notes("none", "axis"));
  EXPECT_EQ(result["y"], "float32[2, 3]");
}

TEST(ShapeInference, EinsumWithSpacesInItsEquation) {
  const auto result = infer(R"(g (float[b, 3, 4] x, float[b, 4, 5] z) => (float[] y) {
      y = Einsum<equation = "bij, bjk -> bik">(x, z)
      [wrong] w = Einsum<equation = "b?j,bjk->bk">(x, z)
  })");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["y"], "float32[b, 3, 5]");
  EXPECT_TRUE(result.notes("wrong", "equation"));
}

TEST(ShapeInference, OperatorsOfTheOnnxMlDomain) {
  const auto result =
      infer("g (float[N, 3] x) => (float[] y) { y = ai.onnx.ml.Scaler<offset = [0.0], scale = [1.0]>(x) }", 17,
            ", \"ai.onnx.ml\" : 3");
  ASSERT_OK(result.report);
  EXPECT_EQ(result["y"], "float32[...]");
}

// Shape functions of the library that look at the type of an input without asking whether there is one.
TEST(ShapeInference, InputsWithoutATypeAreNoCrash) {
  for (const char* op_type : {"EyeLike", "RegexFullMatch"}) {
    Model model;
    model.set_opset({}, 22);
    Graph& graph = *model.graph;
    Value* y = graph.add_op(op_type, {graph.add_input("x", {})}, "y");
    y->producer()->set_attribute(op_type == std::string_view("EyeLike") ? Attribute("dtype", 1)
                                                                        : Attribute("pattern", "a"));
    ASSERT_OK(infer_shapes(model));
    EXPECT_EQ(y->type.kind, Type::Kind::none);
  }
}

}  // namespace
}  // namespace mk
