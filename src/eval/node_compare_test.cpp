#include "eval/node_compare.h"

#include <cmath>

#include "base/json.h"
#include "eval/node_match.h"
#include "runtime/random_samples.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

constexpr auto reference_text = R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1, 4] x) => (float[1, 4] y)
  <float half = {0.5}> { a = Neg(x) b = Mul(a, half) c = Abs(b) y = Sqrt(c) })";

std::unique_ptr<Model> model_of(const char* text) {
  auto model = testing::model_of_text(text);
  EXPECT_TRUE(model) << model.error().to_string();
  return std::move(*model);
}

Result<NodeCompareReport> compared(Model& candidate, Model& reference,
                                   const std::vector<Tolerance>& tolerances = default_tolerances()) {
  MK_TRY(const auto runtime, Runtime::load());
  MK_TRY(const auto source, random_samples(reference, 2, 42, {}));
  return compare_nodes(runtime, candidate, reference, *source, 2, tolerances, silent_progress());
}

TEST(NodeCompare, FindsWhereItBeginsToDiffer) {
  const auto reference = model_of(reference_text);
  const auto candidate = model_of(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1, 4] x) => (float[1, 4] y)
    <float half = {0.75}> { a = Neg(x) b = Mul(a, half) c = Abs(b) y = Sqrt(c) })");
  ASSERT_OK_AND(const auto report, compared(*candidate, *reference));
  EXPECT_FALSE(report.yes());
  ASSERT_EQ(report.values.size(), 4u);
  EXPECT_TRUE(report.values[0].reasons.empty());
  ASSERT_EQ(report.first_divergence, 1u);
  const NodeComparison& b = report.values[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.op_type, "Mul");
  EXPECT_NEAR(b.cosine, 1, 1e-9);  // only the length differs
  EXPECT_NEAR(b.snr_db, 20 * std::log10(2.0), 1e-4);
  EXPECT_NE(node_compare_text(report, 2).find("First divergence: b (Mul, float32); max_abs_diff is"),
            std::string::npos);
  const Json json = node_compare_json(report);
  EXPECT_EQ(json["verdict"], "no");
  EXPECT_EQ(json["first_divergence"]["name"], "b");
  ASSERT_OK_AND(const auto loose, compared(*candidate, *reference, {{*metric_named("cosine_similarity"), 0.99}}));
  EXPECT_TRUE(loose.yes());
}

TEST(NodeCompare, MatchesByNodeAndByModule) {
  const auto reference = model_of(reference_text);
  const auto candidate = model_of(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1, 4] x) => (float[1, 4] y)
    <float half = {0.5}> { p = Neg(x) q = Mul(p, half) r = Abs(q) y = Sqrt(r) })");
  const auto nth = [](Model& model, int n) { return *std::next(model.graph->nodes().begin(), n); };
  nth(*reference, 0)->name = nth(*candidate, 0)->name = "negate";
  for (Model* model : {reference.get(), candidate.get()})
    for (int i = 1; i <= 2; ++i) set(nth(*model, i)->metadata, "winml.hierarchy.tag", "/Scale");
  ASSERT_OK_AND(const auto report, compared(*candidate, *reference));
  EXPECT_TRUE(report.yes());
  ASSERT_EQ(report.values.size(), 3u);
  EXPECT_EQ(report.values[0].matched_by, "node");
  EXPECT_EQ(report.values[0].reference, "a");
  EXPECT_EQ(report.values[1].name, "r");  // what leaves the module
  EXPECT_EQ(report.values[1].reference, "c");
  EXPECT_EQ(report.values[1].matched_by, "tag");
  EXPECT_EQ(report.values[2].matched_by, "name");
}

TEST(NodeCompare, PrecisionsOfAQuantizedModel) {
  const auto reference = model_of(reference_text);
  const auto candidate = model_of(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1, 4] x) => (float[1, 4] y)
    <float half = {0.5}, float scale = {0.01}, int8 zero = {0}>
    { a = Neg(x) b = Mul(a, half) q = QuantizeLinear(b, scale, zero) d = DequantizeLinear(q, scale, zero) c = Abs(d)
      y = Sqrt(c) })");
  ASSERT_OK_AND(const auto report, compared(*candidate, *reference));
  ASSERT_EQ(report.precisions.size(), 2u);
  EXPECT_EQ(report.precisions[0].precision, "float32");
  EXPECT_EQ(report.precisions[0].values, 3u);
  EXPECT_EQ(report.precisions[1].precision, "int8");
  EXPECT_EQ(report.precisions[1].values, 1u);
  EXPECT_EQ(value_precision(*candidate->graph->find("d")), "int8");
  ASSERT_TRUE(report.first_divergence);
  EXPECT_EQ(report.values[*report.first_divergence].name, "c");  // half a step of 0.01
  EXPECT_LE(report.values[*report.first_divergence].max_abs_diff, 0.005 + 1e-6);
}

TEST(NodeCompare, MissingOutputsAndShapesAreANo) {
  const auto reference =
      model_of(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1, 4] x) => (float[1, 4] y, float[1, 4] z)
    { y = Neg(x) z = Abs(y) })");
  const auto candidate = model_of(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1, 4] x) => (float[1, 4] y)
    { y = Neg(x) })");
  ASSERT_OK_AND(const auto report, compared(*candidate, *reference));
  EXPECT_FALSE(report.yes());
  EXPECT_EQ(report.missing, std::vector<std::string>{"z"});
  const auto other = model_of(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1, 4] x) => (float[1, 4] w)
    { w = Neg(x) })");
  const auto nothing = compared(*other, *reference);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::failed);
}

}  // namespace
}  // namespace mk
