#include "graph/symbolic_int.h"

#include <gtest/gtest.h>

#include <limits>

namespace mk {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();

SymbolicInt text(std::string_view t) { return SymbolicInt::of_text(t); }
std::string show(const std::optional<SymbolicInt>& e) { return e ? e->to_string() : "?"; }

TEST(SymbolicInt, SumsAreCanonicalWhateverTheirOrder) {
  EXPECT_EQ(show(add(text("seq"), text("past"))), "past + seq");
  EXPECT_EQ(show(add(text("past"), text("seq"))), "past + seq");
  EXPECT_EQ(show(subtract(text("past + seq"), text("past"))), "seq");
  EXPECT_EQ(show(add(text("h"), text("h"))), "2*h");
  EXPECT_EQ(show(subtract(text("h"), 1)), "h - 1");
  EXPECT_EQ(show(subtract(text("h"), text("h"))), "0");
}

TEST(SymbolicInt, ProductsMultiplyOut) {
  EXPECT_EQ(show(multiply(text("h + 1"), text("h - 1"))), "h*h - 1");
  EXPECT_EQ(show(multiply(text("seq"), text("batch"))), "batch*seq");
  EXPECT_EQ(show(multiply(text("batch"), 0)), "0");
}

TEST(SymbolicInt, TextComesBackAsTheSameExpression) {
  for (const char* t : {"past + seq", "2*h + 1", "floor((h + 1)/2) + 3", "-h + w", "batch*seq", "floor(h/2)*w"}) {
    EXPECT_EQ(text(t).to_string(), t);
    EXPECT_EQ(subtract(text(t), text(t)), SymbolicInt(0)) << t;
  }
  EXPECT_EQ(text("seq+past"), text("past + seq"));
}

TEST(SymbolicInt, NamesThatLookLikeArithmeticStayNames) {
  for (const char* t : {"batch-size", "my dim", "a(b", "x +", "+", "*", "-", "9999999999999999999999*h", "a/b"}) {
    EXPECT_EQ(text(t).to_string(), t);
    EXPECT_FALSE(text(t).is_known()) << t;
  }
  EXPECT_EQ(show(add(text("batch-size"), 1)), "batch-size + 1");
  EXPECT_EQ(show(subtract(text("batch-size + 1"), text("batch-size"))), "1");
}

TEST(SymbolicInt, QuotientsRoundDown) {
  EXPECT_EQ(show(divide_down(7, 2)), "3");
  EXPECT_EQ(show(divide_down(-7, 2)), "-4");
  EXPECT_EQ(show(divide_up(7, 2)), "4");
  EXPECT_EQ(show(divide_down(text("4*h + 6"), 2)), "2*h + 3");
  EXPECT_EQ(show(divide_down(text("h - 1"), 2)), "floor((h + 1)/2) - 1");
  EXPECT_EQ(show(divide_down(text("h"), 2)), "floor(h/2)");
  EXPECT_EQ(show(divide_down(text("h"), 0)), "?");
  EXPECT_EQ(show(divide_down(text("floor((h + 1)/2) + 1"), 2)), "floor((h + 3)/4)");
  EXPECT_EQ(show(divide_down(text("floor(h/2)"), 2)), "floor(h/4)");
  EXPECT_EQ(show(divide_down(text("floor((h - w)/3)"), 2)), "floor((h - w)/6)");
}

TEST(SymbolicInt, ExactQuotientsCancelSymbols) {
  EXPECT_EQ(show(divide_exactly(text("768*batch*seq"), text("12*batch*seq"))), "64");
  EXPECT_EQ(show(divide_exactly(text("batch*seq"), text("seq"))), "batch");
  EXPECT_EQ(show(divide_exactly(text("2*h"), 3)), "?");
  EXPECT_EQ(show(divide_exactly(text("h + 1"), text("h"))), "?");
  EXPECT_EQ(show(divide_exactly(text("past + seq"), text("past + seq"))), "1");
  EXPECT_EQ(show(divide_exactly(0, 0)), "?");
}

TEST(SymbolicInt, OverflowIsUnknown) {
  EXPECT_FALSE(add(most, 1));
  EXPECT_FALSE(multiply(most, 2));
  EXPECT_FALSE(subtract(0, least));
  EXPECT_FALSE(divide_exactly(least, -1));
  EXPECT_FALSE(multiply(SymbolicInt::of_text(std::to_string(most) + "*h"), 2));
  EXPECT_FALSE(divide_up(most, 2));
}

TEST(SymbolicInt, MinimaAreResolvedWhereTheOrderIsKnown) {
  EXPECT_EQ(show(minimum(3, 7)), "3");
  EXPECT_EQ(show(minimum(text("past + seq"), text("past"))), "past");
  EXPECT_EQ(show(minimum(text("seq"), 512)), "min(512, seq)");
  EXPECT_EQ(show(minimum(512, text("seq"))), "min(512, seq)");
  EXPECT_EQ(show(minimum(text("w"), text("h"))), "min(h, w)");
  EXPECT_EQ(show(add(text("min(512, seq)"), text("min(512, seq) - 1"))), "2*min(512, seq) - 1");
}

TEST(SymbolicInt, GrowthIsBounded) {
  std::optional<SymbolicInt> e = text("h + w + 1");
  for (int i = 0; e && i < 64; ++i) e = multiply(*e, *e);
  EXPECT_FALSE(e);
}

TEST(SymbolicInt, SymbolsAreDimensions) {
  EXPECT_TRUE(text("batch").is_non_negative());
  EXPECT_FALSE(text("batch").is_positive());
  EXPECT_TRUE(text("batch + 1").is_positive());
  EXPECT_FALSE(text("seq - 1").is_non_negative());
  EXPECT_TRUE(text("seq - 1").is_non_negative(1));
  EXPECT_TRUE(text("2*seq - 2").is_non_negative(1));
  EXPECT_FALSE(text("seq - 2").is_non_negative(1));
  EXPECT_FALSE(text("floor(seq/2) - 1").is_non_negative(1));
  EXPECT_TRUE(text("floor((h + 1)/2)").is_non_negative());
  EXPECT_FALSE(text("floor((-h + 1)/2)").is_non_negative());
  EXPECT_EQ(SymbolicInt(-3).to_dim(), Dim{});
  EXPECT_EQ(text("past + seq").to_dim(), Dim::symbolic("past + seq"));
}

}  // namespace
}  // namespace mk
