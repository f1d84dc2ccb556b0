#include "optimize/matcher.h"

#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

class MatcherTest : public ::testing::Test {
 protected:
  void graph(const std::string& text) {
    ASSERT_OK_AND(model_, testing::model_of_text("<ir_version: 8, opset_import: [\"\" : 17]>\n" + text));
  }
  // At the node that makes `root`.
  std::optional<Match> match_at(const char* root, const char* text) {
    auto pattern = parse_pattern(text);
    EXPECT_TRUE(pattern.has_value());
    pattern_ = std::move(*pattern);
    near_ = {};
    return match(pattern_, *model_->graph->find(root)->producer(), &near_);
  }
  std::string name(const Value* value) { return value ? value->name() : "-"; }

  std::unique_ptr<Model> model_;
  Pattern pattern_;
  NearMatch near_;
};

TEST_F(MatcherTest, CommutativeOperandsInEitherOrder) {
  graph("g (float[2] x, float[2] z) => (float[2] y) <float two = {2}> { e = Exp(x) a = Mul(two, e) y = Add(z, a) }");
  const auto found = match_at("y", "y = Add(Mul(Exp(x), 2), other)");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(name((*found)["x"]), "x");
  EXPECT_EQ(name((*found)["other"]), "z");
  EXPECT_FALSE(match_at("y", "y = Add(Mul(Exp(x), 3), other)").has_value());
  EXPECT_NE(near_.reason.find("3"), std::string::npos) << near_.reason;
}

TEST_F(MatcherTest, OtherOperandsInTheirOrderOnly) {
  graph("g (float[2] x, float[2] z) => (float[2] y) { e = Exp(x) y = Sub(z, e) }");
  EXPECT_TRUE(match_at("y", "y = Sub(a, Exp(x))").has_value());
  EXPECT_FALSE(match_at("y", "y = Sub(Exp(x), a)").has_value());
}

TEST_F(MatcherTest, AChoiceIsRevisedWhenLaterTermsDoNotHold) {
  // The first operand could be either; only one of them is squared as well.
  graph(
      "g (float[2] x, float[2] z) => (float[2] y) { a = Neg(x) b = Neg(z) s = Mul(b, b) m = Add(a, b) y = Mul(m, s) }");
  const auto found = match_at("y", "m = Add(p, q)\ny = Mul(m, Mul(p, p))");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(name((*found)["p"]), "b");
  EXPECT_EQ(name((*found)["q"]), "a");
}

TEST_F(MatcherTest, AlternativesAndSkippedNodes) {
  const char* pattern = "s = Pow(d, 2) | Mul(d, d)\ny = ReduceMean(Cast?(s))";
  graph("g (float[2] x) => (float y) { s = Mul(x, x) y = ReduceMean(s) }");
  auto found = match_at("y", pattern);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(name((*found)["d"]), "x");
  graph("g (float[2] x) => (double y) <float two = {2}> { s = Pow(x, two) c = Cast<to = 11>(s) y = ReduceMean(c) }");
  found = match_at("y", pattern);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node("s")->op_type, "Pow");
  graph("g (float[2] x, float[2] z) => (float y) { s = Mul(x, z) y = ReduceMean(s) }");
  EXPECT_FALSE(match_at("y", pattern).has_value());
}

TEST_F(MatcherTest, ANameIsTheSameValueEverywhere) {
  graph("g (float[2] x, float[2] z) => (float[2] y) { a = Exp(x) b = Exp(z) y = Sub(a, b) }");
  EXPECT_TRUE(match_at("y", "y = Sub(Exp(p), Exp(q))").has_value());
  EXPECT_FALSE(match_at("y", "y = Sub(Exp(p), Exp(p))").has_value());
}

TEST_F(MatcherTest, ValuesWithinAreNotUsedOutside) {
  graph("g (float[2] x) => (float[2] y, float[2] z) { a = Exp(x) y = Neg(a) z = Abs(a) }");
  EXPECT_FALSE(match_at("y", "a = Exp(x)\ny = Neg(a)").has_value());
  EXPECT_NE(near_.reason.find("a is also used by Abs -> z"), std::string::npos) << near_.reason;
  EXPECT_TRUE(match_at("y", "a* = Exp(x)\ny = Neg(a)").has_value());
}

TEST_F(MatcherTest, ValuesWithinAreNotOutputs) {
  graph("g (float[2] x) => (float[2] y, float[2] a) { a = Exp(x) y = Neg(a) }");
  EXPECT_FALSE(match_at("y", "a = Exp(x)\ny = Neg(a)").has_value());
  EXPECT_NE(near_.reason.find("graph output"), std::string::npos) << near_.reason;
}

TEST_F(MatcherTest, ValuesWithinAreNotCapturedBySubGraphs) {
  graph(
      "g (float[2] x, bool c) => (float[2] y, float[2] z) { a = Exp(x) y = Neg(a) z = If(c) <then_branch = t () => "
      "(float[2] p) { p = Abs(a) }, else_branch = e () => (float[2] q) { q = Abs(x) }> }");
  EXPECT_FALSE(match_at("y", "a = Exp(x)\ny = Neg(a)").has_value());
}

TEST_F(MatcherTest, ConstantsThroughNodesCastAndIdentity) {
  graph(
      "g (float16[2] x) => (float16[2] y) { k = Constant<value_floats = [0.5]>() i = Identity(k) c = Cast<to = 10>(i) "
      "y "
      "= Mul(x, c) }");
  EXPECT_TRUE(match_at("y", "y = Mul(x, 0.5)").has_value());
  const auto found = match_at("y", "y = Mul(k!, x)");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(name((*found)["x"]), "x");
  EXPECT_EQ(found->scalar("k"), 0.5);
}

TEST_F(MatcherTest, AnInitializerThatAnInputOverridesIsNoConstant) {
  graph("g (float[2] x, float k) => (float[2] y) <float k = {0.5}> { y = Mul(x, k) }");
  EXPECT_FALSE(match_at("y", "y = Mul(x, 0.5)").has_value());
  EXPECT_FALSE(match_at("y", "y = Mul(x, k!)").has_value());
}

TEST_F(MatcherTest, AttributesDefaultsAndAxes) {
  graph(
      "g (float[N, S, 4] x) => (float[N, S, 1] y, float[N, S, 4] z) { y = ReduceMean<axes = [2]>(x) z = Softmax(x) }");
  EXPECT_TRUE(match_at("y", "y = ReduceMean(x, axes=-1, keepdims=1)").has_value());
  EXPECT_FALSE(match_at("y", "y = ReduceMean(x, axes=1)").has_value());
  EXPECT_FALSE(match_at("y", "y = ReduceMean(x, axes=-1, keepdims=0)").has_value());
  EXPECT_TRUE(match_at("z", "y = Softmax(x, axis=2)").has_value());
  graph("g (float[N, 4] x) => (float[N, 1] y) <int64[1] a = {-1}> { y = ReduceSum(x, a) }");
  EXPECT_TRUE(match_at("y", "y = ReduceSum(x, axes=1)").has_value());
}

TEST_F(MatcherTest, OptionalAndFurtherInputs) {
  graph("g (float[1, 1, 3, 3] x, float[1, 1, 1, 1] w) => (float[1, 1, 3, 3] y) { y = Conv(x, w) }");
  const auto found = match_at("y", "y = Conv(x, w, b?)");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ((*found)["b"], nullptr);
  EXPECT_FALSE(match_at("y", "y = Conv(x, w, b)").has_value());
  EXPECT_FALSE(match_at("y", "y = Conv(x)").has_value());
  EXPECT_TRUE(match_at("y", "y = Conv(x, ...)").has_value());
}

TEST_F(MatcherTest, SymbolicDimensionsAreNoObstacle) {
  graph("g (float[N, S] x) => (float[N, S] y) { a = Exp(x) y = Neg(a) }");
  const auto found = match_at("y", "a = Exp(x)\ny = Neg(a)");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->rank("x"), 2);
  EXPECT_EQ(found->dim("x", -1), Dim::symbolic("S"));
  EXPECT_EQ(found->dims("x"), std::nullopt);
}

TEST_F(MatcherTest, OperatorsOfOtherDomainsAreOthers) {
  graph("g (float[2] x) => (float[2] y) { y = Neg(x) }");
  EXPECT_FALSE(match_at("y", "y = com.example.Neg(x)").has_value());
  model_->graph->find("y")->producer()->domain = "com.example";
  EXPECT_FALSE(match_at("y", "y = Neg(x)").has_value());
  EXPECT_TRUE(match_at("y", "y = com.example.Neg(x)").has_value());
}

}  // namespace
}  // namespace mk
