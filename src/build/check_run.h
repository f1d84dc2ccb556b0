#pragma once
// Does a model that was just written run? One run on the CPU with inputs drawn from their value ranges: every output
// must have the declared element type and static dimensions, and floats must be finite.

#include <optional>
#include <string>

#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"

namespace mk {

// What was seen, in a few words; also where there is no ONNX Runtime on this machine (then a warning says so).
// failed, naming the output, otherwise.
Result<std::string> check_run(const Path& model, const std::optional<Path>& ort, Progress& progress);

}  // namespace mk
