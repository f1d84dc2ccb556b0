#include "runtime/random_inputs.h"

#include "testing/testing.h"

namespace mk {
namespace {

template <typename T>
std::vector<T> values_of(const HostTensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

// rng = numpy.random.default_rng(42): rng.random(2), 2 + 3 * rng.random(2), rng.integers(0, 30522, 3),
// rng.integers(0, 2, 4), in this order.
TEST(RandomInputs, EqualNumpys) {
  const std::vector<DrawSpec> specs{{"pixels", DataType::float32, {1, 2}, std::nullopt},
                                    {"scaled", DataType::float64, {2}, ValueRange{2, 5}},
                                    {"input_ids", DataType::int32, {1, 3}, ValueRange{0, 30522}},
                                    {"types", DataType::int64, {4}, std::nullopt}};
  ASSERT_OK_AND(const auto inputs, random_inputs(specs, 42));
  ASSERT_EQ(inputs.size(), 4u);
  EXPECT_EQ(values_of<float>(inputs[0]), (std::vector<float>{0.7739560604095459f, 0.43887844681739807f}));
  EXPECT_EQ(values_of<double>(inputs[1]), (std::vector<double>{4.575793759734148, 4.092104087178091}));
  EXPECT_EQ(values_of<std::int32_t>(inputs[2]), (std::vector<std::int32_t>{6149, 2874, 16069}));
  EXPECT_EQ(values_of<std::int64_t>(inputs[3]), (std::vector<std::int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(inputs[2].dims, (std::vector<std::int64_t>{1, 3}));
}

TEST(RandomInputs, RangesAndTheirAbsence) {
  const std::vector<DrawSpec> specs{{"attention_mask", DataType::int64, {1, 50}, std::nullopt},
                                    {"token_type_ids", DataType::int64, {1, 50}, std::nullopt},
                                    {"ids", DataType::uint8, {200}, ValueRange{250, 1000}},
                                    {"flag", DataType::boolean, {100}, std::nullopt},
                                    {"half", DataType::float16, {50}, ValueRange{-1, 1}},
                                    {"bbox", DataType::int64, {1, 20, 4}, ValueRange{0, 1000}},
                                    {"text", DataType::string, {3}, std::nullopt}};
  ASSERT_OK_AND(const auto inputs, random_inputs(specs, 7));
  for (const auto value : values_of<std::int64_t>(inputs[0])) EXPECT_EQ(value, 1);
  bool zero = false, one = false;
  for (const auto value : values_of<std::int64_t>(inputs[1])) (value == 0 ? zero : one) = true;
  EXPECT_TRUE(zero && one);
  for (const auto value : values_of<std::uint8_t>(inputs[2])) EXPECT_GE(value, 250);
  for (const auto value : values_of<std::uint8_t>(inputs[3])) EXPECT_LE(value, 1);
  ASSERT_OK_AND(const auto half, float64_values(inputs[4]));
  for (const double value : half) EXPECT_TRUE(value >= -1 && value <= 1);
  const auto boxes = values_of<std::int64_t>(inputs[5]);
  for (std::size_t i = 0; i < boxes.size(); i += 4) {
    EXPECT_LE(boxes[i], boxes[i + 2]);
    EXPECT_LE(boxes[i + 1], boxes[i + 3]);
  }
  EXPECT_EQ(inputs[6].strings.size(), 3u);

  const std::vector<DrawSpec> huge{{"pixels", DataType::float32, {1'000'000'000'000, 3}, std::nullopt}};
  const auto refused = random_inputs(huge);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
  EXPECT_EQ(refused.error().where, "pixels");
  EXPECT_NE(refused.error().message.find("36000.0 GB"), std::string::npos) << refused.error().message;

  const std::vector<DrawSpec> impossible{{"ids", DataType::int8, {1}, ValueRange{500, 600}}};
  EXPECT_EQ(random_inputs(impossible).error().where, "ids");
}

}  // namespace
}  // namespace mk
