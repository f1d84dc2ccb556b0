#pragma once
// winml inspect of a checkpoint: what the tool makes of it. Nothing but small JSON files and the headers of the weight
// files is read.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"
#include "checkpoint/config.h"
#include "export/export.h"
#include "export/graphs.h"
#include "graph/cost.h"
#include "runtime/ep_table.h"
#include "winml/command.h"
#include "winml/inspect_graph.h"
#include "winml/model_source.h"

namespace mk::cli {

struct InspectRequest {
  ModelSource source;
  std::optional<ResolvedModel> resolved;  // absent where there is only a type or a class
  std::optional<std::string> task;
  bool hierarchy = false;
  bool list_tensors = false;
  bool build_config = false;
};

// Where a class name was found: "hub_config" (the model's own files) or "hf_registry" (by its type); empty for none.
struct Processor {
  std::string name;
  std::string source;
};

struct WeightFacts {
  std::vector<Path> files;
  std::uint64_t bytes = 0;
  std::vector<std::pair<DataType, std::size_t>> types;  // tensors of each, most first
  std::size_t count = 0;
  std::vector<WeightRow> tensors;
};

struct ModuleNode {
  std::string name;  // the last part of its path
  std::string class_name;
  std::string path;
  std::int64_t depth = 0;
  std::int64_t parameters = 0;
  std::vector<ModuleNode> children;
};
struct Hierarchy {
  ModuleNode root;
  std::size_t modules = 0;        // of transformers, the root included
  std::size_t plain_modules = 0;  // torch.nn layers
};

// What building the graph tells; no weight is read.
struct GraphLook {
  std::int64_t parameters = 0;
  GraphCost cost;
  std::optional<Hierarchy> hierarchy;
};

// What `winml build` would make for one execution provider and device.
struct TargetFacts {
  std::string_view ep;
  DeviceKind device = DeviceKind::cpu;
  std::string precision;                 // "fp32", "w8a16"
  std::vector<std::string_view> stages;  // "export", "optimize", "quantize"
  bool standard_operators = false;       // only of ONNX's own domain
  std::optional<bool> validated;         // by the catalogue; none where it does not have the model
};

struct CachedStage {
  std::string stage;
  std::optional<Path> path;
  std::uint64_t bytes = 0;
};

struct ModelFacts {
  std::string model_id;
  std::string model_type;
  std::vector<std::string> architectures;
  std::string task;         // empty where it cannot be told
  std::string task_source;  // "user-task", "tasks-manager" ...
  std::optional<ExportPlan> plan;
  std::optional<GraphChoices> composite;  // where it is exported as several graphs; `plan` is then of one of them
  std::string problem;                    // why there is no plan: the type, or the class for the task, is not supported
  std::int64_t opset = 17;
  Processor tokenizer, image_processor, feature_extractor;
  std::shared_ptr<const Json> io_config;  // fields of config.json that decide about inputs and outputs
  std::optional<Path> cache_folder;
  std::vector<CachedStage> cache;
  std::optional<WeightFacts> weights;
  std::optional<GraphLook> graph;
  std::vector<TargetFacts> targets;
  std::shared_ptr<const Json> build_config;
};

// An unsupported architecture is a fact, a broken file is an error.
Result<ModelFacts> inspect_model(const InspectRequest& request, Progress& progress);
Json to_json(const ModelFacts& facts);
std::string to_text(const ModelFacts& facts, const Context& context);

// The parts in files of their own.
// `folder` may be empty or without weights.
Result<GraphLook> look_at_graph(const ModelConfig& config, const ExportPlan& plan, const Path& folder, bool hierarchy);
std::vector<TargetFacts> targets_of(std::string_view model_id, std::string_view task);
Json to_json(const std::vector<TargetFacts>& targets);
std::string to_text(const std::vector<TargetFacts>& targets);
Json to_json(const Hierarchy& hierarchy);
std::string to_text(const Hierarchy& hierarchy);

// Axis names of an input or output, as dynamic axes would call them: "batch_size", "sequence_length" ...
std::vector<std::string> axis_names(const InputSpec& input);
std::vector<std::string> output_axis_names(const ExportPlan& plan);
// "WinMLModelForImageClassification"; the generic one for tasks without a class of their own.
std::string winml_class_of(std::string_view task);

}  // namespace mk::cli
