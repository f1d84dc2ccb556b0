#include "winml/inspect_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "build/cache_key.h"
#include "build/generate.h"
#include "checkpoint/checkpoint.h"
#include "export/graphs.h"
#include "hub/tasks.h"
#include "models/registry.h"

namespace mk::cli {
namespace {

// Image processors by model type, where the model's own files do not name one.
struct ProcessorRow {
  std::string_view model_type;
  std::string_view stem;  // of ...ImageProcessor and ...FeatureExtractor
};
constexpr std::array processor_rows{
    ProcessorRow{"convnext", "ConvNext"},
    ProcessorRow{"deit", "DeiT"},
    ProcessorRow{"resnet", "ConvNext"},
    ProcessorRow{"vit", "ViT"},
};

std::optional<Json> small_json(const Path& file, Progress& progress) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  auto json = read_json(file);
  if (json && json->is_object()) return std::move(*json);
  progress.warn(json ? fmt::format("{} is no JSON object", to_utf8(file)) : json.error().to_string());
  return std::nullopt;
}

std::string text_field(const Json& json, const char* key) {
  const auto field = json.find(key);
  return field != json.end() && field->is_string() ? field->get<std::string>() : std::string();
}

void find_processors(const Path& folder, ModelFacts& facts, Progress& progress) {
  if (const auto json = small_json(folder / "tokenizer_config.json", progress)) {
    facts.tokenizer.name = text_field(*json, "tokenizer_class");
    if (!facts.tokenizer.name.empty()) facts.tokenizer.source = "hub_config";
  }
  if (const auto json = small_json(folder / "preprocessor_config.json", progress)) {
    facts.image_processor.name = text_field(*json, "image_processor_type");
    facts.feature_extractor.name = text_field(*json, "feature_extractor_type");
    if (!facts.image_processor.name.empty()) facts.image_processor.source = "hub_config";
    if (!facts.feature_extractor.name.empty()) facts.feature_extractor.source = "hub_config";
  }
}

void default_processors(ModelFacts& facts) {
  const auto row = std::ranges::find(processor_rows, facts.model_type, &ProcessorRow::model_type);
  if (row == processor_rows.end()) return;
  const auto fill = [&](Processor& processor, std::string_view suffix) {
    if (processor.name.empty()) processor = {fmt::format("{}{}", row->stem, suffix), "hf_registry"};
  };
  fill(facts.image_processor, "ImageProcessor");
  fill(facts.feature_extractor, "FeatureExtractor");
}

// The first of these that the config has, or null.
Json first_field(const Json& json, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto field = json.find(name); field != json.end() && !field->is_null()) return *field;
  return nullptr;
}

// The size of square images that the inputs have, where the config does not say one.
Json planned_image_size(const std::optional<ExportPlan>& plan) {
  if (!plan || plan->inputs.empty()) return nullptr;
  const Shape& shape = plan->inputs.front().shape;
  if (shape.size() != 4 || !shape[2].is_known()) return nullptr;
  if (shape[2] == shape[3]) return shape[2].value;
  return Json::array({shape[2].value, shape[3].value});
}

std::shared_ptr<const Json> io_config(const Json& config, const std::optional<ExportPlan>& plan) {
  Json io = Json::object();
  for (const char* key :
       {"max_position_embeddings", "vocab_size", "image_size", "patch_size", "num_channels", "sampling_rate"})
    io[key] = first_field(config, {key});
  if (io["image_size"].is_null()) io["image_size"] = planned_image_size(plan);
  io["hidden_size"] = first_field(config, {"hidden_size", "dim", "d_model", "n_embd"});
  io["hidden_sizes"] = first_field(config, {"hidden_sizes"});
  io["extra"] = nullptr;
  if (!io["vocab_size"].is_null()) {
    Json extra = Json::object();
    const std::pair<const char*, Json> fields[] = {
        {"head_dim", first_field(config, {"head_dim", "d_kv"})},
        {"num_hidden_layers", first_field(config, {"num_hidden_layers", "n_layers", "n_layer"})},
        {"num_key_value_heads", first_field(config, {"num_key_value_heads"})},
        {"num_attention_heads", first_field(config, {"num_attention_heads", "n_heads", "n_head"})},
    };
    for (const auto& [key, value] : fields)
      if (!value.is_null()) extra[key] = value;
    if (!extra.empty()) io["extra"] = std::move(extra);
  }
  return std::make_shared<const Json>(std::move(io));
}

// What a build into the cache left there: by its newest manifest, else by the files' names.
void find_cache(const ModelRef& model, ModelFacts& facts) {
  constexpr std::array<std::pair<const char*, const char*>, 4> stages{{{"export", "export.onnx"},
                                                                       {"optimize", "optimized.onnx"},
                                                                       {"quantize", "quantized.onnx"},
                                                                       {"compile", "compiled.onnx"}}};
  for (const auto& [stage, file] : stages) facts.cache.push_back({.stage = stage});
  facts.cache_folder = cache_root();
  const Path folder = artifact_folder(model);
  const auto names = list_folder(folder);
  if (!names) return;
  facts.cache_folder = folder;
  std::error_code ignored;
  std::optional<std::pair<std::filesystem::file_time_type, Path>> newest;
  for (const Path& name : *names) {
    if (!to_utf8(name).ends_with("build_manifest.json")) continue;
    const auto time = std::filesystem::last_write_time(folder / name, ignored);
    if (!newest || time > newest->first) newest = {time, name};
  }
  const auto found = [&](CachedStage& stage, const Path& name) {
    const auto bytes = std::filesystem::file_size(folder / name, ignored);
    if (!ignored) stage = {stage.stage, folder / name, bytes};
  };
  if (newest) {
    const auto manifest = read_json(folder / newest->second);
    if (manifest && manifest->is_object() && manifest->contains("stages") && (*manifest)["stages"].is_array()) {
      for (const Json& entry : (*manifest)["stages"]) {
        const std::string stage = entry.is_object() ? text_field(entry, "name") : "";
        const auto row = std::ranges::find(facts.cache, stage, &CachedStage::stage);
        if (row != facts.cache.end() && !text_field(entry, "filename").empty())
          found(*row, path_from_utf8(text_field(entry, "filename")).filename());
      }
      return;
    }
  }
  for (std::size_t i = 0; i < stages.size(); ++i)
    for (const Path& name : *names)
      if (to_utf8(name).ends_with(stages[i].second)) found(facts.cache[i], name);
}

Result<std::optional<WeightFacts>> find_weights(const Path& folder, bool list) {
  auto checkpoint = Checkpoint::open(folder);
  if (!checkpoint) {
    if (checkpoint.error().code == ErrorCode::not_found) return std::nullopt;  // a config alone
    return tl::make_unexpected(std::move(checkpoint).error());
  }
  WeightFacts facts{.files = checkpoint->files(), .bytes = checkpoint->total_bytes()};
  std::map<DataType, std::size_t> types;
  for (const auto& [name, tensor] : checkpoint->tensors()) {
    ++types[tensor.type];
    ++facts.count;
    if (list) facts.tensors.push_back({name, tensor.type, tensor.dims, tensor.byte_count()});
  }
  facts.types.assign(types.begin(), types.end());
  std::ranges::stable_sort(facts.types, [](const auto& a, const auto& b) { return a.second > b.second; });
  return facts;
}

// What the user asked for by --task must be known, and must be one that the type has; without that, a task that this
// version cannot export is only a fact.
Status plan_model(const ModelConfig& config, const InspectRequest& request, const Path& folder, ModelFacts& facts,
                  Progress& progress) {
  TaskRequest asked{.task = request.task.value_or(""),
                    .model_class = request.source.model_class.value_or(""),
                    .model_id = request.resolved ? request.resolved->ref.id : ""};
  const auto type = find_model_type(facts.model_type);
  if (type && !type->heads.empty()) asked.first_task = type->heads.front().task;
  const auto task = choose_task(config, asked);
  if (task) {
    facts.task = task->name;
    facts.task_source = name_of(task->source);
  } else if (type || request.task) {
    return tl::make_unexpected(task.error());
  }
  if (!type) {
    facts.problem = facts.model_type.empty()
                        ? "config.json names no model_type"
                        : fmt::format("models of type {} cannot be exported yet", facts.model_type);
    return {};
  }
  const ExportRequest plan{.folder = folder,
                           .model_id = facts.model_id,
                           .task = request.task,
                           .model_class = request.source.model_class.value_or("")};
  auto made = plan_export(config, plan, progress);
  if (made) {
    facts.plan = std::move(*made);
    const GraphsRequest graphs{.task = request.task.value_or(""),
                               .model_class = request.source.model_class.value_or(""),
                               .model_id = facts.model_id};
    if (auto chosen = choose_graphs(config, graphs); chosen && chosen->is_composite())
      facts.composite = std::move(*chosen);
  } else if (!request.task && made.error().code == ErrorCode::usage) {
    facts.problem = made.error().message;
  } else {
    return tl::make_unexpected(std::move(made).error());
  }
  return {};
}

}  // namespace

Result<ModelFacts> inspect_model(const InspectRequest& request, Progress& progress) {
  ModelFacts facts;
  facts.model_id = request.source.name();
  MK_TRY(const ModelConfig config, config_of(request.source, request.resolved));
  const Path folder = request.resolved ? request.resolved->folder : Path();
  facts.model_type = config.model_type();
  facts.architectures = config.architectures();
  MK_CHECK(plan_model(config, request, folder, facts, progress));
  facts.io_config = io_config(config.json(), facts.plan);
  if (request.resolved) {
    find_processors(folder, facts, progress);
    find_cache(request.resolved->ref, facts);
    MK_TRY(facts.weights, find_weights(folder, request.list_tensors));
  }
  default_processors(facts);
  if (facts.plan) {
    auto look = look_at_graph(config, *facts.plan, folder, request.hierarchy);
    if (look)
      facts.graph = std::move(*look);
    else
      progress.warn(look.error().to_string());
    facts.targets = targets_of(facts.model_id, facts.task);
  }
  if (request.build_config && facts.plan) {
    GenerateRequest generate;
    generate.model_id = facts.model_id;
    generate.task = request.task;
    generate.model_class = request.source.model_class;
    MK_TRY(const BuildConfig made, generate_config(config, folder, generate, progress));
    facts.build_config = std::make_shared<const Json>(to_json(made));
  }
  return facts;
}

}  // namespace mk::cli
