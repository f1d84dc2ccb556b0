#include "quantize/qdq_masks.h"

#include <limits>

#include "quantize/qdq_test_support.h"

namespace mk {
namespace {

using namespace mk::testing;

class QdqMasksTest : public QuantizeTest {};

const std::string head = "<ir_version: 8, opset_import: [\"\" : 17]> ";

TEST_F(QdqMasksTest, SoftmaxGivesTheSameInFloat) {
  const std::string by_factor =
      head +
      "g (float[2,4] x, float[1,4] mask) => (float[2,4] y) <float one = {1.0}, float least = "
      "{-3.4028234663852886e+38}> { off = Sub(one, mask) m = Mul(off, least) s = Add(x, m) y = Softmax(s) }";
  const std::string by_table =
      head +
      "g (float[2,4] x, float[1,4] mask) => (float[2,4] y) <float[2,4] m = {0.0, -10000.0, -10000.0, -10000.0, "
      "0.0, 0.0, -10000.0, -10000.0}> { k = Mul(x, mask) s = Add(m, k) y = Softmax(s) }";
  const std::vector<HostTensor> sample{floats("x", {2, 4}, {1, 20, 3, -4, -1, 0.5f, -2, 30}),
                                       floats("mask", {1, 4}, {1, 1, 0, 1})};
  for (const std::string& text : {by_factor, by_table}) {
    ASSERT_OK_AND(const auto before, model_of_text(text));
    ASSERT_OK_AND(const auto after, model_of_text(text));
    ASSERT_OK_AND(const std::size_t changed, soften_masks(*after));
    EXPECT_EQ(changed, 1u);
    ASSERT_OK_AND(const auto expected, run(*before, sample));
    ASSERT_OK_AND(const auto actual, run(*after, sample));
    EXPECT_EQ(expected, actual);
    ASSERT_OK_AND(const std::size_t again, soften_masks(*after));
    EXPECT_EQ(again, 0u);
  }
}

TEST_F(QdqMasksTest, InfinityIsAMaskToo) {
  ASSERT_OK_AND(
      const auto model,
      model_of_text(head + "g (float[2,4] x, bool[1,4] keep) => (float[2,4] y) <float none = {0.0}, float "
                           "least = {-20000.0}> { m = Where(keep, none, least) s = Add(x, m) y = Softmax(s) }"));
  Value* least = model->graph->find("least");
  const float infinity = -std::numeric_limits<float>::infinity();
  model->graph->set_initializer(least, scalar_tensor("least", infinity));
  ASSERT_OK_AND(const std::size_t changed, soften_masks(*model));
  EXPECT_EQ(changed, 1u);
  ASSERT_OK_AND(const auto values, number_values(*least->initializer()));
  EXPECT_EQ(values, std::vector<double>{mask_value});
}

TEST_F(QdqMasksTest, LargeNumbersThatAreNoMasksStay) {
  for (const char* body : {
           "m = Mul(x, c) y = Add(m, x)",               // no Softmax
           "m = Add(x, c) y = Softmax(m) z = Neg(m)",   // read elsewhere too
           "m = Mul(x, c) n = Tanh(m) y = Softmax(n)",  // no longer a mask
       }) {
    ASSERT_OK_AND(const auto model,
                  model_of_text(head + "g (float[2,4] x) => (float[2,4] y) <float c = {-20000.0}> { " + body + " }"));
    ASSERT_OK_AND(const std::size_t changed, soften_masks(*model));
    EXPECT_EQ(changed, 0u) << body;
  }
}

TEST_F(QdqMasksTest, RangesOfMaskedScores) {
  // Scores keep their range; what is masked saturates 20 below them.
  const auto range = masked_scores_range({-5, 8}, {-1000, 0}, {-1005, 8});
  ASSERT_TRUE(range);
  EXPECT_EQ(*range, (TensorRange{-25, 8}));
  // A bias of positions is no mask.
  EXPECT_FALSE(masked_scores_range({-5, 8}, {-12, 3}, {-17, 9}));
  EXPECT_FALSE(masked_scores_range({-500, 800}, {-1000, 0}, {-1500, 800}));
}

}  // namespace
}  // namespace mk
