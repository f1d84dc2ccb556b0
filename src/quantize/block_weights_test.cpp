#include "quantize/block_weights.h"

#include <cmath>

#include "testing/testing.h"

namespace mk {
namespace {

// The right values are those of onnxruntime's quantize_matmul_4bits and quantize_matmul_8bits.

Tensor matrix(std::int64_t rows, std::int64_t columns, const std::vector<float>& values) {
  return make_tensor("w", DataType::float32, {rows, columns}, owned_values(values));
}

std::vector<int> bytes_of(const Tensor& tensor) {
  std::vector<int> values;
  if (const auto bytes = read_all(*tensor.data))
    for (const std::byte byte : *bytes) values.push_back(static_cast<int>(byte));
  return values;
}

std::vector<float> scales_of(const BlockWeight& weight) {
  std::vector<float> scales;
  if (const auto values = number_values(weight.scales))
    for (const double value : *values) scales.push_back(static_cast<float>(value));
  return scales;
}

const std::vector<float> small{0.5f, -1.0f, 0.25f, 3.0f, -0.1f, 0.7f, 0, 0};  // [4, 2]

TEST(BlockWeightsTest, FourBitsSymmetric) {
  ASSERT_OK_AND(const auto made, pack_blocks(matrix(4, 2, small), false, {4, 16, true}));
  EXPECT_EQ(made.packed.dims, (std::vector<std::int64_t>{2, 1, 8}));
  EXPECT_EQ(bytes_of(made.packed), (std::vector<int>{64, 138, 0, 0, 0, 0, 0, 0, 11, 134, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(scales_of(made), (std::vector<float>{-0.0625f, -0.375f}));
  EXPECT_FALSE(made.zero_points.data);
}

TEST(BlockWeightsTest, FourBitsAsymmetric) {
  ASSERT_OK_AND(const auto made, pack_blocks(matrix(4, 2, small), false, {4, 16, false}));
  EXPECT_EQ(bytes_of(made.packed), (std::vector<int>{142, 32, 0, 0, 0, 0, 0, 0, 240, 71, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(scales_of(made), (std::vector<float>{0.0400000028f, 4.0f / 15}));
  EXPECT_EQ(bytes_of(made.zero_points), (std::vector<int>{130, 132}));  // 2 and 4; the other half of a byte is 8
}

TEST(BlockWeightsTest, EightBits) {
  ASSERT_OK_AND(const auto symmetric, pack_blocks(matrix(4, 2, small), false, {8, 16, true}));
  const auto bytes = bytes_of(symmetric.packed);
  EXPECT_EQ(std::vector<int>(bytes.begin(), bytes.begin() + 4), (std::vector<int>{0, 64, 154, 128}));
  EXPECT_EQ(std::vector<int>(bytes.begin() + 16, bytes.begin() + 20), (std::vector<int>{171, 0, 98, 128}));
  EXPECT_EQ(scales_of(symmetric), (std::vector<float>{-0.00390625f, -0.0234375f}));
  ASSERT_OK_AND(const auto asymmetric, pack_blocks(matrix(4, 2, small), false, {8, 16, false}));
  const auto other = bytes_of(asymmetric.packed);
  EXPECT_EQ(std::vector<int>(other.begin(), other.begin() + 3), (std::vector<int>{255, 149, 1}));
  EXPECT_EQ(std::vector<int>(other.begin() + 16, other.begin() + 19), (std::vector<int>{0, 255, 109}));
  EXPECT_EQ(bytes_of(asymmetric.zero_points), (std::vector<int>{43, 64}));
}

TEST(BlockWeightsTest, ATransposedWeightPacksToTheSame) {
  const std::vector<float> transposed{0.5f, 0.25f, -0.1f, 0, -1.0f, 3.0f, 0.7f, 0};  // [2, 4]
  for (const bool symmetric : {true, false}) {
    ASSERT_OK_AND(const auto a, pack_blocks(matrix(4, 2, small), false, {4, 16, symmetric}));
    ASSERT_OK_AND(const auto b, pack_blocks(matrix(2, 4, transposed), true, {4, 16, symmetric}));
    EXPECT_EQ(bytes_of(a.packed), bytes_of(b.packed));
    EXPECT_EQ(scales_of(a), scales_of(b));
  }
}

TEST(BlockWeightsTest, AnOddNumberOfRowsIsPaddedWithTheZeroPoint) {
  ASSERT_OK_AND(const auto made, pack_blocks(matrix(3, 1, {0.5f, 0.25f, -0.1f}), false, {4, 16, true}));
  EXPECT_EQ(bytes_of(made.packed), (std::vector<int>{64, 138, 0, 0, 0, 0, 0, 0}));
}

TEST(BlockWeightsTest, AnyRangeOfTheBytesCanBeRead) {
  std::vector<float> values(70 * 5);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  ASSERT_OK_AND(const auto made, pack_blocks(matrix(70, 5, values), false, {4, 32, false}));
  ASSERT_OK_AND(const auto whole, read_all(*made.packed.data));
  ASSERT_EQ(whole.size(), 5u * 3 * 16);
  for (const std::size_t offset : {0u, 7u, 47u, 48u, 100u}) {
    std::vector<std::byte> part(60);
    ASSERT_OK(made.packed.data->read(offset, part));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)));
  }
}

TEST(BlockWeightsTest, ScalesOfHalfWeightsAreHalf) {
  Tensor weight = matrix(4, 2, small);
  weight.data = cast(weight.data, DataType::float32, DataType::float16);
  weight.type = DataType::float16;
  ASSERT_OK_AND(const auto made, pack_blocks(weight, false, {4, 16, true}));
  EXPECT_EQ(made.scales.type, DataType::float16);
  EXPECT_EQ(scales_of(made), (std::vector<float>{-0.0625f, -0.375f}));
}

}  // namespace
}  // namespace mk
