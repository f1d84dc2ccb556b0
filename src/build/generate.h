#pragma once
// A build config for a model: what `winml config` writes, and what `winml build` runs where no config was given (spec:
// config, `winml config`).

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"
#include "build/build_config.h"
#include "build/target_policy.h"
#include "export/export.h"
#include "graph/summary.h"

namespace mk {

struct GenerateRequest {
  std::string model_id;  // as the user wrote it
  std::optional<std::string> task;
  std::optional<std::string> model_class;
  std::string submodel;  // this one of several graphs; the task is then the pipeline's
  TargetPolicy policy;
  bool target_typed = false;  // a target or precision on the command line: it wins over the overrides
  bool quant = true;          // false: no quant section whatever else says
  std::optional<bool> compile;
  std::map<std::string, std::int64_t> shapes;  // --shape-config
  ExportConfig exporting;                      // --export-config, --input-specs, --dynamic-axes, merged
  const Json* overrides = nullptr;             // the document of -c, sparse; must outlive the call
  std::string overrides_name;                  // its file, for errors
  ResolveTarget resolve;
};

// For a checkpoint's config and its folder (empty where there is only a config); no weight is read. `plan` is filled
// with what the export will do where it is given.
Result<BuildConfig> generate_config(const ModelConfig& model, const Path& folder, const GenerateRequest& request,
                                    Progress& progress, ExportPlan* plan = nullptr);

// For an ONNX file: what the graph already is decides which stages follow.
Result<BuildConfig> generate_onnx_config(const ModelSummary& graph, const GenerateRequest& request, Progress& progress);

// The auto class that serves a task in transformers ("AutoModelForMaskedLM"); empty where there is none.
std::string_view auto_class_of(std::string_view task);

}  // namespace mk
