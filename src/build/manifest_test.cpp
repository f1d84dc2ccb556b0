#include "build/manifest.h"

#include "base/json.h"
#include "testing/testing.h"

namespace mk {
namespace {

constexpr std::string_view text = R"({"schema_version": 1, "source": "hf", "final_artifact": "model.onnx",
  "stages": [{"name": "export", "status": "completed", "elapsed_seconds": 0.012},
             {"name": "verify", "status": "skipped", "reason": "--no-verify"}],
  "model_id": "org/name", "revision": "0123", "task": "fill-mask", "cache_key": "mask_0123456789abcdef",
  "config_hash": "0123456789abcdef", "elapsed_seconds": 1.5, "timestamp": "2026-11-30T19:50:52+00:00",
  "inputs": {"tool_version": "0.1.0", "config_hash": "aa", "target": "cpu/cpu", "sources": {"model.safetensors": "bb"}},
  "artifacts": [{"name": "model.onnx", "role": "model", "bytes": 10, "sha256": "cc"}],
  "analyze_iterations": 3})";

TEST(Manifest, KeepsEveryKeyOnARoundTrip) {
  const Json json = Json::parse(text);
  ASSERT_OK_AND(const Manifest manifest, parse_manifest(json, "build_manifest.json"));
  EXPECT_EQ(manifest.stages.size(), 2u);
  EXPECT_FALSE(manifest.stages[1].completed);
  EXPECT_EQ(artifacts_of(manifest, "model"), std::vector<std::string>{"model.onnx"});
  EXPECT_EQ(to_json(manifest), json);
}

TEST(Manifest, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../model.onnx", "/etc/passwd", "a/../../b"}) {
    Json json = Json::parse(text);
    json["artifacts"][0]["name"] = name;
    EXPECT_FALSE(parse_manifest(json, "m").has_value()) << name;
    json = Json::parse(text);
    json["final_artifact"] = name;
    EXPECT_FALSE(parse_manifest(json, "m").has_value()) << name;
  }
}

TEST(Manifest, SaysWhatIsDifferent) {
  const BuildInputs before{"0.1.0", "aa", "cpu/cpu", {{"model.safetensors", "bb"}, {"config.json", "cc"}}};
  EXPECT_EQ(difference(before, before), "");
  BuildInputs now = before;
  now.sources["model.safetensors"] = "dd";
  EXPECT_EQ(difference(before, now), "model.safetensors has changed");
  now = before;
  now.sources.erase("config.json");
  EXPECT_EQ(difference(before, now), "config.json is no longer in the source");
  now = before;
  now.config_hash = "ee";
  EXPECT_EQ(difference(before, now), "the config is another one");
  now = before;
  now.target = "qnn/npu";
  EXPECT_EQ(difference(before, now), "the target is qnn/npu, it was built for cpu/cpu");
}

TEST(Manifest, AnUnreadableOneCountsAsNone) {
  const testing::TemporaryFolder folder;
  std::string problem;
  EXPECT_FALSE(find_manifest(folder.path(), "", problem).has_value());
  EXPECT_EQ(problem, "");
  folder.write("build_manifest.json", "{\"schema_version\": 2}");
  EXPECT_FALSE(find_manifest(folder.path(), "", problem).has_value());
  EXPECT_NE(problem.find("schema_version"), std::string::npos);
}

}  // namespace
}  // namespace mk
