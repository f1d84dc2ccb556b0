// Bodies of If, Loop and Scan, calls of functions, sequences and optionals. Right values are ONNX Runtime's on the
// model before the conversion.

#include "graph/inline_functions.h"
#include "quantize/float16_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

HostTensor flag(std::string name, bool value) {
  return host_tensor<bool>(std::move(name), DataType::boolean, {}, std::array<bool, 1>{value});
}

const Graph& body_of(const Model& model, std::string_view op_type, std::string_view attribute) {
  return *std::get<std::unique_ptr<Graph>>(find_node(model, op_type)->attribute(attribute)->value);
}

std::size_t casts_in(const Graph& graph) {
  return static_cast<std::size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                                [](const Node* node) { return node->op_type == "Cast"; }));
}

// A branch's blocked node takes what is outside: the cast stands in the branch, and the outer value keeps its type.
TEST_F(Float16Test, CastsOfABranchStandInTheBranch) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[2] x, bool b) => (float[2] y) <int64 axis = {0}> {
    a = Relu(x)
    r = If(b) <then_branch = g1 () => (float[2] t) { t = Mul(a, a) },
               else_branch = g2 () => (float[2] e) { e = CumSum(a, axis) }>
    s = Add(r, a)
    y = Neg(s)
  })")));
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(casts_in(*c.model->graph), 2u);  // x and y
  EXPECT_EQ(casts_in(body_of(*c.model, "If", "then_branch")), 0u);
  EXPECT_EQ(casts_in(body_of(*c.model, "If", "else_branch")), 2u);
  for (const bool b : {true, false}) EXPECT_EQ(difference(c, {floats("x", {2}, {1, 3}), flag("b", b)}), "");
}

// What stays float32 outside and is wanted as float16 inside is cast once, outside.
TEST_F(Float16Test, NarrowCastsStandWhereTheValueIs) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[2] x, int64 n) => (float[2] y) <int64 axis = {0}> {
    a = CumSum(x, axis)
    on = Constant<value = bool {1}>()
    y = Loop(n, on, x) <body = l (int64 i, bool cond, float[2] s) => (bool again, float[2] next) {
      again = Identity(cond)
      t = Mul(a, x)
      next = Add(s, t)
    }>
  })")));
  EXPECT_EQ(casts_in(body_of(*c.model, "Loop", "body")), 0u);
  EXPECT_EQ(difference(c, {floats("x", {2}, {1, -0.5}), longs("n", {}, {3})}), "");
}

TEST_F(Float16Test, LoopsCarryFloat16AndStackIt) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[2] x, int64 n) => (float[2] y, float[N, 2] z) {
    on = Constant<value = bool {1}>()
    y, z = Loop(n, on, x) <body = l (int64 i, bool cond, float[2] s) => (bool again, float[2] next, float[2] each)
      <float[2] w = {0.5, 1.5}> {
      again = Identity(cond)
      f = Cast<to = 1>(i)
      k = Mul(s, w)
      next = Add(k, f)
      each = Max(next, w)
    }>
  })")));
  const Graph& body = body_of(*c.model, "Loop", "body");
  EXPECT_EQ(to_string(body.inputs()[2]->type), "float16[2]");
  EXPECT_EQ(body.find("f")->type.element, DataType::float16);
  EXPECT_EQ(difference(c, {floats("x", {2}, {1, -0.5}), longs("n", {}, {4})}), "");
}

TEST_F(Float16Test, ABlockedLoopKeepsItsBody) {
  const std::string text = at_opset(17, R"(g (float[2] x, int64 n) => (float[2] y) {
    a = Relu(x)
    on = Constant<value = bool {1}>()
    [repeat] b = Loop(n, on, a) <body = l (int64 i, bool cond, float[2] s) => (bool again, float[2] next) <float[1] w = {0.5}> {
      again = Identity(cond)
      [inner] t = Mul(s, w)
      next = Add(t, a)
    }>
    y = Neg(b)
  })");
  for (const Float16Options& options :
       {Float16Options{.blocked_nodes = {"repeat"}}, Float16Options{.blocked_ops = std::vector<std::string>{"Loop"}}}) {
    ASSERT_OK_AND(const auto c, convert(text, options));
    const Graph& body = body_of(*c.model, "Loop", "body");
    EXPECT_EQ(body.find("w")->initializer()->type, DataType::float32);
    EXPECT_EQ(casts_in(body), 1u);  // of a, which is float16 outside
    EXPECT_EQ(c.reason("inner"), "inside repeat, which stays float32");
    EXPECT_EQ(difference(c, {floats("x", {2}, {1, -0.5}), longs("n", {}, {3})}), "");
  }
}

TEST_F(Float16Test, ScansOfBothForms) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[2] s, float[3, 2] x) => (float[2] y, float[3, 2] z) {
    y, z = Scan<num_scan_inputs = 1, body = b (float[2] state, float[2] each) => (float[2] next, float[2] out) {
      next = Add(state, each)
      out = Mul(next, next)
    }>(s, x)
  })")));
  EXPECT_EQ(c.report.casts_added, 4u);
  EXPECT_EQ(difference(c, {floats("s", {2}, {1, 2}), floats("x", {3, 2}, {1, 2, 3, 4, 5, 6})}), "");
  // Opset 8: lengths in front, and a batch dimension.
  ASSERT_OK_AND(const auto old,
                convert(at_opset(8, R"(g (float[1, 2] s, float[1, 3, 2] x) => (float[1, 2] y, float[1, 3, 2] z) {
    y, z = Scan<num_scan_inputs = 1, body = b (float[2] state, float[2] each) => (float[2] next, float[2] out) {
      next = Add(state, each)
      out = Mul(next, next)
    }>(, s, x)
  })")));
  EXPECT_EQ(difference(old, {floats("s", {1, 2}, {1, 2}), floats("x", {1, 3, 2}, {1, 2, 3, 4, 5, 6})}), "");
}

// Three scopes, each with what it captures from those outside; an initializer of the middle one read in both.
TEST_F(Float16Test, NestedScopes) {
  ASSERT_OK_AND(
      const auto c,
      convert(
          at_opset(17, R"(g (float[2] x, bool b, int64 n) => (float[2] y) <float[2] w = {0.25, 2.0}, int64 axis = {0}> {
    y = If(b) <then_branch = g1 () => (float[2] t) <float[2] v = {3.0, 0.1}> {
                 on = Constant<value = bool {1}>()
                 t = Loop(n, on, v) <body = l (int64 i, bool cond, float[2] s) => (bool again, float[2] next) {
                   again = Identity(cond)
                   p = CumSum(v, axis)
                   q = Add(p, s)
                   next = Mul(q, w)
                 }>
               },
               else_branch = g2 () => (float[2] e) { e = Identity(x) }>
  })")));
  for (const bool b : {true, false})
    EXPECT_EQ(difference(c, {floats("x", {2}, {1, 3}), flag("b", b), longs("n", {}, {2})}), "");
}

// A branch whose output is a weight of the branch.
TEST_F(Float16Test, WeightsAsOutputsOfBranches) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[2] x, bool b) => (float[2] y) {
    r = If(b) <then_branch = g1 () => (float[2] t) <float[2] t = {3.0, 0.1}> {},
               else_branch = g2 () => (float[2] e) { e = Neg(x) }>
    y = Mul(r, x)
  })")));
  EXPECT_EQ(body_of(*c.model, "If", "then_branch").outputs()[0]->initializer()->type, DataType::float16);
  for (const bool b : {true, false}) EXPECT_EQ(difference(c, {floats("x", {2}, {1, 3}), flag("b", b)}), "");
}

TEST_F(Float16Test, SequencesStayFloat32) {
  ASSERT_OK_AND(const auto c,
                convert(at_opset(17, R"(g (float[4] x) => (float[2] y, float[4] z) <int64 i = {1}, int64 two = {2}> {
    a = Relu(x)
    s = SplitToSequence<axis = 0>(a, two)
    e = SequenceAt(s, i)
    y = Mul(e, e)
    z = ConcatFromSequence<axis = 0>(s)
  })")));
  EXPECT_EQ(c.type("e"), "float32");
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(c.reason("SequenceAt -> e"), "sequences and optionals stay float32");
  EXPECT_EQ(difference(c, {floats("x", {4}, {1, -2, 3, 4})}), "");
}

TEST_F(Float16Test, SequencesThroughALoop) {
  ASSERT_OK_AND(const auto c, convert(at_opset(17, R"(g (float[2] x, int64 n) => (float[N] y) {
    on = Constant<value = bool {1}>()
    empty = SequenceEmpty<dtype = 1>()
    s = Loop(n, on, empty) <body = l (int64 i, bool cond, seq(float[2]) have) => (bool again, seq(float[2]) next) {
      again = Identity(cond)
      f = Cast<to = 1>(i)
      m = Mul(x, f)
      next = SequenceInsert(have, m)
    }>
    y = ConcatFromSequence<axis = 0>(s)
  })")));
  EXPECT_EQ(difference(c, {floats("x", {2}, {1, -2}), longs("n", {}, {3})}), "");
}

TEST_F(Float16Test, OptionalsStayFloat32) {
  ASSERT_OK_AND(const auto c, convert(at_opset(18, R"(g (float[2] x) => (float[2] y) {
    a = Relu(x)
    o = Optional(a)
    b = OptionalGetElement(o)
    y = Mul(b, b)
  })")));
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(difference(c, {floats("x", {2}, {1, -2})}), "");
}

const std::string functions = R"(<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
g (float[2] x) => (float[2] y, float[2] z) <float[2] w = {0.5, 3.0}> {
  [first] a = local.scaled<factor = 2.5>(x, w)
  [second] b, c = local.both(a, w)
  y = Add(b, c)
  z = local.scaled(x)
}
<domain: "local", opset_import: ["" : 17]>
scaled<factor: float = 4.0> (p, q) => (r) {
  k = Constant<value_float: float = @factor>()
  s = Mul(p, k)
  zero = Constant<value_int = 0>()
  t = CumSum(s, zero)
  always = Constant<value = bool {1}>()
  r = If(always) <then_branch = g1 () => (u) { u = Add(t, k) }, else_branch = g2 () => (v) { v = Identity(t) }>
}
<domain: "local", opset_import: ["" : 17, "local" : 1]>
both (p, q) => (n, m) {
  n = Identity(p)
  m = local.scaled<factor = 0.5>(q, p)
}
)";

TEST_F(Float16Test, FunctionsAreInlinedAndConverted) {
  ASSERT_OK_AND(const auto c, convert(functions));
  EXPECT_TRUE(c.model->functions.empty());
  EXPECT_EQ(c.type("w"), "float16");
  EXPECT_EQ(count_nodes(*c.model, "If"), 3u);
  EXPECT_EQ(difference(c, {floats("x", {2}, {1, -2})}), "");
}

// A function for another opset keeps its call, in float32.
TEST_F(Float16Test, FunctionsOfAnotherOpsetStayFloat32) {
  ASSERT_OK_AND(const auto c, convert(R"(<ir_version: 9, opset_import: ["" : 17, "local" : 1]>
g (float[2] x) => (float[2] y) <float[2] w = {0.5, 3.0}> {
  a = Mul(x, w)
  [call] b = local.old(a)
  y = Neg(b)
}
<domain: "local", opset_import: ["" : 13]>
old (p) => (r) { k = Exp(p) r = Exp(k) }
)"));
  EXPECT_EQ(c.model->functions.size(), 1u);
  EXPECT_EQ(c.type("a"), "float16");
  EXPECT_EQ(c.type("b"), "float32");
  EXPECT_FALSE(c.reason("call").empty());
  EXPECT_EQ(difference(c, {floats("x", {2}, {1, -2})}), "");
}

}  // namespace
}  // namespace mk
