#include "build/cache_key.h"

#include "base/json.h"
#include "testing/testing.h"

namespace mk {
namespace {

BuildConfig config_named(const char* name) {
  auto config = read_build_config(testing::repository("tests/data/config") / name, silent_progress());
  EXPECT_TRUE(config) << config.error().to_string();
  return config ? *config : BuildConfig{};
}

// The expected keys come from Python: sha256(json.dumps(document, sort_keys=True))[:16] of the same files.
TEST(CacheKey, IsTheHashOfPythonsCanonicalJson) {
  EXPECT_EQ(config_hash(config_named("config_bert-base.json")), "970e06f4f2b62587");
  EXPECT_EQ(config_hash(config_named("config_resnet50_int8.json")), "4c6dc970e9128e49");
  EXPECT_EQ(config_hash(config_named("config_from_onnx.json")), "4f2589e2b263dbf3");
}

TEST(CacheKey, AutoDoesNotCount) {
  BuildConfig config = config_named("config_resnet50.json");
  const std::string before = config_hash(config);
  config.automatic = false;
  EXPECT_EQ(config_hash(config), before);
  config.skip_optimize = true;
  EXPECT_NE(config_hash(config), before);
}

// sha256('{"export": {..., "dynamic_axes": {"x": {"2": "a", "10": "b"}}, ...}}'): axis numbers sort as numbers.
TEST(CacheKey, AxesSortAsNumbers) {
  BuildConfig config;
  config.exporting = ExportConfig{};
  config.exporting->dynamic_axes = {{"x", {{10, "b"}, {2, "a"}}}};
  EXPECT_EQ(config_hash(config), "aec12923eef7a9b7");
}

TEST(CacheKey, NamesTheTaskAndDeviations) {
  const BuildConfig config = config_named("config_resnet50.json");
  const std::string plain = cache_key("image-classification", config);
  EXPECT_EQ(plain, "imgcls_" + config_hash(config));
  EXPECT_EQ(cache_key("inpainting", config), "inpainti_" + config_hash(config));
  EXPECT_EQ(cache_key("image-classification", config, {.dtype = "fp16"}), plain + "_ca81ed69");
  EXPECT_EQ(cache_key("image-classification", config, {.dtype = "fp32"}), plain);
}

TEST(CacheKey, FoldersAreNamedAfterTheModel) {
  EXPECT_EQ(artifact_folder("microsoft/resnet-50").filename(), "microsoft_resnet-50");
  EXPECT_EQ(artifact_folder("").filename(), "random-init");
  EXPECT_EQ(artifact_folder("..").filename(), "_..");
  EXPECT_EQ(artifact_folder("a\\b").parent_path().filename(), "artifacts");
}

}  // namespace
}  // namespace mk
