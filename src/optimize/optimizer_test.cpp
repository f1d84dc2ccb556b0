#include "optimize/optimizer.h"

#include <algorithm>
#include <set>

#include "graph/verifier.h"
#include "optimize/passes.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

Result<std::unique_ptr<Model>> model_of(const std::string& graph, int opset = 17) {
  return testing::model_of_text("<ir_version: 7, opset_import: [\"\" : " + std::to_string(opset) + "]>\n" + graph);
}

// Every Exp feeds itself.
Status break_structure(PassRun& run) {
  for (Node* node : run.index().of("Exp")) {
    if (!node || !node->input(0)) continue;
    node->set_input(0, node->output(0));
    run.changed();
  }
  return {};
}
const Pass breaks_structure{.name = "breaks-structure", .summary = "", .run = break_structure};

// Exp becomes Abs: of the same type, and wrong.
constexpr std::string_view exp_pattern[] = {"y = Exp(x)"};
Outcome exp_to_abs(const Match& m, Patch& p) {
  p.replace(m["y"], p.op("Abs", {m["x"]}));
  return fired;
}
const Pass breaks_numbers{.name = "breaks-numbers", .summary = "", .patterns = exp_pattern, .rewrite = exp_to_abs};

// Two minus signs go.
constexpr std::string_view neg_pattern[] = {"y = Neg(Neg(x))"};
Outcome drop_both(const Match& m, Patch& p) {
  p.replace(m["y"], m["x"]);
  return fired;
}
const Pass right{.name = "right", .summary = "", .patterns = neg_pattern, .rewrite = drop_both};
const Pass right_after{.name = "right-after", .summary = "", .patterns = neg_pattern, .rewrite = drop_both};

constexpr const char* graph =
    "g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) c = Exp(b) d = Tanh(c) y = Exp(d) }";

int count(const Model& model, const std::string& op_type) {
  int found = 0;
  for_each_node(*model.graph, [&](Node& node) { found += node.op_type == op_type ? 1 : 0; });
  return found;
}

// Whether there is an Abs tells whether the numbers are right.
Result<NumericVerdict> check(const Model& before, const Model& after) {
  NumericVerdict verdict;
  verdict.same = count(before, "Abs") == count(after, "Abs");
  if (!verdict.same) verdict.difference = "y: max_abs_diff 3";
  return verdict;
}

TEST(Optimizer, APassThatBreaksTheStructureIsTakenBackAndNamed) {
  ASSERT_OK_AND(auto model, model_of(graph));
  const Pass* const passes[] = {&right, &breaks_structure, &right_after};
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, {.passes = passes}));
  ASSERT_EQ(report.rolled_back.size(), 1u);
  EXPECT_EQ(report.rolled_back[0].pass, "breaks-structure");
  EXPECT_FALSE(report.rolled_back[0].reason.empty());
  ASSERT_OK(verify(*model));
  EXPECT_EQ(count(*model, "Exp"), 2);
  EXPECT_EQ(count(*model, "Neg"), 0);  // what other passes did stays
  ASSERT_EQ(report.passes.size(), 1u);
  EXPECT_EQ(report.passes[0].pass, "right");
}

TEST(Optimizer, APassThatChangesNumbersIsTakenBackAndNamed) {
  ASSERT_OK_AND(auto model, model_of(graph));
  const Pass* const passes[] = {&right, &breaks_numbers, &right_after};
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, {.passes = passes, .check = check}));
  ASSERT_EQ(report.rolled_back.size(), 1u);
  EXPECT_EQ(report.rolled_back[0].pass, "breaks-numbers");
  EXPECT_EQ(report.rolled_back[0].reason, "y: max_abs_diff 3");
  EXPECT_TRUE(report.numbers.same);
  EXPECT_EQ(count(*model, "Abs"), 0);
  EXPECT_EQ(count(*model, "Neg"), 0);
}

TEST(Optimizer, BothKindsInOneRun) {
  ASSERT_OK_AND(auto model, model_of(graph));
  const Pass* const passes[] = {&breaks_numbers, &breaks_structure, &right};
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, {.passes = passes, .check = check}));
  EXPECT_EQ(report.rolled_back.size(), 2u);
  EXPECT_EQ(report.nodes_after, 3u);
  ASSERT_OK(verify(*model));
}

TEST(Optimizer, WithoutACheckNumbersAreNotCompared) {
  ASSERT_OK_AND(auto model, model_of(graph));
  const Pass* const passes[] = {&breaks_numbers};
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, {.passes = passes}));
  EXPECT_TRUE(report.rolled_back.empty());
  EXPECT_EQ(count(*model, "Abs"), 2);
}

TEST(Optimizer, RunsUntilNothingFires) {
  ASSERT_OK_AND(auto model, model_of("g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) c = Neg(b) d = Neg(c) e = "
                                     "Neg(d) y = Exp(e) }"));
  const Pass* const passes[] = {&right};
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, {.passes = passes}));
  EXPECT_EQ(report.passes.at(0).fired, 2u);
  EXPECT_EQ(report.nodes_before, 6u);
  EXPECT_EQ(report.nodes_after, 2u);
}

// The opset is raised when a pass that needs it fires, not before.
TEST(Optimizer, RaisesTheOpsetForAMatch) {
  static const Pass needs_17{
      .name = "needs-17", .summary = "", .opset = 17, .patterns = exp_pattern, .rewrite = exp_to_abs};
  const Pass* const passes[] = {&needs_17};
  ASSERT_OK_AND(auto model, model_of(graph, 13));
  ASSERT_OK(optimize(model, {.passes = passes}));
  EXPECT_EQ(model->opset(), 17);
  EXPECT_EQ(model->ir_version, 8);
  ASSERT_OK_AND(model, model_of("g (float[2] x) => (float[2] y) { y = Neg(x) }", 13));
  ASSERT_OK(optimize(model, {.passes = passes}));
  EXPECT_EQ(model->opset(), 13);
  ASSERT_OK_AND(model, model_of(graph, 10));
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, {.passes = passes, .explain = true}));
  EXPECT_EQ(model->opset(), 10);
  ASSERT_FALSE(report.near_misses.empty());
  EXPECT_NE(report.near_misses[0].reason.find("opset 17"), std::string::npos);
}

TEST(Optimizer, ExplainsWhatNearlyMatched) {
  ASSERT_OK_AND(auto model, model_of("g (float[2] x) => (float[2] y, float[2] a) { a = Neg(x) y = Neg(a) }"));
  const Pass* const passes[] = {&right};
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, {.passes = passes, .explain = true}));
  ASSERT_EQ(report.near_misses.size(), 1u);
  EXPECT_EQ(report.near_misses[0].node, "Neg -> y");
  EXPECT_EQ(report.near_misses[0].reason, "a is also a graph output");
}

TEST(Optimizer, KeepsTheSymbolsOfOutputs) {
  ASSERT_OK_AND(auto model,
                model_of("g (float[N, 4] x, bool c) => (float[N, 2, 2] y, float[N, 4] z) <int64 zero = {0}, "
                         "int64[1] axis = {0}, int64[2] rest = {2, 2}> { s = Shape(x) n = Gather(s, zero) u = "
                         "Unsqueeze(n, axis) t = Concat<axis = 0>(u, rest) y = Reshape(x, t) k = Neg(x) z = "
                         "If(c) <then_branch = a () => (float[N, 4] p) { i = Identity(k) p = Exp(i) }, "
                         "else_branch = b () => (float[N, 4] q) { q = Abs(k) }> }"));
  ASSERT_OK(optimize(model, {}));
  ASSERT_OK(verify(*model));
  ASSERT_OK(check_onnx(*model));
  EXPECT_EQ(to_string(model->graph->find("y")->type), "float32[N, 2, 2]");
  EXPECT_EQ(to_string(model->graph->find("z")->type), "float32[N, 4]");
  EXPECT_EQ(count(*model, "Shape"), 0);
  EXPECT_EQ(count(*model, "Identity"), 0);
}

// Data that is missing and operators that nobody knows keep passes from nothing else (a custom domain, a lost file).
TEST(Optimizer, WorksAroundUnknownOperatorsAndMissingData) {
  ASSERT_OK_AND(
      auto model,
      testing::model_of_text("<ir_version: 8, opset_import: [\"\" : 17, \"com.example\" : 1]>\n"
                             "g (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y) <float[1, 1, 1, 1] w = {2}, float k = "
                             "{3}> { c = Conv(x, w) m = Mul(c, k) i = Identity(m) y = com.example.Thing(i) }"));
  Tensor lost = *model->graph->find("w")->initializer();
  lost.data = nullptr;
  lost.external = {{"location", "gone.bin"}};
  model->graph->set_initializer(model->graph->find("w"), lost);
  OptimizeOptions options{.explain = true};
  ASSERT_OK(options.capabilities.set("conv-mul-fusion", true));
  ASSERT_OK_AND(const OptimizeReport report, optimize(model, options));
  EXPECT_EQ(count(*model, "Identity"), 0);
  EXPECT_EQ(count(*model, "Mul"), 1);
  const auto is_note = [](const NearMiss& miss) { return miss.pass == "conv-mul-fusion" && !miss.reason.empty(); };
  EXPECT_TRUE(std::any_of(report.near_misses.begin(), report.near_misses.end(), is_note));
  for (const RolledBack& pass : report.rolled_back) ADD_FAILURE() << pass.pass << ": " << pass.reason;
}

// Bytes that must not be read: large weights are moved and scaled when they are written.
class Unreadable final : public ByteSource {
 public:
  std::uint64_t size() const override { return 4 << 20; }
  Status read(std::uint64_t, std::span<std::byte>) const override {
    ADD_FAILURE() << "a weight was read";
    return fail(ErrorCode::failed, "read");
  }
};

TEST(Optimizer, ReadsNoLargeWeights) {
  auto model = std::make_unique<Model>();
  model->set_opset("", 17);
  Graph& inner = *model->graph;
  const auto weight = [&](const char* name, std::vector<std::int64_t> dims) {
    return inner.add_initializer(make_tensor(name, DataType::float32, std::move(dims), std::make_shared<Unreadable>()));
  };
  Value* x = inner.add_input("x", Type::tensor(DataType::float32, static_shape({2, 1024})));
  Value* w = weight("w", {1024, 1024});
  Value* transposed_weight = inner.add_op("Transpose", {w}, "t");
  Value* scaled = inner.add_op(
      "Mul", {inner.add_op("MatMul", {x, transposed_weight}, "p"), inner.add_initializer(scalar_tensor("half", 0.5f))},
      "scaled");
  Value* z = inner.add_input("z", Type::tensor(DataType::float32, static_shape({1, 1, 1, 1})));
  Value* c = inner.add_op("Conv", {z, weight("k", {1048576, 1, 1, 1})}, "c");
  Value* twice = inner.add_op("Mul", {c, inner.add_initializer(scalar_tensor("two", 2.0f))}, "twice");
  for (Value* output : {scaled, twice}) inner.mark_output(output);
  OptimizeOptions options;
  for (const Capability& capability : all_capabilities()) ASSERT_OK(options.capabilities.set(capability.name, true));
  ASSERT_OK(optimize(model, options));
  EXPECT_EQ(model->graph->node_count(), 2u);
}

TEST(Optimizer, PassesHaveUniqueNames) {
  std::set<std::string_view> names;
  for (const Pass* pass : all_passes()) EXPECT_TRUE(names.insert(pass->name).second) << pass->name;
}

}  // namespace
}  // namespace mk
