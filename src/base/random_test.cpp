#include "base/random.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace mk {
namespace {

// The values are those of numpy 2.4's Generator(PCG64(seed)), the calls in this order.
struct Draws {
  std::uint64_t seed;
  std::vector<std::uint64_t> raw;
  std::vector<double> uniform;
  std::vector<std::int64_t> ids;    // integers(0, 30522)
  std::vector<std::int64_t> small;  // integers(-3, 4)
  double after;                     // a uniform after an odd number of halves
  std::vector<std::int64_t> large;  // integers(0, 2**40)
};

TEST(Random, EqualsNumpy) {
  const std::vector<Draws> cases{
      {0,
       {11749869230777074271u, 4976686463289251617u, 755828109848996024u},
       {0.016527635528529094, 0.8132702392002724},
       {19821, 27859, 15371, 18515, 29629},
       {2, 1, 0, 0, 3},
       0.8158535541215322,
       {3011012779, 942725971812, 36927730573}},
      {42,
       {14276969152011380360u, 8095878257575067585u, 15838336090824644132u},
       {0.6973680290593639, 0.09417734788764953},
       {16069, 29777, 22456, 23231, 21898},
       {2, 0, -3, 2, 0},
       0.37079802423258124,
       {1018988881454, 707937186248, 904635960679}},
      {(std::uint64_t{1} << 40) + 7,
       {15307346044642009514u, 4709548916763817589u, 2836937976252648324u},
       {0.6745045458676086, 0.7388407191925654},
       {2884, 14955, 20570, 470, 19755},
       {-3, 1, -3, -2, 3},
       0.3383665949438819,
       {38365691859, 261629024114, 155911758469}},
  };
  for (const Draws& expected : cases) {
    SCOPED_TRACE(expected.seed);
    Random random(expected.seed);
    for (const auto value : expected.raw) EXPECT_EQ(random.next64(), value);
    for (const auto value : expected.uniform) EXPECT_EQ(random.uniform(), value);
    for (const auto value : expected.ids) EXPECT_EQ(random.integer(0, 30522), value);
    for (const auto value : expected.small) EXPECT_EQ(random.integer(-3, 4), value);
    EXPECT_EQ(random.uniform(), expected.after);
    for (const auto value : expected.large) EXPECT_EQ(random.integer(0, std::int64_t{1} << 40), value);
  }
}

TEST(Random, PermutationEqualsNumpy) {
  EXPECT_EQ(Random(42).permutation(3), (std::vector<std::size_t>{2, 1, 0}));
  EXPECT_EQ(Random(0).permutation(3), (std::vector<std::size_t>{2, 0, 1}));
  EXPECT_EQ(Random(42).permutation(10), (std::vector<std::size_t>{5, 6, 0, 7, 3, 2, 4, 9, 1, 8}));
  auto first = Random(7).permutation(1000);
  first.resize(8);
  EXPECT_EQ(first, (std::vector<std::size_t>{816, 923, 151, 900, 213, 100, 851, 503}));
  EXPECT_EQ(Random(42).permutation(0).size(), 0u);
}

TEST(Random, WholeRangeEqualsNumpy) {
  Random random(5);
  const std::vector<std::int64_t> expected{5626310876064179624, 5680504938125105653, 282706702330408384};
  for (const auto value : expected)
    EXPECT_EQ(static_cast<std::int64_t>(random.next64() + (std::uint64_t{1} << 63)), value);
}

TEST(Random, EmptyRangeIsItsLowEnd) { EXPECT_EQ(Random(1).integer(5, 5), 5); }

}  // namespace
}  // namespace mk
