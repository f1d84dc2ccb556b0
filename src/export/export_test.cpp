#include "export/export.h"

#include <fstream>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "graph/onnx_reader.h"
#include "testing/testing.h"

namespace mk {
namespace {

std::string shapes_of(const std::vector<InputSpec>& inputs) {
  std::string text;
  for (const InputSpec& input : inputs) text += input.name + to_string(input.shape) + " ";
  return text;
}

ExportRequest bert_request() {
  return {.folder = testing::repository("tests/data/cases/bert.fill-mask"), .model_id = "bert"};
}

// max_position_embeddings of the case is 64.
TEST(PlanExport, TextInputsHaveOneShape) {
  ExportRequest request = bert_request();
  ASSERT_OK_AND(const ExportPlan plain, plan_export(request, silent_progress()));
  EXPECT_EQ(shapes_of(plain.inputs), "input_ids[1, 64] attention_mask[1, 64] token_type_ids[1, 64] ");

  request.shapes["sequence_length"] = 16;
  request.config.batch_size = 2;
  ASSERT_OK_AND(const ExportPlan shaped, plan_export(request, silent_progress()));
  EXPECT_EQ(shapes_of(shaped.inputs), "input_ids[2, 16] attention_mask[2, 16] token_type_ids[2, 16] ");

  request.config.input_tensors = {
      {.name = "input_ids", .dtype = {}, .shape = Shape{Dim::symbolic("b"), Dim::known(9)}, .value_range = {}}};
  ASSERT_OK_AND(const ExportPlan patched, plan_export(request, silent_progress()));
  EXPECT_EQ(shapes_of(patched.inputs), "input_ids[b, 9] attention_mask[b, 9] token_type_ids[b, 9] ");

  request.config.input_tensors.clear();
  request.config.dynamic_axes = {{"input_ids", {{1, "s"}}}};
  ASSERT_OK_AND(const ExportPlan dynamic, plan_export(request, silent_progress()));
  EXPECT_EQ(shapes_of(dynamic.inputs), "input_ids[2, s] attention_mask[2, s] token_type_ids[2, s] ");
}

TEST(PlanExport, AnUnknownTaskIsAUsageError) {
  ExportRequest request = bert_request();
  request.task = "image-classification";
  const auto plan = plan_export(request, silent_progress());
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, ErrorCode::usage);
}

TEST(ExportModel, WritesTheModelItsSideFilesAndReports) {
  const testing::TemporaryFolder folder;
  ASSERT_OK_AND(const ExportReport report,
                export_model(bert_request(), {.output = folder / "m.onnx", .with_report = true}, silent_progress()));
  ASSERT_EQ(report.graphs.size(), 1u);
  EXPECT_EQ(report.graphs[0].tagged_nodes, report.graphs[0].nodes);
  EXPECT_EQ(report.graphs[0].tied,
            (std::vector<std::string>{"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}));
  std::vector<std::string> names;
  ASSERT_OK_AND(const auto files, list_folder(folder.path()));
  for (const Path& file : files) names.push_back(to_utf8(file));
  EXPECT_EQ(names, (std::vector<std::string>{"config.json", "m.onnx", "m_htp_export_report.md", "m_htp_metadata.json",
                                             "modules.json"}));

  const auto again = export_model(bert_request(), {.output = folder / "m.onnx"}, silent_progress());
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::exists);
}

TEST(ExportModel, AModelThatFailsItsCheckIsNotWritten) {
  const testing::TemporaryFolder folder;
  ExportRequest request = bert_request();
  request.config.dynamic_axes = {{"input_ids", {{0, "rows"}, {1, "length"}}}};
  ExportDestination destination{.output = folder / "m.onnx"};
  destination.check = [&](const Path& model, const ExportPlan& plan) -> Result<std::string> {
    EXPECT_GT(std::filesystem::file_size(model), 80'000u);  // 20141 float32 parameters
    EXPECT_EQ(plan.symbol_sizes, (std::map<std::string, std::int64_t>{{"rows", 1}, {"length", 64}}));
    return fail(ErrorCode::failed, "it is wrong");
  };
  const auto refused = export_model(request, destination, silent_progress());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "it is wrong");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));

  destination.check = [](const Path&, const ExportPlan&) -> Result<std::string> { return "it is right"; };
  ASSERT_OK_AND(const ExportReport report, export_model(request, destination, silent_progress()));
  EXPECT_EQ(report.graphs[0].check, "it is right");
}

TEST(ExportModel, TagsAndOutputNamesAreThoseOfTheConfig) {
  const testing::TemporaryFolder folder;
  ExportRequest request = bert_request();
  request.config.hierarchy_tag_format = "module_only";
  request.config.output_tensors = {"scores"};
  ASSERT_OK(export_model(request, {.output = folder / "m.onnx"}, silent_progress()));
  ASSERT_OK_AND(const auto model, read_onnx(folder / "m.onnx"));
  ASSERT_EQ(model->graph->outputs().size(), 1u);
  EXPECT_EQ(model->graph->outputs()[0]->name(), "scores");
  EXPECT_EQ(*find(model->metadata, "winml.io.outputs"), R"([{"name": "scores"}])");
  std::set<std::string> tags;
  for_each_node(*model->graph, [&](const Node& node) {
    tags.insert(*find(node.metadata, "winml.hierarchy.tag"));
    EXPECT_EQ(*find(node.metadata, "winml.hierarchy.depth"), "1");
  });
  EXPECT_TRUE(tags.contains("/BertSelfAttention"));
  for (const std::string& tag : tags) EXPECT_EQ(tag.rfind('/'), 0u) << tag;

  request.config.output_tensors = {"input_ids"};
  EXPECT_EQ(export_model(request, {.output = folder / "n.onnx"}, silent_progress()).error().code, ErrorCode::usage);
}

TEST(ExportModel, NeverReplacesWhatItReads) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::copy_file(testing::repository("samples/digits-vit") / name, folder / name);
  }
  const ExportRequest request{.folder = folder.path(), .model_id = "digits"};
  for (const char* name : {"config.json", "model.safetensors"}) {
    const auto report = export_model(request, {.output = folder / name, .overwrite = true}, silent_progress());
    ASSERT_FALSE(report.has_value()) << name;
    EXPECT_EQ(report.error().code, ErrorCode::usage);
    EXPECT_EQ(std::filesystem::file_size(folder / name),
              std::filesystem::file_size(testing::repository("samples/digits-vit") / name));
  }
}

TEST(ExportModel, AHeadWithoutWeightsIsNotWritten) {
  const testing::TemporaryFolder folder;
  ExportRequest request{.folder = testing::repository("tests/data/cases/bert.feature-extraction"),
                        .model_id = "bert",
                        .task = "text-classification"};
  const auto report = export_model(request, {.output = folder / "m.onnx"}, silent_progress());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::malformed);
  EXPECT_NE(report.error().to_string().find("classifier"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

ExportRequest clip_request() {
  return {.folder = testing::repository("tests/data/cases/clip.zero-shot-image-classification"), .model_id = "clip"};
}

std::vector<std::string> names_in(const testing::TemporaryFolder& folder) {
  std::vector<std::string> names;
  const auto files = list_folder(folder.path());
  if (!files) return {files.error().to_string()};
  for (const Path& file : *files) names.push_back(to_utf8(file));
  return names;
}

TEST(ExportModel, WritesTheGraphsOfACompositeTogether) {
  const testing::TemporaryFolder folder;
  const ExportDestination destination{.output = folder / "m.onnx"};
  ASSERT_OK_AND(const ExportReport report, export_model(clip_request(), destination, silent_progress()));
  EXPECT_EQ(names_in(folder),
            (std::vector<std::string>{"config.json", "m_image-encoder.onnx", "m_text-encoder.onnx", "modules.json"}));
  EXPECT_EQ(report.unused, (std::vector<std::string>{"logit_scale"}));
  const Json json = to_json(report);
  EXPECT_EQ(json["pipeline_tasks"], Json({"zero-shot-image-classification"}));
  EXPECT_EQ(json["components"]["text-encoder"]["task"], "feature-extraction");
  EXPECT_EQ(json["files"].size(), 4u);
}

TEST(ExportModel, ACompositeThatMayNotReplaceOneFileWritesNone) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "m_text-encoder.onnx") << "mine";
  const auto report = export_model(clip_request(), {.output = folder / "m.onnx"}, silent_progress());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::exists);
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"m_text-encoder.onnx"}));
}

TEST(ExportModel, ASubmodelIsOneFileUnderItsName) {
  const testing::TemporaryFolder folder;
  ExportRequest request = clip_request();
  request.submodel = "text-encoder";
  ASSERT_OK(export_model(request, {.output = folder / "m.onnx"}, silent_progress()));
  EXPECT_EQ(names_in(folder), (std::vector<std::string>{"config.json", "m_text-encoder.onnx", "modules.json"}));

  request.submodel = "text";
  EXPECT_EQ(export_model(request, {.output = folder / "n.onnx"}, silent_progress()).error().code, ErrorCode::usage);
  request = bert_request();
  request.submodel = "encoder";
  EXPECT_EQ(export_model(request, {.output = folder / "n.onnx"}, silent_progress()).error().code, ErrorCode::usage);
}

TEST(PlanExport, EachGraphOfACompositeTakesWhatIsSaidOfItsTensors) {
  ExportRequest request = clip_request();
  request.config.dynamic_axes = {{"pixel_values", {{0, "b"}}}, {"input_ids", {{1, "s"}}}};
  ASSERT_OK_AND(const ModelConfig config, ModelConfig::read(request.folder));
  ASSERT_OK_AND(const ExportPlans plans, plan_exports(config, request, silent_progress()));
  ASSERT_EQ(plans.graphs.size(), 2u);
  EXPECT_EQ(shapes_of(plans.graphs[0].inputs), "pixel_values[b, 3, 32, 32] ");
  EXPECT_EQ(shapes_of(plans.graphs[1].inputs), "input_ids[1, s] attention_mask[1, s] ");

  request.config.dynamic_axes = {{"bbox", {{0, "b"}}}};
  EXPECT_EQ(plan_exports(config, request, silent_progress()).error().code, ErrorCode::usage);
  request.config.dynamic_axes.clear();
  request.config.output_tensors = {"embeds"};
  EXPECT_EQ(plan_exports(config, request, silent_progress()).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace mk
