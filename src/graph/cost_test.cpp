#include "graph/cost.h"

#include "graph/shape_inference.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

GraphCost cost(const std::string& body, const std::map<std::string, std::int64_t, std::less<>>& sizes = {}) {
  auto model = testing::model_of_text("<ir_version: 8, opset_import: [\"\" : 17, \"com.microsoft\" : 1]>\n" + body);
  EXPECT_TRUE(model) << (model ? "" : model.error().to_string());
  if (!model) return {};
  EXPECT_TRUE(infer_shapes(**model));
  return cost_of(*(*model)->graph, sizes);
}

TEST(GraphCost, ConvolutionsAndProducts) {
  // 8 x 4 x 4 results of 3 channels and a kernel of 3 x 3.
  EXPECT_EQ(cost("g (float[1, 3, 6, 6] x, float[8, 3, 3, 3] w) => (float[1, 8, 4, 4] y) { y = Conv(x, w) }").macs,
            8u * 16 * 27);
  // Depthwise: one channel each.
  EXPECT_EQ(
      cost("g (float[1, 8, 6, 6] x, float[8, 1, 3, 3] w) => (float[1, 8, 4, 4] y) { y = Conv<group = 8>(x, w) }").macs,
      8u * 16 * 9);
  EXPECT_EQ(
      cost("g (float[1, 4, 5, 5] x, float[4, 2, 2, 2] w) => (y) { y = ConvTranspose<strides = [2, 2]>(x, w) }").macs,
      4u * 25 * 2 * 4);
  EXPECT_EQ(cost("g (float[2, 3, 5] a, float[5, 7] b) => (float[2, 3, 7] y) { y = MatMul(a, b) }").macs,
            2u * 3 * 5 * 7);
  EXPECT_EQ(cost("g (float[5, 3] a, float[5, 7] b) => (float[3, 7] y) { y = Gemm<transA = 1>(a, b) }").macs,
            3u * 5 * 7);
  EXPECT_EQ(
      cost("g (float[2, 3, 4] a, float[2, 5, 4] b) => (y) { y = Einsum<equation = \"bij,bkj->bik\">(a, b) }").macs,
      2u * 3 * 4 * 5);
  EXPECT_EQ(
      cost("g (float[7, 2, 3] x, float[1, 16, 3] w, float[1, 16, 4] r) => (y) { y = LSTM<hidden_size = 4>(x, w, r) }")
          .macs,
      7u * 2 * (16 * 3 + 16 * 4));
}

TEST(GraphCost, SymbolsAreNamedWhereTheyAreAssumed) {
  const std::string body = "g (float[batch, n, 4] a, float[4, 6] b) => (float[batch, n, 6] y) { y = MatMul(a, b) }";
  const GraphCost unsized = cost(body);
  EXPECT_EQ(unsized.macs, 24u);
  EXPECT_EQ(unsized.assumed, (std::vector<std::string>{"batch", "n"}));
  const GraphCost sized = cost(body, {{"batch", 2}, {"n", 5}});
  EXPECT_EQ(sized.macs, 240u);
  EXPECT_TRUE(sized.assumed.empty());
}

TEST(GraphCost, TheDearerBranchCounts) {
  EXPECT_EQ(cost(R"(g (bool c, float[2, 3] a, float[3, 4] b) => (y) {
    y = If (c) <then_branch = t () => (p) { p = MatMul(a, b) }, else_branch = e () => (q) { q = Identity(a) }>
  })")
                .macs,
            24u);
}

TEST(GraphCost, MemoryIsWhatLivesAtOnce) {
  // x (16 bytes) lives until the Add; a and b are 16 bytes each, c and d too: at most three live at once.
  EXPECT_EQ(cost("g (float[4] x) => (float[4] d) { a = Relu(x)  b = Relu(a)  c = Add(b, x)  d = Relu(c) }")
                .peak_activation_bytes,
            48u);
  // Weights do not count, int4 values are half a byte.
  EXPECT_EQ(cost("g (float[4] x) => (float[4] y) <float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }").peak_activation_bytes,
            32u);
  // What a body captures lives until the node has run, and no longer.
  EXPECT_EQ(cost(R"(g (bool c, float[100] x) => (float[1] z) {
    a = Relu(x)
    y = If (c) <then_branch = t () => (float[1] p) { p = ReduceSum<keepdims = 1>(a) }, else_branch = e () => (float[1] q) { q = ReduceSum<keepdims = 1>(a) }>
    b = Relu(y)
    z = Relu(b)
  })")
                .peak_activation_bytes,
            1u + 400 + 400);
}

}  // namespace
}  // namespace mk
