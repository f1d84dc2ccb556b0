#include "quantize/calibrate.h"

#include <algorithm>
#include <cmath>

#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

// Given rows of x, one per sample.
class Rows final : public SampleSource {
 public:
  explicit Rows(std::vector<std::vector<float>> rows) : rows_(std::move(rows)) {}
  std::size_t size() const override { return rows_.size(); }
  Result<std::vector<HostTensor>> sample(std::size_t number) const override {
    const auto& row = rows_[number];
    return std::vector{host_tensor<float>("x", DataType::float32, {static_cast<std::int64_t>(row.size()) / 2, 2},
                                          std::span<const float>(row))};
  }
  std::string description() const override { return "rows"; }

 private:
  std::vector<std::vector<float>> rows_;
};

constexpr auto model_text = R"(
<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 2] x) => (float[n, 2] y, int64[2] s)
<float two = {2}>
{
  doubled = Mul(x, two)
  kept = Relu(doubled)
  y = Neg(kept)
  s = Shape(kept)
}
)";

class Calibrate : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = Runtime::load();
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    runtime_ = *loaded;
  }
  static void TearDownTestSuite() { runtime_.reset(); }
  static Result<Calibration> run(const Rows& rows, CalibrationOptions options) {
    MK_TRY(const auto model, testing::model_of_text(model_text));
    if (options.tensors.empty()) options.tensors = {"x", "doubled", "kept", "y", "s"};
    return calibrate(runtime_, *model, rows, options, silent_progress());
  }
  static inline std::shared_ptr<Runtime> runtime_;
};

TEST_F(Calibrate, MinMaxOverSamplesOfOtherShapes) {
  const Rows rows({{1, -2}, {3, 0, -5, 1}, {0.5f, 0.25f}});
  ASSERT_OK_AND(const auto seen, run(rows, {.channels = {"x", "kept"}}));
  EXPECT_EQ(seen.samples, 3u);
  EXPECT_EQ(seen.ranges.at("x"), (TensorRange{-5, 3}));
  EXPECT_EQ(seen.ranges.at("doubled"), (TensorRange{-10, 6}));
  EXPECT_EQ(seen.ranges.at("kept"), (TensorRange{0, 6}));
  EXPECT_EQ(seen.ranges.at("y"), (TensorRange{-6, 0}));  // an output of the model
  EXPECT_FALSE(seen.ranges.contains("s"));               // of integers
  EXPECT_TRUE(seen.warnings.empty());
  EXPECT_EQ(seen.channels.at("x"), (std::vector<TensorRange>{{-5, 3}, {-2, 1}}));
  EXPECT_EQ(seen.channels.at("kept"), (std::vector<TensorRange>{{0, 6}, {0, 2}}));
  EXPECT_FALSE(seen.channels.contains("y"));
}

TEST_F(Calibrate, TakesTheSamplesAskedFor) {
  const Rows rows({{1, -2}, {3, 0}, {0.5f, 0.25f}, {9, 9}});
  ASSERT_OK_AND(const auto middle, run(rows, {.first = 1, .count = 2}));
  EXPECT_EQ(middle.samples, 2u);
  EXPECT_EQ(middle.ranges.at("x"), (TensorRange{0, 3}));
  ASSERT_OK_AND(const auto rest, run(rows, {.first = 3, .count = 10}));
  EXPECT_EQ(rest.samples, 1u);
  EXPECT_FALSE(run(rows, {.first = 4}));
  EXPECT_FALSE(run(Rows({}), {}));
}

TEST_F(Calibrate, NanAndInfinityAreNamedAndDoNotCount) {
  const float inf = std::numeric_limits<float>::infinity();
  const Rows rows({{1, -2}, {std::nanf(""), 3}, {-inf, 4}});
  for (const auto method : {CalibrationMethod::minmax, CalibrationMethod::entropy, CalibrationMethod::percentile}) {
    ASSERT_OK_AND(const auto seen, run(rows, {.method = method, .tensors = {"x"}}));
    EXPECT_EQ(seen.ranges.at("x").low, -2) << name_of(method);
    EXPECT_NEAR(seen.ranges.at("x").high, 4, 0.1) << name_of(method);
    ASSERT_EQ(seen.warnings.size(), 1u);
    EXPECT_NE(seen.warnings[0].find("x has 2 values that are NaN or infinite, first in sample 1"), std::string::npos)
        << seen.warnings[0];
  }
}

TEST_F(Calibrate, ATensorWithoutValuesHasNoRange) {
  ASSERT_OK_AND(const auto seen, run(Rows({{}, {std::nanf(""), std::nanf("")}}), {.tensors = {"x", "kept"}}));
  EXPECT_FALSE(seen.ranges.contains("x"));
  EXPECT_NE(std::ranges::find_if(seen.warnings, [](const auto& w) { return w.find("x has no values") == 0; }),
            seen.warnings.end());
  ASSERT_OK_AND(const auto later, run(Rows({{}, {7, 7}}), {.method = CalibrationMethod::percentile}));
  EXPECT_EQ(later.ranges.at("x"), (TensorRange{7, 7}));
}

TEST_F(Calibrate, Names) {
  ASSERT_OK_AND(const auto method, calibration_method_named("percentile"));
  EXPECT_EQ(method, CalibrationMethod::percentile);
  EXPECT_EQ(calibration_method_named("max").error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace mk
