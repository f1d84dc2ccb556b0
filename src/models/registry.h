#pragma once
// What the rest of the program knows about architectures: which model types there are, which tasks and classes each
// has, what a graph of a task takes and gives, and how to build it. One row per model type in families.h; one file
// per family.

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"
#include "graph/ir.h"
#include "graph/value_range.h"

namespace mk {

// One input of a graph, as winml.io.inputs and the build config's export.input_tensors describe it (spec: export, I/O
// contracts).
struct InputSpec {
  std::string name;
  DataType type = DataType::float32;
  Shape shape;  // symbolic where the axis is dynamic
  std::optional<ValueRange> range;
  std::vector<std::int64_t> typical = {};  // sizes to try it with, where its own shape has dynamic axes
};

// Shapes asked for with --shape-config and --batch-size; absent means the architecture's default.
struct ShapeRequest {
  std::int64_t batch_size = 1;
  std::map<std::string, std::int64_t>
      values;  // sequence_length, height, width, num_channels ... (spec: export, shapes)
};

// The preprocessor's facts that shapes depend on; absent where there is no preprocessor_config.json.
struct PreprocessorFacts {
  std::optional<std::int64_t> height, width;
};

// One way to use a model type: a task and the transformers class that serves it.
struct HeadInfo {
  std::string_view task;        // "fill-mask"
  std::string_view class_name;  // "BertForMaskedLM"
};

struct ModelTypeInfo {
  std::string_view model_type;      // "xlm-roberta"
  std::span<const HeadInfo> heads;  // the first one of a task is its default class
};

// All model types that can be exported, sorted by name.
std::vector<ModelTypeInfo> model_types();
// "_" and "-" and case do not matter. Null where the type is unknown.
std::optional<ModelTypeInfo> find_model_type(std::string_view model_type);

// A resolved head: the config's model type, the task and the class chosen for it.
struct HeadChoice {
  std::string model_type;
  std::string task;
  std::string class_name;
};

// The class in architectures[0] where it serves the task, else the task's default class of the model type.
// usage: a task that the type does not have (lists those it has). unsupported: unknown model type (names the nearest).
Result<HeadChoice> choose_head(const ModelConfig& config, std::string_view task);

// The inputs of a head in their order, with default shapes and value ranges. usage: shapes that the config cannot
// serve.
Result<std::vector<InputSpec>> default_inputs(const ModelConfig& config, const HeadChoice& head,
                                              const ShapeRequest& shapes, const PreprocessorFacts& preprocessor = {});
// Integer inputs that it can take besides, where they are asked for.
Result<std::vector<std::string_view>> optional_inputs(const ModelConfig& config, const HeadChoice& head);
// The names of its outputs, in their order.
Result<std::vector<std::string>> output_names(const ModelConfig& config, const HeadChoice& head);

// One of the graphs that a model is exported as, by the name that its file gets ("encoder").
struct ComponentChoice {
  std::string name;
  HeadChoice head;
};
// Graphs that serve a pipeline together, in their order, and the tasks that name them ("translation").
struct CompositeChoice {
  std::vector<std::string> tasks;
  std::vector<ComponentChoice> components;
};
// Those of a model type; none where it is always one graph.
std::vector<CompositeChoice> composites(std::string_view model_type);

struct BuildOptions {
  std::int64_t opset = 17;     // 13 to 28
  bool hierarchy_tags = true;  // winml.hierarchy.tag and .depth on every node
  std::optional<DataType>
      float_type;                    // of weights and activations; float32 when absent. Inputs and outputs keep theirs
  std::optional<double> mask_value;  // what masked positions add to attention scores; the float type's finite minimum
                                     // when absent (a graph to be quantized wants one that does not stretch its range)
  Progress* progress = nullptr;
  bool keep_quantized = false;  // linear layers of quantized checkpoints as com.microsoft.MatMulNBits
  bool assume_weights = false;  // parameters that the checkpoint lacks have no data: a graph to look at, not to write
};

// One module of the tree that was walked, in order of first entry. Plain torch.nn modules have no tag of their own.
struct ModuleRecord {
  std::string path;        // "encoder.layer.0.attention"; empty is the root
  std::string class_name;  // "BertAttention"
  std::string tag;         // "/BertModel/BertEncoder/BertLayer.0/BertAttention"
  bool plain = false;      // a torch.nn layer
};

struct BuiltGraph {
  std::unique_ptr<Model> model;  // without metadata_props; weights are views of the checkpoint
  std::vector<ModuleRecord> modules;
  std::vector<std::string> unused;  // tensors of the checkpoint that the head does not use
  std::vector<std::string> tied;    // names that stand for another tensor's data
  std::int64_t parameter_count = 0;
};

// The graph of a head on these inputs (their order, types and shapes decide the graph's). Every tensor of the
// checkpoint is accounted for: malformed names a missing or misshapen one.
Result<BuiltGraph> build_graph(const ModelConfig& config, const HeadChoice& head, const Checkpoint& checkpoint,
                               std::span<const InputSpec> inputs, const BuildOptions& options);

}  // namespace mk
