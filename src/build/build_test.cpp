#include "build/build.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/staging.h"
#include "testing/testing.h"

namespace mk {
namespace {

class BuildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND(request.model,
                  resolve_local_model(to_utf8(testing::repository("samples/digits-vit")), WantedModel::checkpoint));
    request.config.loader.task = "image-classification";
    request.config.loader.model_type = "vit";
    request.folder = folder / "out";
    request.target = "cpu/cpu";
    request.verify = false;
  }

  Result<BuildReport> build() { return build_model(request, silent_progress()); }
  std::string text(const Path& file) { return read_text(file).value_or(""); }

  testing::TemporaryFolder folder;
  BuildRequest request;
};

TEST_F(BuildTest, MakesAFolderThatStandsAlone) {
  ASSERT_OK_AND(const BuildReport report, build());
  EXPECT_FALSE(report.reused);
  EXPECT_EQ(report.reason, "");
  std::vector<std::string> names;
  ASSERT_OK_AND(const auto files, list_folder(request.folder));
  for (const Path& file : files) names.push_back(to_utf8(file));
  EXPECT_EQ(names, (std::vector<std::string>{"build_manifest.json", "config.json", "model.onnx",
                                             "preprocessor_config.json", "winml_build_config.json"}));

  ASSERT_OK_AND(const Json manifest, read_json(request.folder / "build_manifest.json"));
  EXPECT_EQ(manifest["schema_version"], 1);
  EXPECT_EQ(manifest["source"], "hf");
  EXPECT_EQ(manifest["final_artifact"], "model.onnx");
  EXPECT_EQ(manifest["task"], "image-classification");
  EXPECT_EQ(manifest["artifacts"][0]["name"], "model.onnx");
  EXPECT_EQ(manifest["artifacts"][0]["sha256"], sha256_hex(text(request.folder / "model.onnx")));
  // The hash of the sample's weights, by sha256sum.
  EXPECT_EQ(manifest["inputs"]["sources"]["model.safetensors"],
            "15aa984c43464d63fca4428a77168fbd651bc81496619b9f41a497e627a03d5b");
  ASSERT_OK_AND(const Json config, read_json(request.folder / "winml_build_config.json"));
  EXPECT_EQ(config["auto"], false);
}

TEST_F(BuildTest, ReusesWhatIsTheSameAndSaysWhatIsNot) {
  ASSERT_OK(build());
  const auto written = std::filesystem::last_write_time(request.folder / "model.onnx");
  ASSERT_OK_AND(const BuildReport again, build());
  EXPECT_TRUE(again.reused);
  EXPECT_EQ(std::filesystem::last_write_time(request.folder / "model.onnx"), written);

  request.config.exporting->opset_version = 18;
  ASSERT_OK_AND(const BuildReport changed, build());
  EXPECT_FALSE(changed.reused);
  EXPECT_EQ(changed.reason, "the config is another one");

  request.target = "openvino/cpu";
  ASSERT_OK_AND(const BuildReport moved, build());
  EXPECT_EQ(moved.reason, "the target is openvino/cpu, it was built for cpu/cpu");
}

TEST_F(BuildTest, ChangedArtefactsAreBuiltAgain) {
  ASSERT_OK(build());
  const std::string good = text(request.folder / "model.onnx");
  std::string bad = good;
  bad[bad.size() / 2] = static_cast<char>(bad[bad.size() / 2] ^ 1);
  folder.write("out/model.onnx", bad);
  ASSERT_OK_AND(const BuildReport report, build());
  EXPECT_EQ(report.reason, "model.onnx has been changed since it was built");
  EXPECT_EQ(text(request.folder / "model.onnx"), good);

  std::filesystem::remove(request.folder / "model.onnx");
  ASSERT_OK_AND(const BuildReport missing, build());
  EXPECT_FALSE(missing.reused);
  EXPECT_EQ(text(request.folder / "model.onnx"), good);
}

TEST_F(BuildTest, AModelThatNoBuildMadeStays) {
  folder.write("out/model.onnx", "mine");
  const auto report = build();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::exists);
  EXPECT_EQ(text(request.folder / "model.onnx"), "mine");
  request.rebuild = true;
  ASSERT_OK(build());
  EXPECT_NE(text(request.folder / "model.onnx"), "mine");
}

// What another build is about to publish: its model is in place, its manifest is not yet.
TEST_F(BuildTest, WaitsForABuildThatIsMovingItsFilesIn) {
  ASSERT_OK(build());
  const std::string manifest = text(request.folder / "build_manifest.json");
  std::filesystem::remove(request.folder / "build_manifest.json");
  std::optional<FolderLock> lock(FolderLock::take(request.folder));
  ASSERT_EQ(lock->state(), FolderLock::State::held);
  auto second = std::async(std::launch::async, [&] { return build(); });
  EXPECT_EQ(second.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  folder.write("out/build_manifest.json", manifest);
  lock.reset();
  ASSERT_OK_AND(const BuildReport report, second.get());
  EXPECT_TRUE(report.reused);
}

TEST_F(BuildTest, ASideFileOfTheUsersStays) {
  folder.write("out/preprocessor_config.json", "{\"mine\": true}");
  ASSERT_OK(build());
  EXPECT_EQ(text(request.folder / "preprocessor_config.json"), "{\"mine\": true}");
}

TEST_F(BuildTest, StagesThatThisVersionLacksAreRefused) {
  request.config.compile = CompileConfig{.execution_provider = "qnn"};
  const auto report = build();
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::usage);
  EXPECT_EQ(report.error().where, "#/compile");
  EXPECT_FALSE(std::filesystem::exists(request.folder));
}

TEST_F(BuildTest, TheManifestSaysWhatTheStagesDid) {
  request.config.quant = QuantConfig{.mode = "fp16"};
  request.keep_intermediates = true;
  ASSERT_OK_AND(const BuildReport report, build());
  ASSERT_OK_AND(const Json manifest, read_json(report.manifest_path));
  const Json& stages = manifest["stages"];
  ASSERT_EQ(stages.size(), 5U);
  EXPECT_EQ(stages[1]["name"], "optimize");
  EXPECT_EQ(stages[1]["details"]["nodes_before"], 140);  // as exported
  EXPECT_LT(stages[1]["details"]["nodes_after"], 140);
  EXPECT_EQ(stages[1]["details"]["passes"]["gelu-fusion"], 4);  // one per layer
  EXPECT_EQ(stages[2]["name"], "quantize");
  EXPECT_EQ(stages[2]["details"]["passes"][0]["mode"], "fp16");
  EXPECT_EQ(artifacts_of(report.manifest, "intermediate"),
            (std::vector<std::string>{"export.onnx", "optimized.onnx", "quantized.onnx"}));
  // 142,026 parameters of 2 bytes, where float32 has 4.
  EXPECT_LT(report.bytes, 142026U * 2 + 40000);
  EXPECT_GT(std::filesystem::file_size(request.folder / "optimized.onnx"), 142026U * 4);

  request.keep_intermediates = false;
  ASSERT_OK(build());
  EXPECT_FALSE(std::filesystem::exists(request.folder / "optimized.onnx"));
}

TEST_F(BuildTest, IntermediatesReplaceOnlyTheirLike) {
  folder.write("out/optimized.onnx", "mine");
  request.keep_intermediates = true;
  const auto refused = build();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::exists);
  EXPECT_EQ(text(request.folder / "optimized.onnx"), "mine");
  std::filesystem::remove(request.folder / "optimized.onnx");
  ASSERT_OK(build());
  request.config.exporting->opset_version = 18;
  ASSERT_OK(build());

  BuildRequest onto_source = request;
  ASSERT_OK_AND(onto_source.model, resolve_local_model(to_utf8(request.folder / "optimized.onnx"), WantedModel::onnx));
  onto_source.config.exporting.reset();
  const auto onto_itself = build_model(onto_source, silent_progress());
  ASSERT_FALSE(onto_itself.has_value());
  EXPECT_EQ(onto_itself.error().code, ErrorCode::usage);

  folder.write("out/optimized.onnx", "mine again");
  request.keep_intermediates = false;
  ASSERT_OK(build());
  EXPECT_EQ(text(request.folder / "optimized.onnx"), "mine again");
  EXPECT_FALSE(std::filesystem::exists(request.folder / "export.onnx"));
}

TEST_F(BuildTest, OtherCalibrationDataIsAReasonToBuildAgain) {
  const Path data = folder / "calibration";
  const Path digits = testing::repository("samples/digits/test.parquet");
  std::filesystem::create_directories(data);
  std::filesystem::copy_file(digits, data / "train.parquet");
  request.config.quant =
      QuantConfig{.calibration_data = to_utf8(data), .task = "image-classification", .model_id = "digits-vit"};
  ASSERT_OK(build());
  ASSERT_OK_AND(const BuildReport same, build());
  EXPECT_TRUE(same.reused);
  std::filesystem::copy_file(digits, data / "more.parquet");
  ASSERT_OK_AND(const BuildReport again, build());
  EXPECT_FALSE(again.reused);
  EXPECT_NE(again.reason.find("more.parquet"), std::string::npos) << again.reason;
}

TEST_F(BuildTest, AQuantizedModelIsNotQuantizedAgain) {
  request.config.quant = QuantConfig{.task = "image-classification", .model_id = "digits-vit"};
  ASSERT_OK(build());
  BuildRequest second = request;
  ASSERT_OK_AND(second.model, resolve_local_model(to_utf8(request.folder / "model.onnx"), WantedModel::onnx));
  second.config.exporting.reset();
  second.folder = folder / "second";
  ASSERT_OK_AND(const BuildReport report, build_model(second, silent_progress()));
  const StageRecord& stage = report.manifest.stages[2];
  EXPECT_EQ(stage.name, "quantize");
  EXPECT_FALSE(stage.completed);
  EXPECT_EQ(stage.reason, "the model is quantized already");
}

TEST_F(BuildTest, AnOnnxFileIsTakenByteForByte) {
  ASSERT_OK(build());
  BuildRequest from_onnx = request;
  ASSERT_OK_AND(from_onnx.model, resolve_local_model(to_utf8(request.folder / "model.onnx"), WantedModel::onnx));
  from_onnx.config.exporting.reset();
  from_onnx.folder = folder / "second";
  ASSERT_OK_AND(const BuildReport report, build_model(from_onnx, silent_progress()));
  EXPECT_EQ(text(from_onnx.folder / "model.onnx"), text(request.folder / "model.onnx"));
  EXPECT_EQ(report.manifest.source, "onnx");

  from_onnx.folder = request.folder;
  from_onnx.rebuild = true;
  const auto onto_itself = build_model(from_onnx, silent_progress());
  ASSERT_FALSE(onto_itself.has_value());
  EXPECT_EQ(onto_itself.error().code, ErrorCode::usage);
  EXPECT_TRUE(std::filesystem::exists(request.folder / "model.onnx"));
}

// The case's 64 positions take no sequence of 128.
TEST_F(BuildTest, ADynamicModelIsTriedWithTheSizesOfItsOwn) {
  ASSERT_OK_AND(request.model, resolve_local_model(to_utf8(testing::repository("tests/data/cases/bert.fill-mask")),
                                                   WantedModel::checkpoint));
  request.config.loader.task = "fill-mask";
  request.config.loader.model_type = "bert";
  request.config.exporting->dynamic_axes = {{"input_ids", {{0, "batch"}, {1, "sequence"}}}};
  request.verify = true;
  ASSERT_OK_AND(const BuildReport report, build());
  EXPECT_EQ(report.manifest.stages.back().name, "verify");
  EXPECT_TRUE(report.manifest.stages.back().completed);
}

TEST_F(BuildTest, AFailureLeavesWhatWasThere) {
  ASSERT_OK(build());
  const std::string before = text(request.folder / "model.onnx");
  request.config.exporting->input_tensors = {{.name = "no_such_input"}};
  EXPECT_FALSE(build().has_value());
  EXPECT_EQ(text(request.folder / "model.onnx"), before);
  ASSERT_OK_AND(const auto files, list_folder(request.folder));
  EXPECT_EQ(files.size(), 5u);
}

}  // namespace
}  // namespace mk
