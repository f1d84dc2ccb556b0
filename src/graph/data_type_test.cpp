#include "graph/data_type.h"

#include <gtest/gtest.h>

#include <limits>

namespace mk {
namespace {

TEST(DataType, NamesAreNumpys) {
  EXPECT_EQ(name_of(DataType::float32), "float32");
  EXPECT_EQ(name_of(DataType::boolean), "bool");
  EXPECT_EQ(name_of(DataType::float64), "float64");
  EXPECT_EQ(name_of(static_cast<DataType>(99)), "unknown");
  for (int number = 0; number <= 28; ++number) {
    const auto type = static_cast<DataType>(number);
    EXPECT_EQ(data_type_named(name_of(type)), type) << number;
  }
  EXPECT_EQ(data_type_named("float"), std::nullopt);
}

TEST(DataType, SubByteElementsArePacked) {
  EXPECT_EQ(byte_size(DataType::int4, 3), 2u);
  EXPECT_EQ(byte_size(DataType::uint2, 5), 2u);
  EXPECT_EQ(byte_size(DataType::float6e3m2, 4), 3u);
  EXPECT_EQ(byte_size(DataType::float6e3m2, 5), 4u);
  EXPECT_EQ(byte_size(DataType::complex128, 2), 32u);
  EXPECT_EQ(byte_size(DataType::string, 7), 0u);
  EXPECT_EQ(byte_size(DataType::float32, 0), 0u);
}

TEST(DataType, SizesThatDoNotFitAreNull) {
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(byte_size(DataType::float32, most / 2), std::nullopt);
  EXPECT_EQ(byte_size(DataType::int4, most), std::nullopt);
  EXPECT_EQ(byte_size(DataType::int8, most), most);
}

TEST(DataType, Kinds) {
  EXPECT_TRUE(is_float(DataType::float4e2m1));
  EXPECT_FALSE(is_float(DataType::complex64));
  EXPECT_TRUE(is_integer(DataType::uint2));
  EXPECT_FALSE(is_integer(DataType::boolean));
  EXPECT_FALSE(is_known(DataType::undefined));
  EXPECT_FALSE(is_known(static_cast<DataType>(-1)));
}

}  // namespace
}  // namespace mk
