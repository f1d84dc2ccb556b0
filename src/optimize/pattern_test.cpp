#include "optimize/pattern.h"

#include "testing/testing.h"

namespace mk {
namespace {

TEST(Pattern, LinesNamesAndNestedCalls) {
  ASSERT_OK_AND(const Pattern pattern, parse_pattern(R"(
    d* = Sub(x, mean)
    y = Add(Mul(d, 2), com.microsoft.Gelu(x))
  )"));
  ASSERT_EQ(pattern.lines.size(), 4u);  // two of them nested
  const std::uint32_t d = pattern.find("d"), y = pattern.find("y");
  ASSERT_NE(d, Pattern::none);
  EXPECT_TRUE(pattern.lines[pattern.names[d].line].shared);
  EXPECT_FALSE(pattern.lines[pattern.names[y].line].shared);
  EXPECT_EQ(pattern.names[y].line, pattern.root);
  EXPECT_EQ(pattern.names[pattern.find("x")].line, Pattern::none);
  EXPECT_EQ(pattern.find("nothing"), Pattern::none);
  const PatternCall& add = pattern.lines[pattern.root].alternatives.front();
  const PatternCall& gelu = pattern.lines[pattern.names[add.inputs[1].name].line].alternatives.front();
  EXPECT_EQ(gelu.domain, "com.microsoft");
  EXPECT_EQ(gelu.op_type, "Gelu");
  const PatternCall& mul = pattern.lines[pattern.names[add.inputs[0].name].line].alternatives.front();
  EXPECT_EQ(mul.inputs[1].kind, PatternTerm::Kind::number);
  EXPECT_EQ(mul.inputs[1].number, 2);
}

TEST(Pattern, AttributesAlternativesAndMarks) {
  ASSERT_OK_AND(const Pattern pattern, parse_pattern(R"(a, b = Split(Cast?(x), s!, axis=-1)
    y = Transpose(a, perm=[0, 2, 1], mode="linear") | Conv(a, _, k?, ...)
  )"));
  const PatternLine& split = pattern.lines[pattern.names[pattern.find("a")].line];
  EXPECT_EQ(split.outputs.size(), 2u);
  EXPECT_EQ(pattern.names[pattern.find("b")].output, 1u);
  const PatternCall& call = split.alternatives.front();
  EXPECT_TRUE(call.inputs[1].constant);
  EXPECT_FALSE(call.inputs[0].constant);
  EXPECT_EQ(std::get<double>(call.attributes.at(0).value), -1);
  EXPECT_TRUE(pattern.lines[pattern.names[call.inputs[0].name].line].alternatives.front().skippable);
  const auto& alternatives = pattern.lines[pattern.root].alternatives;
  ASSERT_EQ(alternatives.size(), 2u);
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(alternatives[0].attributes.at(0).value),
            (std::vector<std::int64_t>{0, 2, 1}));
  EXPECT_EQ(std::get<std::string>(alternatives[0].attributes.at(1).value), "linear");
  EXPECT_TRUE(alternatives[1].open_ended);
  EXPECT_EQ(alternatives[1].inputs[1].kind, PatternTerm::Kind::anything);
  EXPECT_TRUE(alternatives[1].inputs[2].optional);
}

TEST(Pattern, SaysWhereItIsWrong) {
  const struct {
    const char* text;
    const char* place;
  } cases[] = {
      {"", "line 1"},
      {"y = ", "an operator"},
      {"y = Add(a, b", "')'"},
      {"y Add(a)", "'='"},
      {"y = Add(a)\ny = Mul(a)", "no other line defines"},
      {"y = Add(a) b", "the end of the line"},
      {"x = Add(a, axis=)", "a number"},
  };
  for (const auto& c : cases) {
    const auto parsed = parse_pattern(c.text);
    ASSERT_FALSE(parsed.has_value()) << c.text;
    EXPECT_EQ(parsed.error().code, ErrorCode::usage);
    EXPECT_NE(parsed.error().to_string().find(c.place), std::string::npos) << parsed.error().to_string();
  }
}

}  // namespace
}  // namespace mk
