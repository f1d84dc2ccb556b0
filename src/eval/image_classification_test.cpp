// Against ONNX Runtime and numpy in Python (tests/data/eval/make_eval.py), and scikit-learn's top-k accuracy.

#include "eval/image_classification.h"

#include <cmath>
#include <limits>

#include "base/json.h"
#include "eval/ranking.h"
#include "testing/testing.h"

namespace mk {
namespace {

Path data(std::string_view name) { return testing::repository("tests/data/eval") / name; }

TEST(Ranking, GivesTopKAsScikitLearnDoes) {
  ASSERT_OK_AND(const Json book, read_json(testing::repository("tests/data/metrics/classification.json")));
  for (const Json& item : book["cases"]) {
    if (item["metric"] == "rank") {
      const auto scores = item["input"]["scores"].get<std::vector<double>>();
      for (std::size_t place = 0; place < scores.size(); ++place)
        EXPECT_EQ(rank_of(scores, item["expected"]["order"][place]), place) << item["name"];
    }
    if (item["metric"] != "top_k_scores") continue;
    const auto scores = item["input"]["scores"].get<std::vector<std::vector<double>>>();
    for (const std::size_t k : item["input"]["ks"].get<std::vector<std::size_t>>()) {
      double hits = 0;
      for (std::size_t i = 0; i < scores.size(); ++i) hits += rank_of(scores[i], item["input"]["y"][i]) < k ? 1 : 0;
      EXPECT_NEAR(hits / static_cast<double>(scores.size()), item["expected"]["top" + std::to_string(k)], 1e-12);
    }
  }
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(rank_of(std::vector{nan, 1.0, 2.0}, 0), 2U);
  EXPECT_EQ(rank_of(std::vector{nan, 1.0, 2.0}, 2), 0U);
}

class ImageClassification : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = Runtime::load();
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    runtime_ = *loaded;
  }
  static void TearDownTestSuite() { runtime_.reset(); }

  static Result<ImageClassificationReport> evaluate(std::string_view model, const DatasetOptions& source,
                                                    const ImageClassificationOptions& options = {}) {
    MK_TRY(const auto session, Session::open(runtime_, data(model) / "model.onnx"));
    MK_TRY(const auto processor, ImageProcessor::load(data(model)));
    MK_TRY(const auto config, ModelConfig::read(data(model)));
    MK_TRY(const auto labels, ModelLabels::read(config));
    MK_TRY(const auto dataset, open_dataset(source));
    return evaluate_image_classification(session, processor, labels, *dataset, options, silent_progress());
  }
  static inline std::shared_ptr<Runtime> runtime_;
};

TEST_F(ImageClassification, CountsAsNumpyDoes) {
  ASSERT_OK_AND(const Json expected, read_json(data("expected.json")));
  for (const char* model : {"free", "fixed", "half"}) {
    SCOPED_TRACE(model);
    ASSERT_OK_AND(const auto report, evaluate(model, {data("images"), {}, {}}));
    EXPECT_EQ(report.samples, expected["samples"]);
    EXPECT_DOUBLE_EQ(report.accuracy, expected["accuracy"]);
    ASSERT_TRUE(report.top_5.has_value());
    EXPECT_DOUBLE_EQ(*report.top_5, expected["top_5"]);
    EXPECT_EQ(report.classes, 7);
    EXPECT_EQ(report.without_label + report.without_image + report.not_finite, 0U);
    EXPECT_GT(report.total_seconds, 0);
  }
}

TEST_F(ImageClassification, TakesTheSplitAndTheSamplesAskedFor) {
  ASSERT_OK_AND(const auto train, evaluate("free", {data("images"), {}, "train"}));
  EXPECT_EQ(train.samples, 3U);
  EXPECT_EQ(train.accuracy, 1.0);
  ImageClassificationOptions options;
  options.rows = {2, false, 42};
  ASSERT_OK_AND(const auto two, evaluate("free", {data("images"), {}, {}}, options));
  EXPECT_EQ(two.samples, 2U);
  EXPECT_EQ(two.rows, 7U);
}

TEST_F(ImageClassification, MapsLabelsAsTold) {
  ImageClassificationOptions options;
  options.label_mapping = LabelMapping{{"RED", 1}, {"green", 0}, {"blue", 99}};
  ASSERT_OK_AND(const auto report, evaluate("free", {data("images"), {}, "train"}, options));
  EXPECT_EQ(report.without_label, 1U);
  EXPECT_EQ(report.accuracy, 0.0);
  options.label_mapping = LabelMapping{{"red", 99}, {"green", 98}, {"blue", 99}};
  const auto nothing = evaluate("free", {data("images"), {}, "train"}, options);
  ASSERT_FALSE(nothing.has_value());
  EXPECT_NE(nothing.error().message.find("no overlap"), std::string::npos);
}

TEST_F(ImageClassification, NamesABrokenImage) {
  const testing::TemporaryFolder folder;
  std::filesystem::copy(data("images/train"), folder / "set", std::filesystem::copy_options::recursive);
  folder.write("set/green/bad.png", "\x89PNG\r\n\x1a\nnothing");
  const auto report = evaluate("free", {folder / "set", {}, {}});
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::malformed);
  EXPECT_EQ(report.error().where, "green/bad.png");
}

TEST_F(ImageClassification, NamesWhatIsMissing) {
  ImageClassificationOptions options;
  options.label_column = "class";
  const auto report = evaluate("free", {data("images"), {}, {}}, options);
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().message, "missing column(s) label_column='class'; the data set has image, label");
}

TEST_F(ImageClassification, LeavesOutRowsWithoutImageOrLabel) {
  // Row 3 has no image, row 4 the label -1, row 5 none.
  const Path file = testing::repository("tests/data/datasets/parquet/image_classification.parquet");
  ImageClassificationOptions options;
  options.label_mapping = LabelMapping{{"cat", 0}, {"dog", 1}, {"größe 日本", 2}};
  options.rows = {4, false, 42};
  ASSERT_OK_AND(const auto report, evaluate("free", {file, {}, {}}, options));
  EXPECT_EQ(report.samples, 3U);
  EXPECT_EQ(report.without_image, 1U);
  options.rows = {7, false, 42};
  const auto minus_one = evaluate("free", {file, {}, {}}, options);
  ASSERT_FALSE(minus_one.has_value());
  EXPECT_NE(minus_one.error().where.find("row 4"), std::string::npos) << minus_one.error().to_string();
}

TEST_F(ImageClassification, RefusesASizeThatDoesNotFit) {
  const Json json = *parse_json(R"({"size": {"height": 8, "width": 8}})", "preprocessor_config.json");
  ASSERT_OK_AND(const auto processor, ImageProcessor::parse(JsonView(json, "preprocessor_config.json"), "vit"));
  ASSERT_OK_AND(const auto session, Session::open(runtime_, data("free/model.onnx")));
  ASSERT_OK_AND(const auto dataset, open_dataset({data("images"), {}, {}}));
  const auto report = evaluate_image_classification(session, processor, {}, *dataset, {}, silent_progress());
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("4 x 4"), std::string::npos);
}

}  // namespace
}  // namespace mk
