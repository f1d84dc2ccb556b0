#pragma once
// The ONNX file behind a model reference, for commands that run one: the file itself, a built folder's model, or what a
// checkpoint builds into the cache (where it stays, and is used again while nothing has changed).

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/path.h"
#include "base/result.h"
#include "hub/resolve.h"
#include "winml/command.h"
#include "winml/shared_options.h"
#include "winml/target_options.h"

namespace mk::cli {

// How a checkpoint is built.
struct CheckpointBuild {
  std::optional<std::string> task;
  std::optional<std::int64_t> batch;  // the leading dimension; the export's own where absent
  std::map<std::string, std::int64_t> shapes;
  ExportFiles files;  // its shape_config counts where `shapes` has nothing
  TargetOptions target;
  bool use_cache = true;  // else in a temporary folder, anew
  bool rebuild = false;
};

struct RunnableModel {
  Path onnx;
  std::optional<std::string> task;  // of a checkpoint, as it was built
  std::shared_ptr<void> keep;       // of a temporary build, which goes when this does
};

// Errors are those of the build.
Result<RunnableModel> runnable_model(const ResolvedModel& model, const CheckpointBuild& build, Context& context);

}  // namespace mk::cli
