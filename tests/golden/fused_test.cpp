// Every golden case with all fusions: the results stay PyTorch's, and encoders become the few operators that they are.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "golden_case.h"
#include "graph/verifier.h"
#include "optimize/optimizer.h"
#include "testing/testing.h"

namespace mk::golden {
namespace {

OptimizeOptions all_fusions() {
  OptimizeOptions options;
  for (const char* name :
       {"layer-norm-fusion", "simplified-layer-norm-fusion", "embed-layer-norm-fusion", "skip-layer-norm-fusion",
        "residual-skip-layer-norm-fusion", "bias-skip-layer-norm-fusion", "gelu-fusion", "fast-gelu-fusion",
        "quick-gelu-fusion", "bias-gelu-fusion", "attention-fusion"}) {
    EXPECT_TRUE(options.capabilities.set(name, true)) << name;
  }
  return options;
}

std::map<std::string, int> operators_of(const Model& model) {
  std::map<std::string, int> counts;
  for (const Node* node : model.graph->nodes()) ++counts[node->op_type];
  return counts;
}

std::string test_name(const ::testing::TestParamInfo<Path>& info) {
  std::string name = to_utf8(info.param.filename());
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

class FusedGoldenTest : public ::testing::TestWithParam<Path> {
 protected:
  void expect_pytorchs(const BuildRequest& request) {
    ASSERT_OK_AND(const Case c, read_case(GetParam()));
    const double looser = request.options.float_type ? c.half_is_looser_by : 1;
    ASSERT_OK_AND(BuiltGraph built, build(c, request));
    ASSERT_OK_AND(const OptimizeReport report, optimize(built.model, all_fusions()));
    for (const RolledBack& taken : report.rolled_back) ADD_FAILURE() << taken.pass << ": " << taken.reason;
    ASSERT_OK(verify(*built.model));
    ASSERT_OK_AND(const auto got, run(*built.model, c.inputs));
    for (const HostTensor& want : c.outputs)
      EXPECT_EQ(difference(got.at(want.name), want, looser * c.atol, looser * c.rtol), "");
  }
};

TEST_P(FusedGoldenTest, ResultsArePyTorchs) { expect_pytorchs({}); }

TEST_P(FusedGoldenTest, OfSymbolicShapesAndANewOpset) {
  BuildRequest request;
  request.dynamic = true;
  request.options.opset = 21;
  expect_pytorchs(request);
}

TEST_P(FusedGoldenTest, HalfPrecisionIsClose) {
  BuildRequest request;
  request.options.float_type = DataType::float16;
  expect_pytorchs(request);
}

INSTANTIATE_TEST_SUITE_P(Cases, FusedGoldenTest, ::testing::ValuesIn(case_folders("cases")), test_name);
INSTANTIATE_TEST_SUITE_P(Options, FusedGoldenTest, ::testing::ValuesIn(case_folders("option_cases")), test_name);

// Two layers each. Attention takes its linear layers in, SkipLayerNormalization the bias before, BiasGelu its own.
struct Row {
  const char* name;
  std::map<std::string, int> operators;
};

TEST(FusedOperatorsTest, EncodersAreFew) {
  const std::map<std::string, int> layers{
      {"Attention", 2}, {"MatMul", 6}, {"SkipLayerNormalization", 4}, {"BiasGelu", 2}};
  std::map<std::string, int> text = layers;
  text["EmbedLayerNormalization"] = 1;
  const std::map<std::string, int> image{{"Attention", 2}, {"MatMul", 6}, {"BiasGelu", 2}};
  for (const bool dynamic : {false, true}) {
    for (const Row& row : {Row{"bert.feature-extraction", text}, Row{"distilbert.feature-extraction", text},
                           Row{"roberta.feature-extraction", text}, Row{"xlm-roberta.feature-extraction", text},
                           Row{"camembert.feature-extraction", text}, Row{"vit.image-feature-extraction", image},
                           Row{"deit.image-feature-extraction", image}}) {
      ASSERT_OK_AND(const Case c, read_case(testing::repository(std::string("tests/data/cases/") + row.name)));
      BuildRequest request;
      request.dynamic = dynamic;
      ASSERT_OK_AND(BuiltGraph built, build(c, request));
      ASSERT_OK_AND(const OptimizeReport report, optimize(built.model, all_fusions()));
      const std::map<std::string, int> found = operators_of(*built.model);
      for (const auto& [op, count] : row.operators) {
        const auto at = found.find(op);
        EXPECT_EQ(at == found.end() ? 0 : at->second, count) << row.name << ' ' << op << (dynamic ? " dynamic" : "");
      }
      for (const char* part : {"Softmax", "Erf", "Transpose", "Div"}) {
        const bool is_text = row.operators.contains("EmbedLayerNormalization");
        EXPECT_FALSE(is_text && found.contains(part)) << row.name << ' ' << part;
      }
    }
  }
}

// A sequence that is masked entirely gives what it gave before.
TEST(FusedMaskTest, RowsThatAreAllMasked) {
  for (const char* name : {"bert.feature-extraction", "distilbert.feature-extraction", "roberta.feature-extraction"}) {
    ASSERT_OK_AND(Case c, read_case(testing::repository(std::string("tests/data/cases/") + name)));
    for (HostTensor& input : c.inputs) {
      if (input.name == "attention_mask")
        std::fill(input.data.begin(), input.data.begin() + input.dims[1] * 4, std::byte{0});
    }
    ASSERT_OK_AND(BuiltGraph built, build(c));
    ASSERT_OK_AND(const auto want, run(*built.model, c.inputs));
    ASSERT_OK_AND(const OptimizeReport report, optimize(built.model, all_fusions()));
    ASSERT_OK_AND(const auto got, run(*built.model, c.inputs));
    for (const auto& [output, tensor] : want) EXPECT_EQ(difference(got.at(output), tensor, 1e-4, 1e-4), "") << name;
  }
}

}  // namespace
}  // namespace mk::golden
