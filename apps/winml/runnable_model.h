#pragma once
// The ONNX file behind a model reference, for commands that run one: the file itself, a built folder's model, or what a
// checkpoint builds into the cache (where it stays, and is used again while nothing has changed).

#include <cstdint>
#include <optional>
#include <string>

#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"
#include "hub/resolve.h"

namespace mk::cli {

// `task` and `batch`, the leading dimension, are for a checkpoint. Errors are those of the build.
Result<Path> runnable_model(const ResolvedModel& model, const std::string& task, std::int64_t batch,
                            Progress& progress);

}  // namespace mk::cli
