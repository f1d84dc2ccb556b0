#include "build/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"

namespace mk {
namespace {

struct AutoClass {
  std::string_view task;
  std::string_view name;
};
constexpr std::array auto_classes{
    AutoClass{"audio-classification", "AutoModelForAudioClassification"},
    AutoClass{"audio-frame-classification", "AutoModelForAudioFrameClassification"},
    AutoClass{"audio-xvector", "AutoModelForAudioXVector"},
    AutoClass{"automatic-speech-recognition", "AutoModelForSpeechSeq2Seq"},
    AutoClass{"depth-estimation", "AutoModelForDepthEstimation"},
    AutoClass{"document-question-answering", "AutoModelForDocumentQuestionAnswering"},
    AutoClass{"feature-extraction", "AutoModel"},
    AutoClass{"fill-mask", "AutoModelForMaskedLM"},
    AutoClass{"image-classification", "AutoModelForImageClassification"},
    AutoClass{"image-feature-extraction", "AutoModel"},
    AutoClass{"image-segmentation", "AutoModelForImageSegmentation"},
    AutoClass{"image-text-to-text", "AutoModelForImageTextToText"},
    AutoClass{"image-to-image", "AutoModelForImageToImage"},
    AutoClass{"image-to-text", "AutoModelForVision2Seq"},
    AutoClass{"keypoint-detection", "AutoModelForKeypointDetection"},
    AutoClass{"masked-im", "AutoModelForMaskedImageModeling"},
    AutoClass{"multiple-choice", "AutoModelForMultipleChoice"},
    AutoClass{"next-sentence-prediction", "AutoModelForNextSentencePrediction"},
    AutoClass{"object-detection", "AutoModelForObjectDetection"},
    AutoClass{"question-answering", "AutoModelForQuestionAnswering"},
    AutoClass{"semantic-segmentation", "AutoModelForSemanticSegmentation"},
    AutoClass{"text-classification", "AutoModelForSequenceClassification"},
    AutoClass{"text-generation", "AutoModelForCausalLM"},
    AutoClass{"text2text-generation", "AutoModelForSeq2SeqLM"},
    AutoClass{"token-classification", "AutoModelForTokenClassification"},
    AutoClass{"visual-question-answering", "AutoModelForVisualQuestionAnswering"},
    AutoClass{"zero-shot-image-classification", "AutoModelForZeroShotImageClassification"},
    AutoClass{"zero-shot-object-detection", "AutoModelForZeroShotObjectDetection"},
};

// Optimizer flags that a config names for a model type (spec: config, registry). Types that are not here have none.
struct OptimRow {
  std::string_view model_type;
  std::array<std::string_view, 5> flags;
};
constexpr std::string_view clamp = "clamp_constant_values", gelu = "gelu_fusion", layer_norm = "layer_norm_fusion",
                           matmul_add = "matmul_add_fusion", no_isnan = "remove_isnan_in_attention_mask",
                           rms_norm = "fuse_rmsnorm";
constexpr std::array optim_rows{
    OptimRow{"bart", {gelu, matmul_add, clamp, no_isnan}},
    OptimRow{"bert", {clamp}},
    OptimRow{"blip", {gelu, layer_norm, matmul_add}},
    OptimRow{"camembert", {clamp}},
    OptimRow{"clip", {gelu, layer_norm, matmul_add, clamp}},
    OptimRow{"clip-text-model", {gelu, layer_norm, matmul_add, clamp}},
    OptimRow{"clip-vision-model", {gelu, layer_norm, matmul_add, clamp}},
    OptimRow{"detr", {"conv_bn_fusion", "conv_mul_fusion", "conv_add_fusion"}},
    OptimRow{"distilbert", {clamp}},
    OptimRow{"layoutlmv3", {clamp}},
    OptimRow{"marian", {gelu, matmul_add, clamp, no_isnan}},
    OptimRow{"qwen3", {gelu, rms_norm, matmul_add, clamp, no_isnan}},
    OptimRow{"roberta", {clamp}},
    OptimRow{"siglip", {gelu, layer_norm, matmul_add, clamp}},
    OptimRow{"siglip-text-model", {gelu, layer_norm, matmul_add, clamp}},
    OptimRow{"siglip-vision-model", {gelu, layer_norm, matmul_add, clamp}},
    OptimRow{"t5", {gelu, rms_norm, matmul_add, clamp, no_isnan}},
    OptimRow{"vision-encoder-decoder", {gelu, layer_norm, matmul_add, no_isnan, "reshape_mergedreshape"}},
    OptimRow{"xlm-roberta", {clamp}},
};

std::map<std::string, OptimValue> optim_flags(std::string_view model_type) {
  std::string key = lower_case(model_type);
  std::ranges::replace(key, '_', '-');
  std::map<std::string, OptimValue> flags;
  for (const OptimRow& row : optim_rows) {
    if (row.model_type != key) continue;
    for (const std::string_view flag : row.flags)
      if (!flag.empty()) flags[std::string(flag)] = true;
  }
  return flags;
}

TensorPatch as_patch(const InputSpec& input) {
  return {
      .name = input.name, .dtype = std::string(name_of(input.type)), .shape = input.shape, .value_range = input.range};
}

// The layers of a request, ready to be asked: the overrides as a view, and what they say of the loader.
JsonView overrides_of(const GenerateRequest& request) {
  static const Json nothing = Json::object();
  return {request.overrides != nullptr ? *request.overrides : nothing, request.overrides_name, ErrorCode::usage};
}

Result<std::optional<std::string>> loader_says(const JsonView& overrides, std::string_view key) {
  const JsonView field = overrides.at("loader").at(key);
  if (field.is_null()) return std::nullopt;
  MK_TRY(std::string value, field.string());
  return value;
}

// Overrides without what the plan has taken in already: the export section, task and class.
Result<BuildConfig> with_overrides(BuildConfig config, const GenerateRequest& request, const QuantIdentity& identity,
                                   Progress& progress) {
  const JsonView overrides = overrides_of(request);
  if (!overrides.is_object()) return tl::make_unexpected(overrides.expected("an object"));
  Json rest = overrides.json();
  rest.erase("export");
  if (rest.contains("loader") && rest["loader"].is_object()) {
    rest["loader"].erase("task");
    rest["loader"].erase("model_class");
  }
  if (overrides.at("quant").is_object() && !config.quant) {
    config.quant.emplace();
    config.quant->task = identity.task;
    config.quant->model_id = identity.model_id;
    config.quant->model_type = identity.model_type;
  }
  return merge_build_config(config, overrides.with_value(rest), progress);
}

// Policy, overrides, policy again where it was typed, then what the switches take away.
Result<BuildConfig> finish(BuildConfig config, const GenerateRequest& request, const QuantIdentity& identity,
                           Progress& progress) {
  TargetPolicy policy = request.policy;
  policy.compile = request.compile.value_or(false);
  if (!request.target_typed || request.overrides == nullptr)
    MK_CHECK(apply_target_policy(config, policy, identity, request.resolve, progress));
  if (request.overrides != nullptr) {
    MK_TRY(config, with_overrides(std::move(config), request, identity, progress));
    if (request.target_typed) MK_CHECK(apply_target_policy(config, policy, identity, request.resolve, progress));
  }
  if (!request.quant) config.quant.reset();
  if (request.compile == false) config.compile.reset();
  return config;
}

}  // namespace

std::string_view auto_class_of(std::string_view task) {
  const auto row = std::ranges::find(auto_classes, task, &AutoClass::task);
  return row == auto_classes.end() ? std::string_view{} : row->name;
}

Result<BuildConfig> generate_config(const ModelConfig& model, const Path& folder, const GenerateRequest& request,
                                    Progress& progress, ExportPlan* plan_out) {
  const JsonView overrides = overrides_of(request);
  MK_TRY(const auto file_task, loader_says(overrides, "task"));
  MK_TRY(const auto file_class, loader_says(overrides, "model_class"));
  const std::optional<std::string> task = request.task ? request.task : file_task;
  const std::optional<std::string> model_class = request.model_class ? request.model_class : file_class;

  ExportConfig layers;
  if (overrides.is_object() && overrides.has("export")) {
    MK_TRY(layers, parse_export_config(overrides.at("export"), progress));
  }
  merge_export_config(layers, request.exporting);
  const ExportRequest export_request{.folder = folder,
                                     .model_id = request.model_id,
                                     .task = task,
                                     .model_class = model_class.value_or(""),
                                     .submodel = request.submodel,
                                     .config = layers,
                                     .shapes = request.shapes};
  MK_TRY(const ExportPlan plan, plan_export(model, export_request, progress));

  BuildConfig config;
  ExportConfig exporting;
  merge_export_config(exporting, layers);
  exporting.input_tensors.clear();
  for (const InputSpec& input : plan.inputs) exporting.input_tensors.push_back(as_patch(input));
  exporting.output_tensors = plan.outputs;
  exporting.transformers_attention = "eager";
  MK_CHECK(infer_dynamic_axes(exporting));
  config.exporting = std::move(exporting);
  config.optim = optim_flags(plan.head.model_type);
  config.loader.task = task && request.submodel.empty() ? *task : plan.head.task;
  const std::string_view auto_class = auto_class_of(plan.head.task);
  config.loader.model_class = model_class          ? *model_class
                              : auto_class.empty() ? plan.head.class_name
                                                   : std::string(auto_class);
  config.loader.model_type = plan.head.model_type;

  const QuantIdentity identity{config.loader.task, request.model_id, config.loader.model_type};
  if (plan_out != nullptr) *plan_out = plan;
  return finish(std::move(config), request, identity, progress);
}

Result<BuildConfig> generate_onnx_config(const ModelSummary& graph, const GenerateRequest& request,
                                         Progress& progress) {
  BuildConfig config;
  config.exporting.reset();
  MK_TRY(const auto file_task, loader_says(overrides_of(request), "task"));
  config.loader.task = request.task ? request.task : file_task;
  config.skip_optimize = graph.quantized && !graph.compiled;

  GenerateRequest asked = request;
  Json whole;
  if (request.overrides != nullptr) {
    // A file for an ONNX build is read whole: a stage that it does not name is off.
    whole = *request.overrides;
    if (whole.is_object())
      for (const char* stage : {"quant", "compile"})
        if (!whole.contains(stage)) whole[stage] = nullptr;
    asked.overrides = &whole;
  }
  MK_TRY(config, finish(std::move(config), asked, {}, progress));
  config.exporting.reset();
  if (config.quant && (graph.compiled || (graph.quantized && config.quant->mode != "fp16"))) {
    progress.warn(graph.compiled ? "the model is compiled already: it is not quantized"
                                 : "the model is quantized already: only -p fp16 changes what is still float");
  }
  if (graph.compiled) {
    config.quant.reset();
    config.compile.reset();
  } else if (graph.quantized && config.quant && config.quant->mode != "fp16") {
    config.quant.reset();
  }
  return config;
}

}  // namespace mk
