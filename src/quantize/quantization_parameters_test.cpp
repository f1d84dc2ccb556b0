#include "quantize/quantization_parameters.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "testing/testing.h"

namespace mk {
namespace {

using Parameters = QuantizationParameters;

Tensor weight(std::vector<std::int64_t> dims, const std::vector<float>& values) {
  return make_tensor("w", DataType::float32, std::move(dims), owned_values(values));
}

template <typename T>
std::vector<int> quantized(const Tensor& tensor, DataType type, std::vector<Parameters> parameters,
                           std::optional<std::size_t> axis = std::nullopt) {
  const auto bytes = read_all(*quantized_weight(tensor, type, std::move(parameters), axis));
  if (!bytes) return {};
  std::vector<int> values;
  for (std::size_t i = 0; i < bytes->size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes->data() + i * sizeof(T), sizeof(T));
    values.push_back(value);
  }
  return values;
}

// The values of onnxruntime.quantization.quant_utils.compute_scale_zp.
TEST(QuantizationParametersTest, ScalesAndZeroPointsOfRanges) {
  EXPECT_EQ(quantization_parameters({-1, 3}, DataType::uint8, false), (Parameters{4.0f / 255, 64}));
  EXPECT_EQ(quantization_parameters({-1, 3}, DataType::int8, false), (Parameters{4.0f / 255, -64}));
  EXPECT_EQ(quantization_parameters({-1, 3}, DataType::int8, true), (Parameters{6.0f / 254, 0}));
  EXPECT_EQ(quantization_parameters({-1, 3}, DataType::uint8, true), (Parameters{6.0f / 255, 128}));
  EXPECT_EQ(quantization_parameters({-1, 3}, DataType::uint16, false), (Parameters{4.0f / 65535, 16384}));
  EXPECT_EQ(quantization_parameters({-1, 3}, DataType::uint16, true), (Parameters{6.0f / 65535, 32768}));
  EXPECT_EQ(quantization_parameters({-1, 3}, DataType::int16, true), (Parameters{6.0f / 65534, 0}));
}

TEST(QuantizationParametersTest, RangesAreWidenedToContainZero) {
  EXPECT_EQ(quantization_parameters({2, 5.1f}, DataType::uint8, false), (Parameters{0.02f, 0}));
  EXPECT_EQ(quantization_parameters({-5.1f, -2}, DataType::uint8, false), (Parameters{0.02f, 255}));
}

TEST(QuantizationParametersTest, EmptyAndDenormalRangesHaveAUsableScale) {
  EXPECT_EQ(quantization_parameters({0, 0}, DataType::uint8, false), (Parameters{1, 0}));
  EXPECT_EQ(quantization_parameters({0, 1e-38f}, DataType::int8, true), (Parameters{1, 0}));
  const float most = std::numeric_limits<float>::max();
  EXPECT_TRUE(std::isfinite(quantization_parameters({-most, most}, DataType::uint8, false).scale));
}

TEST(QuantizationParametersTest, RangesOfChannelsAlongEveryAxis) {
  const Tensor tensor = weight({2, 3, 2}, {1, -2, 3, 4, 5, 6, -7, 8, 9, -10, 11, 12});
  ASSERT_OK_AND(const auto whole, weight_ranges(tensor, std::nullopt));
  EXPECT_EQ(whole, (std::vector<TensorRange>{{-10, 12}}));
  ASSERT_OK_AND(const auto first, weight_ranges(tensor, 0));
  EXPECT_EQ(first, (std::vector<TensorRange>{{-2, 6}, {-10, 12}}));
  ASSERT_OK_AND(const auto middle, weight_ranges(tensor, 1));
  EXPECT_EQ(middle, (std::vector<TensorRange>{{-7, 8}, {-10, 9}, {0, 12}}));
  ASSERT_OK_AND(const auto last, weight_ranges(tensor, 2));
  EXPECT_EQ(last, (std::vector<TensorRange>{{-7, 11}, {-10, 12}}));
}

TEST(QuantizationParametersTest, LongTensorsAreReadInBlocks) {
  std::vector<float> values(3 * 70001);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) * 0.001f;
  values[70000] = -5;
  values[2 * 70001 + 1] = 7;
  const Tensor rows = weight({3, 70001}, values);
  ASSERT_OK_AND(const auto ranges, weight_ranges(rows, 0));
  EXPECT_EQ(ranges[0].low, -5);
  EXPECT_EQ(ranges[1].low, 0);
  EXPECT_EQ(ranges[2].high, 7);
  ASSERT_OK_AND(const auto columns, weight_ranges(rows, 1));
  EXPECT_EQ(columns[70000].low, -5);
  EXPECT_EQ(columns[1].high, 7);
  const Bytes bytes = quantized_weight(rows, DataType::int8, {{1, 0}, {0.001f, 0}, {1, 0}}, 0);
  std::vector<std::byte> part(11);  // at an odd offset, over the border of two channels
  ASSERT_OK(bytes->read(70001 - 3, part));
  EXPECT_EQ(static_cast<std::int8_t>(part[2]), -5);
  EXPECT_EQ(static_cast<std::int8_t>(part[3]), 1);  // element 70001, 0.001
  EXPECT_EQ(static_cast<std::int8_t>(part[10]), 8);
}

TEST(QuantizationParametersTest, NotANumberAndInfinityDoNotStretchARange) {
  const float infinity = std::numeric_limits<float>::infinity();
  ASSERT_OK_AND(const auto ranges, weight_ranges(weight({4}, {NAN, 2, -infinity, -1}), std::nullopt));
  EXPECT_EQ(ranges, (std::vector<TensorRange>{{-1, 2}}));
  EXPECT_EQ(quantized<std::int8_t>(weight({3}, {NAN, infinity, -infinity}), DataType::int8, {{0.1f, 3}}),
            (std::vector<int>{3, 127, -128}));
}

TEST(QuantizationParametersTest, DeadChannelsKeepTheScaleOfTheOthers) {
  const std::vector<TensorRange> ranges{{-1, 1}, {0, 0}, {-2.54f, 1}, {0, 1e-44f}};
  const auto parameters = weight_parameters(ranges, DataType::int8, true);
  EXPECT_FLOAT_EQ(parameters[0].scale, 1.0f / 127);
  EXPECT_FLOAT_EQ(parameters[1].scale, 0.02f);
  EXPECT_FLOAT_EQ(parameters[3].scale, 0.02f);
  EXPECT_EQ(weight_parameters(ranges, DataType::uint8, true)[1].zero_point, 128);
}

TEST(QuantizationParametersTest, ValuesRoundHalfToEvenAndSaturate) {
  const Tensor tensor = weight({6}, {0.25f, 0.75f, -0.25f, 1000, -1000, 0});
  EXPECT_EQ(quantized<std::uint8_t>(tensor, DataType::uint8, {{0.5f, 10}}), (std::vector<int>{10, 12, 10, 255, 0, 10}));
  EXPECT_EQ(quantized<std::int16_t>(tensor, DataType::int16, {{0.01f, -5}}),
            (std::vector<int>{20, 70, -30, 32767, -32768, -5}));
  EXPECT_EQ(quantized<std::uint16_t>(tensor, DataType::uint16, {{0.01f, 5}}),
            (std::vector<int>{30, 80, 0, 65535, 0, 5}));
  EXPECT_EQ(quantized<std::int8_t>(weight({2, 2}, {1, 2, 3, 4}), DataType::int8, {{1, 0}, {0.5f, 1}}, 1),
            (std::vector<int>{1, 5, 3, 9}));
  EXPECT_EQ(quantized<std::int8_t>(weight({2, 2}, {1, 2, 3, 4}), DataType::int8, {{1, 0}, {0.5f, 1}}, 0),
            (std::vector<int>{1, 2, 7, 9}));
}

TEST(QuantizationParametersTest, HalfWeightsAreReadAsFloat) {
  const Tensor full = weight({2}, {1.5f, -2});
  const Tensor half = make_tensor("h", DataType::float16, {2}, cast(full.data, DataType::float32, DataType::float16));
  ASSERT_OK_AND(const auto ranges, weight_ranges(half, std::nullopt));
  EXPECT_EQ(ranges, (std::vector<TensorRange>{{-2, 1.5f}}));
  EXPECT_EQ(quantized<std::int8_t>(half, DataType::int8, {{0.5f, 0}}), (std::vector<int>{3, -4}));
}

}  // namespace
}  // namespace mk
