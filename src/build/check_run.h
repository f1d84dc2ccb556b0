#pragma once
// Does a model that was just written run? One run on the CPU with inputs drawn from their value ranges: every output
// must have the declared element type and static dimensions, and floats must be finite.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"

namespace mk {

// What was seen, in a few words; also where there is no ONNX Runtime on this machine (then a warning says so).
// `sizes` has values of dynamic dimensions by their names; others get those of choose_shapes.
// failed, naming the output, otherwise; interrupted.
Result<std::string> check_run(const Path& model, const std::optional<Path>& ort,
                              const std::map<std::string, std::int64_t>& sizes, Progress& progress);

}  // namespace mk
