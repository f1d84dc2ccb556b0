// Models that people ship, in float16: valid, and in ONNX Runtime near to what they were.

#include <cmath>

#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/verifier.h"
#include "published_models.h"
#include "quantize/float16.h"
#include "runtime/session.h"
#include "testing/testing.h"

namespace mk {
namespace {

double cosine(std::span<const float> a, std::span<const float> b) {
  double product = 0;
  double left = 0;
  double right = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    left += static_cast<double>(a[i]) * static_cast<double>(a[i]);
    right += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return product / std::sqrt(left * right);
}

class Float16Model : public ::testing::TestWithParam<PublishedModel> {};

TEST_P(Float16Model, StaysNear) {
  const PublishedModel& c = GetParam();
  if (!std::filesystem::exists(c.path()))
    GTEST_SKIP() << c.path() << " is not there: run tools/bootstrap test-models all-models";
  // Activations quantized as they come turn the least difference into a step: rounding one tensor of this one to
  // float16 and back leaves a cosine of 0.96.
  const bool steps = std::string_view(c.file).find("e5-small-v2-q") != std::string_view::npos;
  const double least = steps ? 0.95 : 0.999;

  ASSERT_OK_AND(auto model, read_onnx(c.path()));
  ASSERT_OK_AND(const auto report, convert_to_float16(*model));
  EXPECT_GT(report.converted_tensors, 0u);
  ASSERT_OK(verify(*model));
  ASSERT_OK(check_onnx(*model));
  ASSERT_OK_AND(const std::string bytes, serialize_onnx(*model));
  EXPECT_TRUE(report.out_of_range().has_value());

  ASSERT_OK_AND(const auto runtime, Runtime::load());
  const std::vector<HostTensor> inputs = c.inputs();
  ASSERT_OK_AND(const auto original, Session::open(runtime, c.path()));
  ASSERT_OK_AND(const auto expected, original.run(inputs));
  ASSERT_OK_AND(const auto session, Session::open_bytes(runtime, bytes));
  ASSERT_OK_AND(const auto actual, session.run(inputs));
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_EQ(actual[i].type, expected[i].type);
    ASSERT_EQ(actual[i].dims, expected[i].dims);
    if (actual[i].type != DataType::float32) continue;
    EXPECT_GT(cosine(actual[i].values<float>(), expected[i].values<float>()), least) << actual[i].name;
  }

  const auto again = convert_to_float16(*model);
  ASSERT_OK(again);
  ASSERT_OK_AND(const std::string twice, serialize_onnx(*model));
  EXPECT_TRUE(bytes == twice) << "a second conversion changes the model";
}

INSTANTIATE_TEST_SUITE_P(Packages, Float16Model, ::testing::ValuesIn(published_models()), title_of);

}  // namespace
}  // namespace mk
