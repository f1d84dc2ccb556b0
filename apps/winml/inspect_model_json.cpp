#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/json.h"
#include "build/generate.h"
#include "winml/inspect_model.h"

namespace mk::cli {
namespace {

struct TaskClass {
  std::string_view task;
  std::string_view suffix;
};
constexpr std::array task_classes{
    TaskClass{"depth-estimation", "DepthEstimation"},
    TaskClass{"feature-extraction", "FeatureExtraction"},
    TaskClass{"fill-mask", "MaskedLM"},
    TaskClass{"image-classification", "ImageClassification"},
    TaskClass{"image-feature-extraction", "FeatureExtraction"},
    TaskClass{"image-segmentation", "ImageSegmentation"},
    TaskClass{"next-sentence-prediction", "SequenceClassification"},
    TaskClass{"object-detection", "ObjectDetection"},
    TaskClass{"question-answering", "QuestionAnswering"},
    TaskClass{"semantic-segmentation", "SemanticSegmentation"},
    TaskClass{"sentence-similarity", "FeatureExtraction"},
    TaskClass{"text-classification", "SequenceClassification"},
    TaskClass{"text-generation", "CausalLM"},
    TaskClass{"text2text-generation", "Seq2SeqLM"},
    TaskClass{"token-classification", "TokenClassification"},
};
constexpr std::string_view generic_class = "WinMLModelForGenericTask";

// Tasks whose outputs have one entry per token.
constexpr std::array<std::string_view, 6> per_token{"feature-extraction", "fill-mask",
                                                    "text-generation",    "token-classification",
                                                    "question-answering", "text2text-generation"};

// Types with an I/O contract of their own in the spec; the others are stock ones of Optimum.
constexpr std::array<std::string_view, 7> own_contract{"bert",    "camembert",   "convnext", "mpnet",
                                                       "roberta", "xlm-roberta", "segformer"};

// "Bert" of BertForMaskedLM.
std::string stem_of(const std::string& class_name) {
  std::size_t end = class_name.find("For");
  if (end == std::string::npos) end = class_name.rfind("Model");
  return class_name.substr(0, end);
}

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json axes_json(const std::vector<std::string>& names) {
  Json axes = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) axes[std::to_string(i)] = names[i];
  return axes;
}

Json input_json(const InputSpec& input) {
  Json shape = Json::array();
  std::string description = "[";
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    const Dim& dim = input.shape[i];
    shape.push_back(dim.is_known() ? Json(dim.value) : Json(dim.symbol));
    description += (i == 0 ? "" : ", ") + (i == 0 ? std::string("B") : to_string(dim));
  }
  Json json = {{"name", input.name},
               {"dtype", name_of(input.type)},
               {"shape", std::move(shape)},
               {"shape_desc", description + "]"},
               {"dynamic_axes", axes_json(axis_names(input))},
               {"value_range", nullptr}};
  if (input.range) json["value_range"] = to_json(std::vector<InputSpec>{input})[0]["value_range"];
  return json;
}

Json exporter_json(const ModelFacts& facts) {
  Json json = {{"onnx_config_class", nullptr}, {"onnx_config_source", nullptr},  {"support_level", "unsupported"},
               {"opset_version", facts.opset}, {"input_tensors", Json::array()}, {"output_tensors", Json::array()}};
  if (!facts.plan) return json;
  const bool own = std::ranges::find(own_contract, facts.plan->head.model_type) != own_contract.end();
  json["onnx_config_class"] = stem_of(facts.plan->head.class_name) + (own ? "IOConfig" : "OnnxConfig");
  json["onnx_config_source"] = "TasksManager";
  json["support_level"] = "default";
  for (const InputSpec& input : facts.plan->inputs) json["input_tensors"].push_back(input_json(input));
  const std::vector<std::string> axes = output_axis_names(*facts.plan);
  std::string description = "[B";
  for (std::size_t i = 1; i < axes.size(); ++i) description += ", " + axes[i];
  for (const std::string& name : facts.plan->outputs)
    json["output_tensors"].push_back(
        {{"name", name}, {"shape_desc", description + "]"}, {"dynamic_axes", axes_json(axes)}});
  return json;
}

Json loader_json(const ModelFacts& facts) {
  if (!facts.plan)
    return {{"hf_model_class", nullptr}, {"hf_model_class_source", nullptr}, {"support_level", "unsupported"}};
  const std::string_view auto_class = auto_class_of(facts.plan->head.task);
  return {{"hf_model_class", auto_class.empty() ? facts.plan->head.class_name : std::string(auto_class)},
          {"hf_model_class_source", "TasksManager"},
          {"support_level", "default"},
          {"transformers_class", facts.plan->head.class_name}};
}

Json winml_json(const ModelFacts& facts) {
  const std::string name = winml_class_of(facts.task);
  const bool generic = name == generic_class;
  return {{"winml_class", name},
          {"winml_class_source", generic ? Json(nullptr) : Json("TASK_TO_WINML_CLASS")},
          {"support_level", generic ? "generic" : "default"}};
}

Json notes_json(const ModelFacts& facts) {
  const bool generic = winml_class_of(facts.task) == generic_class;
  Json notes = Json::array();
  notes.push_back(facts.plan ? "Loader: Using TasksManager defaults" : "Loader: Model class not found in registry");
  notes.push_back(facts.plan ? "Exporter: Using TasksManager defaults" : "Exporter: No ONNX config available");
  notes.push_back(generic ? "WinML: Using generic inference class" : "WinML: Using task-based class");
  if (!facts.problem.empty()) notes.push_back(facts.problem);
  return notes;
}

Json cache_json(const ModelFacts& facts) {
  if (!facts.cache_folder) return nullptr;
  constexpr double mib = 1024.0 * 1024.0;
  Json stages = Json::array();
  std::size_t cached = 0;
  std::uint64_t bytes = 0;
  for (const CachedStage& stage : facts.cache) {
    cached += stage.path ? 1 : 0;
    bytes += stage.bytes;
    stages.push_back({{"stage", stage.stage},
                      {"cached", stage.path.has_value()},
                      {"path", stage.path ? Json(to_utf8(*stage.path)) : Json(nullptr)},
                      {"size_mb", stage.path ? Json(static_cast<double>(stage.bytes) / mib) : Json(nullptr)},
                      {"created", nullptr}});
  }
  return {{"cache_dir", to_utf8(*facts.cache_folder)},
          {"total_cached", cached},
          {"total_size_mb", static_cast<double>(bytes) / mib},
          {"stages", std::move(stages)}};
}

Json processor_json(const ModelFacts& facts) {
  const Processor& first = !facts.tokenizer.name.empty()         ? facts.tokenizer
                           : !facts.image_processor.name.empty() ? facts.image_processor
                                                                 : facts.feature_extractor;
  if (first.name.empty()) return nullptr;
  return {{"processor_class", first.name},
          {"tokenizer_class", or_null(facts.tokenizer.name)},
          {"image_processor_class", or_null(facts.image_processor.name)},
          {"feature_extractor_class", or_null(facts.feature_extractor.name)},
          {"processor_source", first.source},
          {"tokenizer_source", or_null(facts.tokenizer.source)},
          {"image_processor_source", or_null(facts.image_processor.source)},
          {"feature_extractor_source", or_null(facts.feature_extractor.source)}};
}

Json composite_json(const GraphChoices& composite) {
  Json components = Json::object();
  for (const ComponentChoice& part : composite.graphs) components[part.name] = part.head.task;
  return {{"pipeline_tasks", composite.pipeline_tasks}, {"components", std::move(components)}};
}

Json weight_facts_json(const WeightFacts& weights) {
  Json files = Json::array(), types = Json::object();
  for (const Path& file : weights.files) files.push_back(to_utf8(file.filename()));
  for (const auto& [type, count] : weights.types) types[std::string(name_of(type))] = count;
  Json json = {{"files", std::move(files)},
               {"tensor_count", weights.count},
               {"bytes", weights.bytes},
               {"dtypes", std::move(types)}};
  if (!weights.tensors.empty()) json["tensors"] = weights_json(weights.tensors);
  return json;
}

}  // namespace

std::string winml_class_of(std::string_view task) {
  const auto row = std::ranges::find(task_classes, task, &TaskClass::task);
  return row == task_classes.end() ? std::string(generic_class) : fmt::format("WinMLModelFor{}", row->suffix);
}

std::vector<std::string> axis_names(const InputSpec& input) {
  const std::vector<std::string> image{"batch_size", "num_channels", "height", "width"};
  const std::vector<std::string> choices{"batch_size", "num_choices", "sequence_length"};
  const std::vector<std::string> text{"batch_size", "sequence_length"};
  std::vector<std::string> names = input.shape.size() == 4 ? image : input.shape.size() == 3 ? choices : text;
  names.resize(std::min(names.size(), input.shape.size()));
  return names;
}

std::vector<std::string> output_axis_names(const ExportPlan& plan) {
  if (plan.head.task == "multiple-choice") return {"batch_size", "num_choices"};
  if (std::ranges::find(per_token, plan.head.task) != per_token.end()) return {"batch_size", "sequence_length"};
  return {"batch_size"};
}

Json to_json(const ModelFacts& facts) {
  Json json = {
      {"model_id", facts.model_id},
      {"model_type", or_null(facts.model_type)},
      {"architectures", facts.architectures},
      {"task", or_null(facts.task)},
      {"task_source", or_null(facts.task_source)},
      {"pipeline_tasks", facts.composite ? Json(facts.composite->pipeline_tasks) : Json(nullptr)},
      {"composite", facts.composite ? composite_json(*facts.composite) : Json(nullptr)},
      {"overall_support", facts.plan ? "default" : "unsupported"},
      {"support_notes", notes_json(facts)},
      {"loader", loader_json(facts)},
      {"exporter", exporter_json(facts)},
      {"winml", winml_json(facts)},
      {"cache", cache_json(facts)},
      {"hierarchy", facts.graph && facts.graph->hierarchy ? to_json(*facts.graph->hierarchy) : Json(nullptr)},
      {"processor", processor_json(facts)},
      {"io_config", *facts.io_config},
      {"checkpoint", facts.weights ? weight_facts_json(*facts.weights) : Json(nullptr)},
      {"graph", nullptr},
      {"targets", to_json(facts.targets)},
  };
  if (facts.graph) {
    json["graph"] = to_json(facts.graph->cost);
    json["graph"]["parameters"] = facts.graph->parameters;
  }
  if (facts.build_config) json["build_config"] = *facts.build_config;
  return json;
}

}  // namespace mk::cli
