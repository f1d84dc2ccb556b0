// Activation functions against the values that transformers' ACT2FN gives (tests/data/activations.json).

#include "nn/activation.h"

#include <fmt/format.h>

#include "base/json.h"
#include "golden_case.h"
#include "testing/testing.h"

namespace mk::golden {
namespace {

TEST(ActivationTest, EveryFunctionIsTransformers) {
  ASSERT_OK_AND(const Json json, read_json(testing::repository("tests/data/activations.json")));
  const std::vector<float> x = json.at("x");
  const auto count = static_cast<std::int64_t>(x.size());
  const std::vector<HostTensor> inputs{host_tensor<float>("x", DataType::float32, {count}, x)};
  for (const std::int64_t opset : {13, 18, 20}) {
    for (const auto& [kind, values] : json.at("activations").items()) {
      Model model;
      model.set_opset("", opset);
      const Checkpoint none;
      nn::Weights weights(none, DataType::float32, "", true);
      nn::Builder builder(*model.graph, weights, {.opset = opset});
      const nn::Scope root = builder.root("Model");
      const nn::Value input = builder.input("x", DataType::float32, static_shape({count}));
      builder.output(nn::activation(root, "act", kind, input), "y");
      ASSERT_OK(builder.status());
      ASSERT_OK_AND(const auto got, run(model, inputs));
      const std::vector<float> want = values;
      EXPECT_EQ(difference(got.at("y"), host_tensor<float>("y", DataType::float32, {count}, want), 2e-6, 2e-6), "")
          << kind << " at opset " << opset;
    }
  }
}

TEST(ActivationTest, AnUnknownFunctionIsAnErrorThatNamesTheKnownOnes) {
  Model model;
  const Checkpoint none;
  nn::Weights weights(none, DataType::float32, "", true);
  nn::Builder builder(*model.graph, weights, {});
  const nn::Value input = builder.input("x", DataType::float32, static_shape({1}));
  EXPECT_FALSE(nn::activation(builder.root("Model"), "act", "gleu", input));
  ASSERT_FALSE(builder.status());
  EXPECT_EQ(builder.status().error().code, ErrorCode::malformed);
  EXPECT_NE(builder.status().error().hint.find("gelu_new"), std::string::npos);
}

}  // namespace
}  // namespace mk::golden
