#include "quantize/accuracy.h"

#include <cmath>

#include "graph/shape_inference.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

class Given final : public SampleSource {
 public:
  explicit Given(std::vector<std::vector<HostTensor>> samples) : samples_(std::move(samples)) {}
  std::size_t size() const override { return samples_.size(); }
  Result<std::vector<HostTensor>> sample(std::size_t number) const override { return samples_[number]; }
  std::string description() const override { return "given"; }

 private:
  std::vector<std::vector<HostTensor>> samples_;
};

HostTensor floats(std::string name, std::vector<std::int64_t> dims, const std::vector<float>& values) {
  return host_tensor<float>(std::move(name), DataType::float32, std::move(dims), std::span<const float>(values));
}

Result<Accuracy> judged(const char* original, const char* changed, const Given& samples, bool tensors = false) {
  MK_TRY(const auto runtime, Runtime::load());
  MK_TRY(const auto before, testing::model_of_text(original));
  MK_TRY(const auto after, testing::model_of_text(changed));
  MK_CHECK(infer_shapes(*before));
  MK_CHECK(infer_shapes(*after));
  return judge(runtime, *before, *after, samples, {.count = samples.size(), .tensors = tensors}, silent_progress());
}

constexpr auto plain = R"(<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y)
                          <float[2] c = {0, 0}> { h = Neg(x) y = Add(h, c) })";
constexpr auto shifted = R"(<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y)
                            <float[2] c = {1, 0}> { h = Neg(x) y = Add(h, c) })";

TEST(AccuracyTest, FiguresByHand) {
  // y = (-3, -4) and (0, -1); shifted (-2, -4) and (1, -1).
  const Given samples({{floats("x", {1, 2}, {3, 4})}, {floats("x", {1, 2}, {0, 1})}});
  ASSERT_OK_AND(const auto accuracy, judged(plain, shifted, samples, true));
  ASSERT_EQ(accuracy.outputs.size(), 1u);
  const TensorAccuracy& y = accuracy.outputs[0];
  const double first = 22 / (5 * std::sqrt(20.0)), second = 1 / std::sqrt(2.0);
  EXPECT_NEAR(y.cosine, (first + second) / 2, 1e-12);
  EXPECT_NEAR(y.least_cosine, second, 1e-12);
  EXPECT_NEAR(y.snr_db, 10 * std::log10(26.0 / 2.0), 1e-12);
  EXPECT_EQ(y.max_abs_diff, 1);
  ASSERT_EQ(accuracy.tensors.size(), 2u);  // not the input
  EXPECT_EQ(accuracy.tensors[0].name, "h");
  EXPECT_EQ(accuracy.tensors[0].cosine, 1);
  EXPECT_EQ(accuracy.tensors[0].snr_db, INFINITY);
  EXPECT_NEAR(accuracy.tensors[1].snr_db, y.snr_db, 1e-12);
}

TEST(AccuracyTest, OnlyPositionsThatAreAttendedToCount) {
  constexpr auto states = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[b, 2, 1] x, int64[b, 2] attention_mask) => (float[b, 2, 1] y) <float c = {0}> { y = Add(x, c) })";
  constexpr auto moved = R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[b, 2, 1] x, int64[b, 2] attention_mask) => (float[b, 2, 1] y)
    <float[2, 1] c = {0, 5}> { y = Add(x, c) })";
  const std::vector<std::int64_t> mask{1, 0, 1, 1};
  const Given samples({{floats("x", {2, 2, 1}, {3, 7, 1, 0}),
                        host_tensor<std::int64_t>("attention_mask", DataType::int64, {2, 2}, mask)}});
  ASSERT_OK_AND(const auto accuracy, judged(states, moved, samples));
  // The first sentence is (3) in both; the second (1, 0) and (1, 5).
  EXPECT_NEAR(accuracy.outputs[0].cosine, (1 + 1 / std::sqrt(26.0)) / 2, 1e-12);
  EXPECT_NEAR(accuracy.outputs[0].snr_db, 10 * std::log10(10.0 / 25.0), 1e-12);
}

TEST(AccuracyTest, WhatIsNoNumberIsNamed) {
  constexpr auto broken = R"(<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y)
                             { h = Neg(x) y = Sqrt(h) })";
  constexpr auto whole = R"(<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y)
                            { h = Neg(x) y = Abs(h) })";
  const Given samples({{floats("x", {1, 2}, {-4, -9})}, {floats("x", {1, 2}, {4, -9})}});
  ASSERT_OK_AND(const auto accuracy, judged(whole, broken, samples));
  EXPECT_EQ(accuracy.problem(), "output y has NaN in sample 1 where the original has 4");
  ASSERT_OK_AND(const auto same, judged(broken, broken, samples));  // both have it
  EXPECT_EQ(same.problem(), "");
  EXPECT_EQ(same.outputs[0].cosine, 1);  // of what there is
  EXPECT_EQ(same.outputs[0].not_finite, 1u);
  const Given none({});
  EXPECT_FALSE(judged(plain, plain, none));
}

// Nothing to compare is not equality.
TEST(AccuracyTest, ResultsWithoutAnyNumber) {
  const Given samples({{floats("x", {1, 2}, {NAN, NAN})}, {floats("x", {1, 2}, {NAN, NAN})}});
  ASSERT_OK_AND(const auto accuracy, judged(plain, plain, samples));
  const TensorAccuracy& y = accuracy.outputs[0];
  EXPECT_TRUE(std::isnan(y.cosine));
  EXPECT_TRUE(std::isnan(y.snr_db));
  EXPECT_TRUE(std::isnan(y.max_abs_diff));
  EXPECT_EQ(y.not_finite, 4u);
  // Where the original has NaN alone, no figure is a number either.
  constexpr auto rooted = R"(<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y)
                             { y = Sqrt(x) })";
  constexpr auto whole = R"(<ir_version: 8, opset_import: ["" : 17]> g (float[n, 2] x) => (float[n, 2] y)
                            { y = Abs(x) })";
  const Given negative({{floats("x", {1, 2}, {-4, 1})}});
  ASSERT_OK_AND(const auto half, judged(rooted, whole, negative));
  EXPECT_TRUE(std::isnan(half.outputs[0].cosine));
  EXPECT_TRUE(std::isnan(half.outputs[0].max_abs_diff));
}

}  // namespace
}  // namespace mk
