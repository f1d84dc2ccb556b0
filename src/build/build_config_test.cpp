#include "build/build_config.h"

#include "base/file.h"
#include "base/json.h"
#include "testing/testing.h"
#include "testing/warnings.h"

namespace mk {
namespace {

class Config : public ::testing::Test {
 protected:
  Result<BuildConfig> parse(std::string_view text) {
    auto json = parse_json(text, "c.json", ErrorCode::usage);
    if (!json) return tl::make_unexpected(json.error());
    return parse_build_config(JsonView(*json, "c.json", ErrorCode::usage), listener);
  }
  std::string error(std::string_view text) {
    const auto config = parse(text);
    return config ? "" : config.error().to_string();
  }
  // The quant section after a merge, as JSON.
  Result<BuildConfig> merged(std::string_view base, std::string_view over) {
    auto config = parse(base);
    if (!config) return config;
    auto json = parse_json(over, "over.json", ErrorCode::usage);
    if (!json) return tl::make_unexpected(json.error());
    return merge_build_config(*config, JsonView(*json, "over.json", ErrorCode::usage), listener);
  }
  testing::Warnings listener;
};

// Files that the Python tool wrote come back byte for byte.
TEST_F(Config, KeepsTheDocumentsOfThePythonTool) {
  ASSERT_OK_AND(const auto files, list_folder(testing::repository("tests/data/config")));
  std::size_t seen = 0;
  for (const Path& name : files) {
    if (name.extension() != ".json") continue;
    ASSERT_OK_AND(const std::string text, read_text(testing::repository("tests/data/config") / name));
    ASSERT_OK_AND(const BuildConfig config, parse(text));
    EXPECT_EQ(dump_json(to_json(config)), text.substr(0, text.find_last_not_of('\n') + 1)) << name;
    ++seen;
  }
  EXPECT_EQ(seen, 13u);
  EXPECT_TRUE(listener.messages.empty()) << listener.messages.front();
}

TEST_F(Config, AbsentIsNotNull) {
  ASSERT_OK_AND(const BuildConfig absent, parse("{}"));
  EXPECT_TRUE(absent.automatic);
  EXPECT_TRUE(absent.exporting.has_value());
  EXPECT_EQ(absent.exporting->opset_version, 17);
  EXPECT_TRUE(absent.optim.has_value());
  EXPECT_FALSE(absent.quant.has_value());
  ASSERT_OK_AND(const BuildConfig null, parse(R"({"export": null, "optim": null, "loader": null, "quant": null})"));
  EXPECT_FALSE(null.exporting.has_value());
  EXPECT_FALSE(null.optim.has_value());
}

TEST_F(Config, PrintsInTheOrderOfTheContract) {
  ASSERT_OK_AND(const BuildConfig config,
                parse(R"({"runtime": {"pipeline": "inpainting", "options": {"mask_semantics": "nonzero-is-hole"}},
                          "eval": {"mode": "compare"}, "loader": {"model_type": "bert", "task": "fill-mask"},
                          "optim": {"gelu_fusion": true, "clamp_constant_values": false, "level": 2},
                          "skip_optimize": true, "auto": false, "export": null})"));
  EXPECT_EQ(dump_json(to_json(config), -1),
            R"({"auto": false, "skip_optimize": true, "export": null, "optim": {"clamp_constant_values": false, )"
            R"("gelu_fusion": true, "level": 2}, "quant": null, "compile": null, "loader": {"task": "fill-mask", )"
            R"("model_type": "bert"}, "eval": {"mode": "compare"}, "runtime": {"pipeline": "inpainting", )"
            R"("options": {"mask_semantics": "nonzero-is-hole"}}})");
}

TEST_F(Config, ReadsOldSpellings) {
  ASSERT_OK_AND(const BuildConfig config, parse(R"({"quant": {"mode": "qdq", "calibration_samples": 32},
                          "compile": {"ep_config": {"provider": "qnn", "embed_context": true}}})"));
  EXPECT_EQ(config.quant->mode, "static");
  EXPECT_EQ(config.quant->samples, 32);
  EXPECT_EQ(config.compile->execution_provider, "qnn");
  EXPECT_TRUE(config.compile->embed_context);
  EXPECT_TRUE(listener.messages.empty());
}

TEST_F(Config, UnknownKeysWarnWithPlaceAndNearestKey) {
  ASSERT_OK(parse(R"({"quant": {"sampels": 4}, "optm": {}, "loader": {"tusk": "x", "q": 1}})"));
  EXPECT_EQ(listener.messages, (std::vector<std::string>{
                                   "unknown key 'optm' is ignored (c.json#/optm). Did you mean 'optim'?",
                                   "unknown key 'sampels' is ignored (c.json#/quant/sampels). Did you mean 'samples'?",
                                   "unknown key 'tusk' is ignored (c.json#/loader/tusk). Did you mean 'task'?",
                                   "unknown key 'q' is ignored (c.json#/loader/q)",
                               }));
}

TEST_F(Config, ErrorsPoint) {
  EXPECT_EQ(error(R"({"quant": {"mode": "static8"}})"),
            "unknown value 'static8' (c.json#/quant/mode). Expected one of static, dynamic, rtn, fp16");
  EXPECT_EQ(error(R"({"quant": {"samples": "ten"}})"), "expected an integer, got \"ten\" (c.json#/quant/samples)");
  EXPECT_EQ(error(R"({"quant": []})"), "expected an object, got an array of 0 (c.json#/quant)");
  EXPECT_EQ(error(R"({"optim": {"gelu_fusion": "yes"}})"),
            "expected true, false or a number, got \"yes\" (c.json#/optim/gelu_fusion)");
  EXPECT_EQ(error(R"({"compile": {"ep_device": {"source": "apt"}}})"),
            "unknown value 'apt' (c.json#/compile/ep_device/source). Expected one of bundled, pypi, nuget, msix, "
            "winml-catalog, directory");
  EXPECT_EQ(error(R"({"runtime": {"pipeline": "inpainting", "options": {"mask_semantic": 1}}})"),
            "unknown key 'mask_semantic' (c.json#/runtime/options). Did you mean 'mask_semantics'?");
  EXPECT_NE(error("[]").find("not available in this version"), std::string::npos);
}

TEST_F(Config, DynamicAxesFollowFromStringDimensions) {
  ASSERT_OK_AND(const BuildConfig config, parse(R"({"export": {"input_tensors": [{"name": "x", "shape": ["batch", 3]}],
                                     "dynamic_axes": {"y": {"1": "length"}}}})"));
  EXPECT_EQ(config.exporting->dynamic_axes, (DynamicAxes{{"x", {{0, "batch"}}}, {"y", {{1, "length"}}}}));
  EXPECT_EQ(
      error(R"({"export": {"input_tensors": [{"name": "x", "shape": ["b"]}], "dynamic_axes": {"x": {"0": "n"}}}})"),
      "conflicting dynamic axis for 'x' axis 0: n and b");
}

TEST_F(Config, MergeReplacesScalarsAndListsAndKeepsTheRest) {
  ASSERT_OK_AND(const BuildConfig config,
                merged(R"({"quant": {"samples": 5, "task": "fill-mask", "nodes_to_exclude": ["a", "b"]},
                           "optim": {"gelu_fusion": true}, "loader": {"task": "fill-mask"}})",
                       R"({"quant": {"calibration_samples": 7, "nodes_to_exclude": ["c"]},
                           "optim": {"layer_norm_fusion": true}})"));
  EXPECT_EQ(config.quant->samples, 7);
  EXPECT_EQ(config.quant->task, "fill-mask");
  EXPECT_EQ(config.quant->nodes_to_exclude, std::vector<std::string>{"c"});
  EXPECT_EQ(config.optim->size(), 2u);
  EXPECT_EQ(config.loader.task, "fill-mask");
}

TEST_F(Config, MergeKnowsNullAndAbsent) {
  ASSERT_OK_AND(const BuildConfig off, merged(R"({"quant": {}})", R"({"quant": null})"));
  EXPECT_FALSE(off.quant.has_value());
  ASSERT_OK_AND(const BuildConfig kept, merged(R"({"quant": {"samples": 3}})", "{}"));
  EXPECT_EQ(kept.quant->samples, 3);
  ASSERT_OK_AND(const BuildConfig on, merged(R"({"quant": null})", R"({"quant": {"mode": "rtn"}})"));
  EXPECT_EQ(on.quant->mode, "rtn");
  EXPECT_EQ(on.quant->samples, 10);
  ASSERT_OK_AND(const BuildConfig onnx, merged(R"({"export": null})", R"({"export": {"opset_version": 18}})"));
  EXPECT_FALSE(onnx.exporting.has_value());
}

TEST_F(Config, MergeReplacesProviderOptionsWhole) {
  ASSERT_OK_AND(const BuildConfig config,
                merged(R"({"compile": {"execution_provider": "qnn", "provider_options": {"a": "1"}}})",
                       R"({"compile": {"provider_options": {"b": "2"}}})"));
  EXPECT_EQ(config.compile->execution_provider, "qnn");
  EXPECT_EQ(config.compile->provider_options, (std::map<std::string, std::string>{{"b", "2"}}));
}

TEST_F(Config, ErrorsOfAMergePointIntoTheOverride) {
  const auto wrong = merged(R"({"quant": {}})", R"({"quant": {"samples": -0.5}})");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().where, "over.json#/quant/samples");
}

TEST_F(Config, ValidationCollectsEverything) {
  ASSERT_OK_AND(const BuildConfig config, parse(R"({"optim": null, "quant": {}, "compile": {}})"));
  const auto status = validate(config);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::usage);
  for (const char* part : {"loader.task is required", "optim config is required", "quant.task is required",
                           "quant.model_id is required", "compile.execution_provider is required"})
    EXPECT_NE(status.error().message.find(part), std::string::npos) << part;
  ASSERT_OK_AND(const BuildConfig onnx, parse(R"({"export": null, "quant": {}})"));
  EXPECT_TRUE(validate(onnx));
  ASSERT_OK_AND(const BuildConfig part, parse(R"({"loader": {"module_path": "encoder"}, "quant": {}})"));
  EXPECT_TRUE(validate(part));
  ASSERT_OK_AND(const BuildConfig fp16, parse(R"({"loader": {"task": "fill-mask"}, "quant": {"mode": "fp16"}})"));
  EXPECT_TRUE(validate(fp16));
}

TEST_F(Config, FilesThatAreNoConfigSayWhy) {
  const testing::TemporaryFolder folder;
  const auto reason = [&](std::string_view content) {
    const auto config = read_build_config(folder.write("c.json", content), listener);
    return config ? std::string() : config.error().message;
  };
  EXPECT_EQ(reason("  \n"), "the config file is empty");
  EXPECT_FALSE(reason("{").empty());
  EXPECT_EQ(reason("3"), "expected an object, got 3");
  const auto missing = read_build_config(folder / "none.json", listener);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace mk
