#include "eval/compare.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "graph/onnx_writer.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::repository;

class CompareTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = Runtime::load();
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    runtime_ = *loaded;
  }
  static void TearDownTestSuite() { runtime_.reset(); }
  static Result<CompareReport> compare(std::string_view candidate, std::string_view reference,
                                       const CompareOptions& options = {.samples = 5}) {
    const Path folder = repository("tests/data/runtime");
    return compare_models(runtime_, folder / candidate, folder / reference, options, silent_progress());
  }
  static inline std::shared_ptr<Runtime> runtime_;
};

TEST_F(CompareTest, AModelIsLikeItself) {
  ASSERT_OK_AND(const auto report, compare("affine.onnx", "affine.onnx"));
  EXPECT_TRUE(report.yes());
  EXPECT_EQ(report.samples, 5);
  ASSERT_EQ(report.outputs.size(), 2u);
  EXPECT_EQ(report.outputs[0].name, "y");
  const Json json = compare_json(report);
  EXPECT_EQ(json["verdict"], "yes");
  EXPECT_EQ(json["metrics"]["max_abs_diff_max"]["y"], 0.0);
  EXPECT_TRUE(json["metrics"]["sqnr_db_mean"]["y"].is_null());  // infinite
  EXPECT_EQ(json["non_finite"]["sqnr_db"]["y"], 5);
  EXPECT_EQ(json["dynamic_dims"]["batch"], 1);
}

TEST_F(CompareTest, ADifferenceBeyondTheLimitIsANoThatNamesTheOutput) {
  ASSERT_OK_AND(const auto report, compare("affine_off.onnx", "affine.onnx"));
  EXPECT_FALSE(report.yes());
  ASSERT_FALSE(report.reasons().empty());
  EXPECT_TRUE(report.reasons()[0].starts_with("y: max_abs_diff is ")) << report.reasons()[0];
  EXPECT_NE(compare_text(report).find("Alike: no"), std::string::npos);

  ASSERT_OK_AND(const auto loose, parse_tolerances({{"max_abs_diff", "10"}, {"cosine_similarity", "0.9"}}));
  ASSERT_OK_AND(const auto accepted, compare("affine_off.onnx", "affine.onnx", {.samples = 5, .tolerances = loose}));
  EXPECT_TRUE(accepted.yes());
}

// The candidate's w is 1.25 times the reference's, so they differ by a quarter of x @ w.
TEST_F(CompareTest, AnArchiveGivesTheSamples) {
  const CompareOptions options{.input_data = repository("tests/data/runtime/affine_inputs.npz")};
  ASSERT_OK_AND(const auto report, compare("affine_off.onnx", "affine.onnx", options));
  EXPECT_EQ(report.samples, 5);
  const auto& difference = report.outputs[0].metrics[static_cast<std::size_t>(Metric::max_abs_diff)];
  EXPECT_NEAR(difference.min, 16.0 / 4, 1e-5);   // [0 1 2] @ w = [13, 16]
  EXPECT_NEAR(difference.max, 160.0 / 4, 1e-5);  // [12 13 14] @ w = [121, 160]
}

TEST_F(CompareTest, NaNsAreANoWithTheirPlace) {
  const CompareOptions options{.input_data = repository("tests/data/runtime/signed_inputs.npz")};
  ASSERT_OK_AND(const auto report, compare("sqrt.onnx", "abs_sqrt.onnx", options));
  EXPECT_FALSE(report.yes());
  ASSERT_EQ(report.reasons().size(), 1u);
  EXPECT_EQ(report.reasons()[0], "y: NaN in the candidate at [0, 2] (sample 1)");
  EXPECT_EQ(compare_json(report)["non_finite"]["mse"]["y"], 1);
  ASSERT_OK_AND(const auto other_way, compare("abs_sqrt.onnx", "sqrt.onnx", options));
  EXPECT_EQ(other_way.reasons()[0], "y: NaN in the reference at [0, 2] (sample 1)");
}

TEST_F(CompareTest, InfinitiesInTheSamePlaceAreEqual) {
  const CompareOptions options{.input_data = repository("tests/data/runtime/infinite_inputs.npz")};
  ASSERT_OK_AND(const auto report, compare("sqrt.onnx", "abs_sqrt.onnx", options));
  EXPECT_TRUE(report.yes()) << report.reasons()[0];
  EXPECT_EQ(report.outputs[0].equal_infinities, 2u);
}

TEST_F(CompareTest, RangesOfTheMetadataAreKept) {
  ASSERT_OK_AND(const auto report, compare("tokens.onnx", "tokens_plain.onnx", {.samples = 20}));
  EXPECT_TRUE(report.yes());
}

// 2^53 and 2^53 + 1 are the same double.
TEST_F(CompareTest, LargeIntegersAreComparedExactly) {
  const auto session = [](std::string_view values) -> Result<Session> {
    MK_TRY(const auto model, testing::model_of_text(fmt::format(
                                 "<ir_version: 8, opset_import: [\"\" : 17]> g (int64[2] x) => (int64[2] y) "
                                 "<int64[2] c = {{{}}}> {{ y = Add(x, c) }}",
                                 values)));
    MK_TRY(const std::string bytes, serialize_onnx(*model));
    return Session::open_bytes(runtime_, bytes);
  };
  ASSERT_OK_AND(const Session reference, session("9007199254740992, -9007199254740992"));
  ASSERT_OK_AND(const Session candidate, session("9007199254740993, -9007199254740995"));
  const std::map<std::string, ValueRange> zeros{{"x", {0, 1}}};
  ASSERT_OK_AND(const auto report, compare_sessions(candidate, reference, zeros, {.samples = 1}, silent_progress()));
  EXPECT_FALSE(report.yes());
  EXPECT_EQ(report.outputs[0].metrics[static_cast<std::size_t>(Metric::max_abs_diff)].max, 3);
  EXPECT_EQ(report.outputs[0].metrics[static_cast<std::size_t>(Metric::mse)].max, 5);  // (1 + 9) / 2
  ASSERT_OK_AND(const auto same, compare_sessions(reference, reference, zeros, {.samples = 1}, silent_progress()));
  EXPECT_TRUE(same.yes());
}

TEST_F(CompareTest, ModelsThatCannotBeCompared) {
  const auto other_outputs = compare("affine.onnx", "tokens.onnx");
  ASSERT_FALSE(other_outputs);
  EXPECT_EQ(other_outputs.error().code, ErrorCode::failed);
  EXPECT_NE(other_outputs.error().message.find("no output in common"), std::string::npos);
  const auto other_inputs = compare("affine.onnx", "sqrt.onnx");
  ASSERT_FALSE(other_inputs);
  EXPECT_NE(other_inputs.error().message.find("'x' is float32[batch, 3]"), std::string::npos);
  const auto wrong_names =
      compare("tokens.onnx", "tokens.onnx", {.input_data = repository("tests/data/runtime/affine_inputs.npz")});
  ASSERT_FALSE(wrong_names);
  EXPECT_EQ(wrong_names.error().code, ErrorCode::usage);
  EXPECT_EQ(wrong_names.error().message, "missing [input_ids, attention_mask] and unexpected [x]");
  EXPECT_EQ(wrong_names.error().hint, "Expected exactly: [input_ids, attention_mask]");
}

TEST(Tolerances, Parsing) {
  ASSERT_OK_AND(const auto defaults, parse_tolerances({}));
  EXPECT_EQ(defaults.size(), 2u);
  ASSERT_OK_AND(const auto given, parse_tolerances({{"mse", "1"}, {"sqnr_db", "30"}, {"mse", "2e-3"}}));
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(given[1].metric.name, "mse");
  EXPECT_EQ(given[1].limit, 2e-3);
  for (const auto& [name, value] : {std::pair{"mae", "1"},
                                    {"mse", ""},
                                    {"mse", "1x"},
                                    {"mse", "nan"},
                                    {"mse", "inf"},
                                    {"mse", "-1"},
                                    {"max_abs_diff", "-1e-3"},
                                    {"sqnr_db", "-inf"},
                                    {"cosine_similarity", "1.5"}})
    EXPECT_EQ(parse_tolerances({{name, value}}).error().code, ErrorCode::usage) << name << value;
}

}  // namespace
}  // namespace mk
