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

std::string hub_slug(std::string id) {
  return to_utf8(artifact_folder({.kind = ModelRefKind::hub_id, .raw = id, .local_path = {}, .id = id}).filename());
}

TEST(CacheKey, FoldersAreNamedAfterTheModel) {
  EXPECT_EQ(hub_slug("microsoft/resnet-50"), "microsoft_resnet-50");
  EXPECT_EQ(hub_slug("bert-base-uncased"), "bert-base-uncased");
  EXPECT_EQ(hub_slug("a/b_c"), "a_b_c");
  EXPECT_EQ(hub_slug("a_b/c"), "a_b_c-02d7306b");  // printf a_b/c | sha256sum
  EXPECT_EQ(hub_slug("a_b_c").size(), std::string("a_b_c-00000000").size());
  EXPECT_NE(hub_slug("a_b_c"), hub_slug("a_b/c"));
}

TEST(CacheKey, LocalModelsOfOneNameHaveTheirOwnFolders) {
  const testing::TemporaryFolder folder;
  const auto slug = [](const Path& path) {
    return to_utf8(artifact_folder({.kind = ModelRefKind::folder, .raw = "./model", .local_path = path}).filename());
  };
  for (const char* name : {"a/model", "b/model"}) std::filesystem::create_directories(folder / name);
  EXPECT_TRUE(slug(folder / "a/model").starts_with("model-"));
  EXPECT_NE(slug(folder / "a/model"), slug(folder / "b/model"));
  EXPECT_EQ(slug(folder / "a/model/"), slug(folder / "b/../a/model"));
}

}  // namespace
}  // namespace mk
