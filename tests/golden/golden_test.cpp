// Every golden case: the graph is well formed, its nodes carry tags of the original's module tree, and ONNX Runtime's
// results are PyTorch's; with fixed and with dynamic shapes, at old and new opsets.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "golden_case.h"
#include "graph/shape_inference.h"
#include "graph/verifier.h"
#include "testing/testing.h"

namespace mk::golden {
namespace {

class GoldenTest : public ::testing::TestWithParam<Path> {
 protected:
  void SetUp() override { ASSERT_OK_AND(case_, read_case(GetParam())); }

  void expect_results(const Model& model, double looser = 1) {
    ASSERT_OK_AND(const auto got, run(model, case_.inputs));
    for (const HostTensor& want : case_.outputs) {
      ASSERT_TRUE(got.contains(want.name)) << want.name;
      EXPECT_EQ(difference(got.at(want.name), want, looser * case_.atol, looser * case_.rtol), "");
    }
  }

  Case case_;
};

std::string test_name(const ::testing::TestParamInfo<Path>& info) {
  std::string name = to_utf8(info.param.filename());
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

TEST_P(GoldenTest, ResultsArePyTorchs) {
  ASSERT_OK_AND(const BuiltGraph built, build(case_));
  ASSERT_OK(verify(*built.model));
  ASSERT_OK(check_onnx(*built.model));
  expect_results(*built.model);
}

TEST_P(GoldenTest, TagsAreTheModuleTrees) {
  ASSERT_OK_AND(const BuiltGraph built, build(case_));
  std::set<std::string> names;
  for (const Node* node : built.model->graph->nodes()) {
    const std::string* tag = find(node->metadata, "winml.hierarchy.tag");
    const std::string* depth = find(node->metadata, "winml.hierarchy.depth");
    ASSERT_TRUE(tag && depth) << node->name;
    EXPECT_GE(std::count(case_.tags.begin(), case_.tags.end(), *tag), 1) << node->name << " has " << *tag;
    EXPECT_EQ(std::to_string(std::count(tag->begin(), tag->end(), '/')), *depth);
    EXPECT_TRUE(node->name.starts_with("/")) << node->name;
    EXPECT_TRUE(names.insert(node->name).second) << node->name;
  }
}

// What the builder says of a value is what ONNX's own functions infer.
TEST_P(GoldenTest, TypesAreThoseInferred) {
  ASSERT_OK_AND(const BuiltGraph built, build(case_));
  std::vector<std::pair<const Value*, Type>> said;
  for (const Node* node : built.model->graph->nodes())
    for (const Value* output : node->outputs()) said.emplace_back(output, output->type);
  for (const auto& [value, type] : said) const_cast<Value*>(value)->type = {};
  ASSERT_OK_AND(const InferenceReport report, infer_shapes(*built.model));
  EXPECT_TRUE(report.notes.empty()) << report.notes.front().node << ": " << report.notes.front().message;
  for (const auto& [value, type] : said) EXPECT_EQ(to_string(type), to_string(value->type)) << value->name();
}

TEST_P(GoldenTest, DynamicShapesGiveTheSame) {
  BuildRequest request;
  request.dynamic = true;
  ASSERT_OK_AND(const BuiltGraph built, build(case_, request));
  ASSERT_OK(verify(*built.model));
  ASSERT_OK(check_onnx(*built.model));
  expect_results(*built.model);
}

TEST_P(GoldenTest, FixedShapesNeedNoShapeOperators) {
  ASSERT_OK_AND(const BuiltGraph built, build(case_));
  for (const Node* node : built.model->graph->nodes()) EXPECT_NE(node->op_type, "Shape") << node->name;
}

TEST_P(GoldenTest, OldAndNewOpsetsGiveTheSame) {
  // Deformable attention samples with GridSample, which is there from opset 16 on.
  const std::int64_t oldest = case_.name.starts_with("rt_detr") ? 16 : 13;
  for (const std::int64_t opset : {oldest, std::int64_t{21}}) {
    BuildRequest request;
    request.options.opset = opset;
    ASSERT_OK_AND(const BuiltGraph built, build(case_, request));
    ASSERT_OK(check_onnx(*built.model));
    expect_results(*built.model);
  }
}

TEST_P(GoldenTest, HalfPrecisionIsClose) {
  BuildRequest request;
  request.options.float_type = DataType::float16;
  ASSERT_OK_AND(const BuiltGraph built, build(case_, request));
  ASSERT_OK(check_onnx(*built.model));
  for (const Value* weight : built.model->graph->initializers())
    EXPECT_TRUE(weight->type.element != DataType::float32 || weight->name().ends_with("inv_freq"))  // of angles
        << weight->name();
  for (const Value* output : built.model->graph->outputs()) EXPECT_EQ(output->type.element, DataType::float32);
  expect_results(*built.model, case_.half_is_looser_by);
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenTest, ::testing::ValuesIn(case_folders("cases")), test_name);
INSTANTIATE_TEST_SUITE_P(Options, GoldenTest, ::testing::ValuesIn(case_folders("option_cases")), test_name);

// Cutting the inputs of a dynamic graph gives what a fixed graph of the smaller shape gives.
TEST(DynamicGoldenTest, AnotherSizeIsThatOfAFixedGraph) {
  for (const char* name : {"cases/bert.token-classification", "cases/xlm-roberta.feature-extraction",
                           "cases/distilbert.question-answering", "option_cases/bert.multiple-choice.types",
                           "option_cases/bert.feature-extraction.relative_key_query",
                           "option_cases/mpnet.feature-extraction.long", "option_cases/vit.image-classification.oblong",
                           "cases/resnet.image-classification", "cases/convnext.image-feature-extraction"}) {
    ASSERT_OK_AND(Case c, read_case(testing::repository(std::string("tests/data/") + name)));
    BuildRequest request;
    request.dynamic = true;
    ASSERT_OK_AND(const BuiltGraph any, build(c, request));
    for (HostTensor& input : c.inputs) {
      const bool image = input.dims.size() == 4, fixed = c.name.starts_with("vit");
      const std::size_t element = input.data.size() / input.element_count();
      std::vector<std::int64_t> dims = input.dims;
      dims[0] = 1;
      if (!image) dims.back() -= 3;
      if (image && !fixed) dims[2] -= 7;
      std::size_t length = element;
      for (const std::int64_t dim : dims) length *= static_cast<std::size_t>(dim);
      input.data.resize(length);  // any values will do: the same for both graphs
      input.dims = std::move(dims);
    }
    ASSERT_OK_AND(const BuiltGraph fixed, build(c));
    ASSERT_OK_AND(const auto got, run(*any.model, c.inputs));
    ASSERT_OK_AND(const auto want, run(*fixed.model, c.inputs));
    for (const auto& [output, tensor] : want) EXPECT_EQ(difference(got.at(output), tensor, 1e-5, 1e-5), "") << name;
  }
}

// Tied weights are one initializer, and the file is about as large as the checkpoint.
TEST(TiedGoldenTest, OneInitializerHasTwoConsumers) {
  for (const char* name : {"bert.fill-mask", "roberta.fill-mask", "distilbert.fill-mask"}) {
    ASSERT_OK_AND(const Case c, read_case(testing::repository(std::string("tests/data/cases/") + name)));
    ASSERT_OK_AND(const BuiltGraph built, build(c));
    std::size_t found = 0;
    for (const Value* weight : built.model->graph->initializers()) {
      if (!weight->name().ends_with("word_embeddings.weight")) continue;
      ++found;
      EXPECT_EQ(weight->uses().size(), 2U);
    }
    EXPECT_EQ(found, 1U) << name;
    EXPECT_FALSE(built.tied.empty());
    EXPECT_TRUE(built.unused.empty()) << built.unused.front();
  }
}

// What masked positions add may be chosen: a graph to be quantized wants a small number, and gives the same.
TEST(MaskGoldenTest, ASmallMaskGivesTheSame) {
  ASSERT_OK_AND(const Case c, read_case(testing::repository("tests/data/cases/bert.feature-extraction")));
  BuildRequest request;
  request.options.mask_value = -100;
  ASSERT_OK_AND(const BuiltGraph built, build(c, request));
  ASSERT_OK_AND(const auto got, run(*built.model, c.inputs));
  EXPECT_EQ(difference(got.at("last_hidden_state"), c.outputs.front(), c.atol, c.rtol), "");
}

}  // namespace
}  // namespace mk::golden
