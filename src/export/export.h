#pragma once
// A checkpoint becomes an ONNX model: load, choose the head, resolve inputs, build the graph, infer, check, publish
// (spec: export). Nothing appears under a final name unless the graph passed the verifier and ONNX's full checker.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/progress.h"
#include "base/publish.h"
#include "base/result.h"
#include "export/export_config.h"
#include "export/graphs.h"
#include "models/registry.h"

namespace mk {

struct ExportRequest {
  Path folder;                      // with config.json and the weights
  std::string model_id;             // as the user wrote it, for reports
  std::optional<std::string> task;  // detected when absent
  std::string model_class;          // of a build config's loader; empty where it says nothing
  std::string submodel;             // only this one of several graphs
  ExportConfig config;
  std::map<std::string, std::int64_t> shapes;  // --shape-config
  std::optional<DataType> float_type;          // float32 when absent
  bool keep_quantized = false;                 // of a quantized checkpoint
};

// What the architecture and the user's options make of a model, before any weight is read.
struct ExportPlan {
  std::string component;  // of several graphs this one's name; empty for a lone one
  HeadChoice head;
  std::string task_source;  // "user-task", "tasks-manager" ... (spec: loader, task resolution)
  std::vector<InputSpec> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> remarks;  // defaults that a user may want to know of ("sequence_length 1024 of 8192")
  // What the architecture's own shapes have where a dynamic axis was asked for, by the axis' name.
  std::map<std::string, std::int64_t> symbol_sizes;
};

// The graphs that a model is exported as.
struct ExportPlans {
  GraphChoices choices;
  std::vector<ExportPlan> graphs;
};

// One exported graph with what is worth telling about it.
struct ExportedGraph {
  ExportPlan plan;
  BuiltGraph built;
  double seconds = 0;
};

struct GraphReport {
  ExportPlan plan;
  std::vector<Path> files;  // the model first
  std::uint64_t bytes = 0;
  std::int64_t opset = 0;
  std::size_t nodes = 0;
  std::size_t tagged_nodes = 0;
  std::size_t initializers = 0;
  std::int64_t parameters = 0;
  std::vector<std::string> unused;  // tensors of the checkpoint; of several graphs each leaves the others'
  std::vector<std::string> tied;
  std::optional<std::string> check;  // what ExportDestination::check saw
  double seconds = 0;
};

struct ExportReport {
  std::string model_id;
  GraphChoices choices;
  std::vector<GraphReport> graphs;
  std::vector<Path> files;          // of all graphs, then the side files
  std::uint64_t bytes = 0;          // of all models and their data
  std::vector<std::string> unused;  // by all graphs
  double seconds = 0;
};

// usage, with the pointer into the file `where`, for a shape whose name no architecture has or that is no size.
Status check_export_shapes(const std::map<std::string, std::int64_t>& shapes, std::string_view where);

// All graphs of a model. Tensors that the request speaks of need be in one of them. The folder may be empty, then there
// is no preprocessor.
Result<ExportPlans> plan_exports(const ModelConfig& config, const ExportRequest& request, Progress& progress);
// Without what a request says of tensors that the plan's graph does not have: of another graph's.
ExportConfig share_of(const ExportConfig& config, const ExportPlan& plan);
// One graph: that of the task or the submodel (choose_graph).
Result<ExportPlan> plan_export(const ExportRequest& request, Progress& progress);
Result<ExportPlan> plan_export(const ModelConfig& config, const ExportRequest& request, Progress& progress);

// The checked graph of plan_export, weights still views of the checkpoint.
Result<ExportedGraph> export_graph(const ExportRequest& request, Progress& progress);

// Where an export goes.
struct ExportDestination {
  Path output;  // of several graphs each has its name behind the stem: "m_encoder.onnx"
  bool overwrite = false;
  bool with_report = false;
  std::vector<std::string> ours;  // side files there that a manifest lists: these may be replaced
  // Asked about the written model before it gets its final name: what was seen, in a few words. Null: nobody asks.
  std::function<Result<std::string>(const Path& model, const ExportPlan& plan)> check;
};

// The whole of `winml export`: graphs, model files, side files, reports. All of them appear together or none does; the
// checkpoint is opened once.
Result<ExportReport> export_model(const ExportRequest& request, const ExportDestination& destination,
                                  Progress& progress);

Json to_json(const ExportReport& report);

}  // namespace mk
