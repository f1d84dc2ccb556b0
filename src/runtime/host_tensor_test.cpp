#include "runtime/host_tensor.h"

#include <cmath>
#include <limits>

#include "testing/testing.h"

namespace mk {
namespace {

template <typename T>
std::vector<T> values_of(const HostTensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

// Bits as numpy gives them: np.array([...], np.float32).astype(np.float16).view(np.uint16).
TEST(Converted, HalfRoundsToNearestEven) {
  const std::vector<float> values{0,       -0.0f,   1,    -2,   65504, 65519.996f, 65520,          1e-8f,      5.96e-8f,
                                  3.0e-8f, 6.1e-5f, 0.1f, 2049, 2051,  INFINITY,   1.00048828125f, 0.99975586f};
  const auto tensor = host_tensor<float>("x", DataType::float32, {static_cast<std::int64_t>(values.size())}, values);
  ASSERT_OK_AND(const auto half, converted(tensor, DataType::float16));
  EXPECT_EQ(values_of<std::uint16_t>(half),
            (std::vector<std::uint16_t>{0x0, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 0x0, 0x1, 0x1, 0x3ff,
                                        0x2e66, 0x6800, 0x6802, 0x7c00, 0x3c00, 0x3c00}));
  ASSERT_OK_AND(const auto brain, converted(tensor, DataType::bfloat16));
  EXPECT_EQ(values_of<std::uint16_t>(brain),
            (std::vector<std::uint16_t>{0x0, 0x8000, 0x3f80, 0xc000, 0x4780, 0x4780, 0x4780, 0x322c, 0x3380, 0x3301,
                                        0x3880, 0x3dcd, 0x4500, 0x4500, 0x7f80, 0x3f80, 0x3f80}));
}

TEST(Converted, EveryHalfSurvivesTheRoundTrip) {
  std::vector<std::uint16_t> bits;
  for (std::uint32_t i = 0; i < 65536; ++i)
    if ((i & 0x7c00) != 0x7c00 || (i & 0x3ff) == 0) bits.push_back(static_cast<std::uint16_t>(i));
  const auto half = host_tensor<std::uint16_t>("x", DataType::float16, {static_cast<std::int64_t>(bits.size())}, bits);
  ASSERT_OK_AND(const auto wide, converted(half, DataType::float32));
  ASSERT_OK_AND(const auto back, converted(wide, DataType::float16));
  EXPECT_EQ(values_of<std::uint16_t>(back), bits);
}

TEST(Converted, IntegersKeepTheirValueOrFail) {
  const std::vector<std::int64_t> values{0, -1, 127, std::numeric_limits<std::int64_t>::max()};
  const auto tensor = host_tensor<std::int64_t>("ids", DataType::int64, {4}, values);
  const auto narrow = converted(tensor, DataType::int32);
  ASSERT_FALSE(narrow);
  EXPECT_EQ(narrow.error().where, "ids");
  EXPECT_NE(narrow.error().message.find("value 3 does not fit int32"), std::string::npos);
  EXPECT_FALSE(converted(tensor, DataType::uint64));

  const std::vector<float> reals{-1.9f, 0.5f, 3e9f};
  const auto real = host_tensor<float>("x", DataType::float32, {3}, reals);
  ASSERT_OK_AND(const auto whole, converted(real, DataType::int64));
  EXPECT_EQ(values_of<std::int64_t>(whole), (std::vector<std::int64_t>{-1, 0, 3000000000}));
  EXPECT_FALSE(converted(real, DataType::int32));
  const std::vector<double> not_a_number{std::nan("")};
  EXPECT_FALSE(converted(host_tensor<double>("x", DataType::float64, {1}, not_a_number), DataType::int64));
  const std::vector<double> edge{9223372036854775808.0};
  EXPECT_FALSE(converted(host_tensor<double>("x", DataType::float64, {1}, edge), DataType::int64));

  ASSERT_OK_AND(const auto flags, converted(real, DataType::boolean));
  EXPECT_EQ(values_of<std::uint8_t>(flags), (std::vector<std::uint8_t>{1, 1, 1}));
  ASSERT_OK_AND(const auto counted, converted(flags, DataType::float32));
  EXPECT_EQ(values_of<float>(counted), (std::vector<float>{1, 1, 1}));
}

TEST(Converted, OtherTypesAreRefused) {
  HostTensor text;
  text.name = "text";
  text.type = DataType::string;
  text.dims = {1};
  text.strings = {"a"};
  EXPECT_EQ(converted(text, DataType::float32).error().code, ErrorCode::unsupported);
  EXPECT_EQ(float64_values(text).error().code, ErrorCode::unsupported);
}

TEST(ZeroTensor, SizesAndLimits) {
  ASSERT_OK_AND(const auto tensor, zero_tensor("x", DataType::int4, {3}));
  EXPECT_EQ(tensor.data.size(), 2u);
  EXPECT_FALSE(zero_tensor("x", DataType::float32, {std::int64_t{1} << 40, std::int64_t{1} << 40}));
  EXPECT_FALSE(zero_tensor("x", DataType::float32, {-1}));
}

}  // namespace
}  // namespace mk
