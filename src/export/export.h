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
#include "models/registry.h"

namespace mk {

struct ExportRequest {
  Path folder;                      // with config.json and the weights
  std::string model_id;             // as the user wrote it, for reports
  std::optional<std::string> task;  // detected when absent
  std::string model_class;          // of a build config's loader; empty where it says nothing
  ExportConfig config;
  std::map<std::string, std::int64_t> shapes;  // --shape-config
  std::optional<DataType> float_type;          // float32 when absent
};

// What the architecture and the user's options make of a model, before any weight is read.
struct ExportPlan {
  HeadChoice head;
  std::string task_source;  // "user-task", "tasks-manager" ... (spec: loader, task resolution)
  std::vector<InputSpec> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> remarks;  // defaults that a user may want to know of ("sequence_length 1024 of 8192")
  // What the architecture's own shapes have where a dynamic axis was asked for, by the axis' name.
  std::map<std::string, std::int64_t> symbol_sizes;
};

// One exported graph with what is worth telling about it.
struct ExportedGraph {
  ExportPlan plan;
  BuiltGraph built;
  double seconds = 0;
};

struct ExportReport {
  std::string model_id;
  ExportPlan plan;
  std::vector<Path> files;  // the model first
  std::uint64_t bytes = 0;
  std::int64_t opset = 0;
  std::size_t nodes = 0;
  std::size_t tagged_nodes = 0;
  std::size_t initializers = 0;
  std::int64_t parameters = 0;
  std::vector<std::string> unused;
  std::vector<std::string> tied;
  std::optional<std::string> check;  // what ExportDestination::check saw
  double seconds = 0;
};

// usage, with the pointer into the file `where`, for a shape whose name no architecture has or that is no size.
Status check_export_shapes(const std::map<std::string, std::int64_t>& shapes, std::string_view where);

Result<ExportPlan> plan_export(const ExportRequest& request, Progress& progress);
// The same for a config that is at hand; the folder may be empty, then there is no preprocessor.
Result<ExportPlan> plan_export(const ModelConfig& config, const ExportRequest& request, Progress& progress);

// The checked graph, weights still views of the checkpoint.
Result<ExportedGraph> export_graph(const ExportRequest& request, Progress& progress);

// Where an export goes.
struct ExportDestination {
  Path output;
  bool overwrite = false;
  bool with_report = false;
  std::vector<std::string> ours;  // side files there that a manifest lists: these may be replaced
  // Asked about the written model before it gets its final name: what was seen, in a few words. Null: nobody asks.
  std::function<Result<std::string>(const Path& model, const ExportPlan& plan)> check;
};

// The whole of `winml export`: graph, model file, side files, reports.
Result<ExportReport> export_model(const ExportRequest& request, const ExportDestination& destination,
                                  Progress& progress);

Json to_json(const ExportReport& report);

}  // namespace mk
