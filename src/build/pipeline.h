#pragma once
// The one pipeline: stages as values, run in order over one state, by every command that makes a model (spec: build).

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/path.h"
#include "base/progress.h"
#include "base/publish.h"
#include "base/result.h"
#include "build/build_config.h"
#include "build/manifest.h"
#include "export/export.h"
#include "graph/ir.h"
#include "hub/resolve.h"
#include "runtime/target.h"

namespace mk {

struct BuildRequest {
  ResolvedModel model;
  BuildConfig config;
  std::string submodel;                        // of a composite this graph; then `pipeline` is what it was chosen by
  std::optional<std::string> pipeline;         // the task that names the composite; detected when absent
  std::map<std::string, std::int64_t> shapes;  // --shape-config
  std::optional<DataType> float_type;
  Path folder;           // where the artefacts go
  std::string prefix;    // of their names; "<key>_" in the cache, else empty
  std::string target;    // "cpu/cpu", as resolved
  TargetRequest wanted;  // what the passes are chosen for
  std::optional<std::string> cache_key;
  bool then_float16 = false;        // after the quant section's pass: w4a16
  bool rebuild = false;             // even where nothing has changed, and over a model that no build of ours made
  bool verify = true;               // compare and run what was made
  bool keep_intermediates = false;  // also write the model after each stage that changed it
  std::optional<Path> ort;          // --ort
};

// One build in progress, handed from stage to stage.
struct BuildState {
  const BuildRequest& request;
  Progress& progress;
  BuildConfig config;  // as it will be kept beside the model
  std::unique_ptr<Model> graph;
  bool changed = false;            // the graph is not what the source file has
  std::optional<ExportPlan> plan;  // of a checkpoint
  Path final_path;                 // of the model
  Publication publication;
  std::vector<Path> files;                     // the model, then its data
  std::vector<Path> intermediates;             // written on request
  std::vector<std::string> old_intermediates;  // names of those that an earlier build made
  std::function<void()> graph_is_good;         // called once, before anything is written
};

struct StageOutcome {
  std::string summary;  // what its progress line ends with
  // For the manifest; asked once all stages have run, for some figures are counted while the model is written. May be
  // empty.
  std::function<Json()> details;
};

struct BuildStage {
  std::string_view name;
  // Why it is skipped; nothing where it runs.
  std::optional<std::string> (*skip)(const BuildState&);
  Result<StageOutcome> (*run)(BuildState&);
};

std::span<const BuildStage> build_stages();

// Runs the stages; nothing has a final name afterwards: the caller commits state.publication.
Result<std::vector<StageRecord>> run_stages(BuildState& state, std::span<const BuildStage> stages);

}  // namespace mk
