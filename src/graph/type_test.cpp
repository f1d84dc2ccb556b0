#include "graph/type.h"

#include <gtest/gtest.h>

namespace mk {
namespace {

TEST(Type, Text) {
  EXPECT_EQ(to_string(Type::tensor(DataType::float32, static_shape({1, 3, 224}))), "float32[1, 3, 224]");
  EXPECT_EQ(to_string(Type::tensor(DataType::int64, Shape{Dim::symbolic("batch"), Dim{}})), "int64[batch, ?]");
  EXPECT_EQ(to_string(Type::tensor(DataType::boolean, Shape{})), "bool[]");
  EXPECT_EQ(to_string(Type::tensor(DataType::float16)), "float16[...]");
  Type sequence;
  sequence.kind = Type::Kind::sequence;
  sequence.inner = std::make_shared<Type>(Type::tensor(DataType::int64, Shape{}));
  EXPECT_EQ(to_string(sequence), "sequence(int64[])");
  EXPECT_EQ(to_string(Type{}), "?");
}

TEST(Type, EqualityLooksInside) {
  Type a;
  a.kind = Type::Kind::sequence;
  a.inner = std::make_shared<Type>(Type::tensor(DataType::int64, Shape{}));
  Type b = a;
  b.inner = std::make_shared<Type>(Type::tensor(DataType::int64, Shape{}));
  EXPECT_EQ(a, b);
  b.inner = std::make_shared<Type>(Type::tensor(DataType::int64));
  EXPECT_FALSE(a == b);
  b.inner = nullptr;
  EXPECT_FALSE(a == b);
}

}  // namespace
}  // namespace mk
