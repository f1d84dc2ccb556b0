#pragma once
// For tests: the fixtures of tests/data/checkpoint, whose JSON files hold what PyTorch itself makes of them.

#include <string>
#include <string_view>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "testing/testing.h"

namespace mk::testing {

inline Path fixture(std::string_view name) { return repository("tests/data/checkpoint") / name; }

inline std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte) >> 4];
    text += digits[std::to_integer<std::size_t>(byte) & 15];
  }
  return text;
}

// The tensors of the JSON file, and no other.
inline void expect_tensors(const Checkpoint& checkpoint, std::string_view json_name) {
  ASSERT_OK_AND(const Json expected, read_json(fixture(json_name)));
  EXPECT_EQ(checkpoint.tensors().size(), expected.size());
  for (const auto& [name, row] : expected.items()) {
    SCOPED_TRACE(name);
    const Tensor* tensor = checkpoint.find(name);
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->name, name);
    EXPECT_EQ(name_of(tensor->type), row["type"].get<std::string>());
    EXPECT_EQ(tensor->dims, row["dims"].get<std::vector<std::int64_t>>());
    ASSERT_OK_AND(const auto bytes, read_all(*tensor->data));
    EXPECT_EQ(hex(bytes), row["bytes"].get<std::string>());
  }
}

}  // namespace mk::testing
