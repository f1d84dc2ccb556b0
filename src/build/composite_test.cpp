#include "build/composite.h"

#include <fstream>

#include "base/file.h"
#include "base/json.h"
#include "testing/testing.h"

namespace mk {
namespace {

class CompositeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Path checkpoint = testing::repository("tests/data/cases/clip.zero-shot-image-classification");
    for (const auto& [name, task] :
         {std::pair{"image-encoder", "image-feature-extraction"}, std::pair{"text-encoder", "feature-extraction"}}) {
      BuildRequest& build = request.components.emplace_back();
      ASSERT_OK_AND(build.model, resolve_local_model(to_utf8(checkpoint), WantedModel::checkpoint));
      build.config.loader.task = task;
      build.config.loader.model_type = "clip";
      build.submodel = name;
      build.prefix = std::string(name) + "_";
      build.folder = folder / "out";
      build.target = "cpu/cpu";
      build.verify = false;
    }
    request.pipeline_tasks = {"zero-shot-image-classification"};
  }

  testing::TemporaryFolder folder;
  CompositeRequest request;
};

TEST_F(CompositeTest, EachGraphHasItsNameAndOneManifestNamesThem) {
  ASSERT_OK_AND(const CompositeReport report, build_composite(request, silent_progress()));
  EXPECT_EQ(report.manifest_path, folder / "out" / "composite_manifest.json");
  ASSERT_OK_AND(const Json manifest, read_json(report.manifest_path));
  EXPECT_EQ(manifest["components"],
            (Json{{"image-encoder", "image-encoder_model.onnx"}, {"text-encoder", "text-encoder_model.onnx"}}));
  EXPECT_EQ(manifest["pipeline_tasks"], Json({"zero-shot-image-classification"}));
  for (const char* name : {"image-encoder_model.onnx", "image-encoder_winml_build_config.json",
                           "image-encoder_build_manifest.json", "text-encoder_model.onnx", "config.json"})
    EXPECT_TRUE(std::filesystem::exists(folder / "out" / name)) << name;
  ASSERT_OK_AND(const Json text, read_json(folder / "out" / "text-encoder_build_manifest.json"));
  EXPECT_EQ(text["final_artifact"], "text-encoder_model.onnx");

  ASSERT_OK_AND(const CompositeReport again, build_composite(request, silent_progress()));
  for (const auto& [name, built] : again.components) EXPECT_TRUE(built.reused) << name;
}

TEST_F(CompositeTest, OneThatMayNotBeReplacedStopsAll) {
  std::filesystem::create_directories(folder / "out");
  std::ofstream(folder / "out" / "text-encoder_model.onnx") << "mine";
  const auto report = build_composite(request, silent_progress());
  ASSERT_FALSE(report.has_value());
  EXPECT_EQ(report.error().code, ErrorCode::exists);
  EXPECT_FALSE(std::filesystem::exists(folder / "out" / "image-encoder_model.onnx"));
}

}  // namespace
}  // namespace mk
