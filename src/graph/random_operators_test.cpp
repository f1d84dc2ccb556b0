#include "graph/random_operators.h"

#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

bool draws(const std::string& body) {
  const auto model = testing::model_of_text(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[4] x, bool train) => "
      "(float[4] y) <float r = {0.5}, bool no = {0}, bool yes = {1}> { " +
      body + " }");
  EXPECT_TRUE(model) << model.error().to_string();
  return model && draws_random_numbers(**model);
}

TEST(RandomOperators, GeneratorsAndDropoutInTraining) {
  EXPECT_TRUE(draws("y = RandomNormalLike(x)"));
  EXPECT_TRUE(draws("y = Dropout(x, r, yes)"));
  EXPECT_TRUE(draws("y = Dropout(x, r, train)"));
  EXPECT_FALSE(draws("y = Dropout(x, r, no)"));
  EXPECT_FALSE(draws("f = Constant<value = bool {0}>() y = Dropout(x, r, f)"));
  EXPECT_FALSE(draws("y = Dropout(x, r)"));
  EXPECT_FALSE(draws("y = Relu(x)"));
}

}  // namespace
}  // namespace mk
