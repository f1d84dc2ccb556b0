#include "build/generate.h"

#include "base/file.h"
#include "base/json.h"
#include "testing/testing.h"

namespace mk {
namespace {

// A model folder with one of the configs of tests/data/config/models; no weights.
class Generate : public ::testing::Test {
 protected:
  void use_model(const std::string& name) {
    const auto text = read_text(testing::repository("tests/data/config/models/" + name + ".json"));
    ASSERT_OK(text);
    folder.write("config.json", *text);
  }
  Result<BuildConfig> generate() {
    auto model = ModelConfig::read(folder.path());
    if (!model) return tl::make_unexpected(model.error());
    request.resolve = [](const TargetRequest& asked) -> Result<Target> {
      if (asked.ep && asked.device) return Target{asked.ep, *asked.device, {}};
      return fail(ErrorCode::usage, "no hardware here");
    };
    if (!overrides.is_null()) {
      request.overrides = &overrides;
      request.overrides_name = "over.json";
    }
    return generate_config(*model, folder.path(), request, silent_progress());
  }
  void precision(std::string_view text) {
    const auto parsed = parse_precision(text);
    ASSERT_OK(parsed);
    request.policy.precision = *parsed;
    request.target_typed = true;
  }
  void expect_document(const Result<BuildConfig>& config, const std::string& name) {
    ASSERT_OK(config);
    const auto text = read_text(testing::repository("tests/data/config/config_" + name + ".json"));
    ASSERT_OK(text);
    EXPECT_EQ(dump_json(to_json(*config)), text->substr(0, text->find_last_not_of('\n') + 1)) << name;
  }
  testing::TemporaryFolder folder;
  GenerateRequest request;
  Json overrides;
};

// The Python tool's documents for the same configs.
TEST_F(Generate, WritesWhatThePythonToolWrites) {
  for (const char* name : {"bert-base", "distilbert", "roberta", "vit-base", "convnext-tiny"}) {
    use_model(name);
    expect_document(generate(), name);
  }
}

class GenerateResnet : public Generate {
 protected:
  GenerateResnet() {
    use_model("resnet50");
    folder.write("preprocessor_config.json", R"({"size": {"shortest_edge": 224}})");
    request.model_id = "microsoft/resnet-50";
  }
};

TEST_F(GenerateResnet, PrecisionsAreThoseOfThePythonTool) {
  expect_document(generate(), "resnet50");
  for (const char* name : {"int8", "w8a16", "fp16", "int4"}) {
    precision(name);
    expect_document(generate(), std::string("resnet50_") + name);
  }
}

TEST_F(GenerateResnet, ATargetAsksForItsPrecision) {
  request.policy.target = {.ep = find_ep("qnn"), .device = DeviceKind::npu};
  request.target_typed = true;
  expect_document(generate(), "resnet50_npu_qnn");
}

TEST_F(GenerateResnet, TypedWinsOverTheFileAndTheFileOverDefaults) {
  overrides = {{"quant", {{"mode", "dynamic"}, {"samples", 50}}}};
  ASSERT_OK_AND(const BuildConfig from_file, generate());
  EXPECT_EQ(from_file.quant->mode, "dynamic");
  EXPECT_EQ(from_file.quant->task, "image-classification");  // its identity is filled in
  EXPECT_EQ(from_file.quant->model_id, "microsoft/resnet-50");

  precision("int8");
  ASSERT_OK_AND(const BuildConfig typed, generate());
  EXPECT_EQ(typed.quant->mode, "static");
  EXPECT_EQ(typed.quant->samples, 50);

  precision("fp32");
  ASSERT_OK_AND(const BuildConfig off, generate());
  EXPECT_FALSE(off.quant.has_value());

  precision("int8");
  request.quant = false;
  ASSERT_OK_AND(const BuildConfig no_quant, generate());
  EXPECT_FALSE(no_quant.quant.has_value());
}

TEST_F(GenerateResnet, CompileIsWrittenWhereAskedFor) {
  request.policy.target = {.ep = find_ep("openvino"), .device = DeviceKind::gpu};
  request.target_typed = true;
  request.compile = true;
  ASSERT_OK_AND(const BuildConfig config, generate());
  EXPECT_EQ(config.compile->execution_provider, "openvino");
  EXPECT_EQ(config.compile->provider_options.at("device_type"), "GPU");
  request.compile = false;
  overrides = {{"compile", {{"execution_provider", "qnn"}}}};
  ASSERT_OK_AND(const BuildConfig off, generate());
  EXPECT_FALSE(off.compile.has_value());
}

TEST_F(GenerateResnet, ExportLayersReachTheInputs) {
  overrides = {{"export", {{"batch_size", 4}, {"opset_version", 18}}}};
  request.shapes = {{"height", 64}, {"width", 96}};
  ASSERT_OK_AND(const BuildConfig config, generate());
  EXPECT_EQ(config.exporting->opset_version, 18);
  EXPECT_EQ(config.exporting->input_tensors.front().shape, static_shape({4, 3, 64, 96}));
  request.exporting.batch_size = 2;
  request.exporting.present = {"batch_size"};
  ASSERT_OK_AND(const BuildConfig typed, generate());
  EXPECT_EQ(typed.exporting->input_tensors.front().shape, static_shape({2, 3, 64, 96}));
}

TEST_F(GenerateResnet, DynamicAxesAreInTheDocument) {
  request.exporting.dynamic_axes = {{"pixel_values", {{0, "batch"}}}, {"logits", {{0, "batch"}}}};
  request.exporting.present = {"dynamic_axes"};
  ASSERT_OK_AND(const BuildConfig config, generate());
  EXPECT_EQ(config.exporting->input_tensors.front().shape->front(), Dim::symbolic("batch"));
  EXPECT_EQ(config.exporting->dynamic_axes, request.exporting.dynamic_axes);
}

TEST_F(Generate, TheFileMayChooseTheTask) {
  use_model("bert-base");
  overrides = {{"loader", {{"task", "token-classification"}}}};
  ASSERT_OK_AND(const BuildConfig config, generate());
  EXPECT_EQ(config.loader.task, "token-classification");
  EXPECT_EQ(config.loader.model_class, "AutoModelForTokenClassification");
  request.task = "masked-lm";  // typed: as it was written
  ASSERT_OK_AND(const BuildConfig typed, generate());
  EXPECT_EQ(typed.loader.task, "masked-lm");
  EXPECT_EQ(typed.loader.model_class, "AutoModelForMaskedLM");
}

TEST_F(Generate, ErrorsOfTheFilePoint) {
  use_model("bert-base");
  overrides = {{"export", {{"opset_version", "new"}}}};
  const auto wrong = generate();
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().where, "over.json#/export/opset_version");
}

TEST(GenerateOnnx, FollowsFromWhatTheGraphIs) {
  GenerateRequest request;
  ASSERT_OK_AND(const BuildConfig raw, generate_onnx_config({}, request, silent_progress()));
  EXPECT_EQ(dump_json(to_json(raw), -1), R"({"export": null, "optim": {}, "quant": null, "compile": null})");

  ASSERT_OK_AND(request.policy.precision, parse_precision("int8"));
  request.target_typed = true;
  ModelSummary quantized;
  quantized.quantized = true;
  ASSERT_OK_AND(const BuildConfig done, generate_onnx_config(quantized, request, silent_progress()));
  EXPECT_TRUE(done.skip_optimize);
  EXPECT_FALSE(done.quant.has_value());

  ASSERT_OK_AND(request.policy.precision, parse_precision("fp16"));
  ASSERT_OK_AND(const BuildConfig half, generate_onnx_config(quantized, request, silent_progress()));
  EXPECT_EQ(half.quant->mode, "fp16");  // what is float in it can still become float16

  ModelSummary compiled;
  compiled.compiled = true;
  ASSERT_OK_AND(const BuildConfig kept, generate_onnx_config(compiled, request, silent_progress()));
  EXPECT_FALSE(kept.quant.has_value());
}

TEST(GenerateOnnx, AFileIsReadWhole) {
  const Json overrides = {{"optim", {{"gelu_fusion", true}}}, {"export", {{"opset_version", 18}}}};
  GenerateRequest request;
  ASSERT_OK_AND(request.policy.precision, parse_precision("int8"));
  request.overrides = &overrides;
  ASSERT_OK_AND(const BuildConfig config, generate_onnx_config({}, request, silent_progress()));
  EXPECT_FALSE(config.quant.has_value());  // the file does not name it
  EXPECT_FALSE(config.exporting.has_value());
  request.target_typed = true;
  ASSERT_OK_AND(const BuildConfig typed, generate_onnx_config({}, request, silent_progress()));
  EXPECT_TRUE(typed.quant.has_value());
}

}  // namespace
}  // namespace mk
