#pragma once
// Whether a changed model still gives the numbers of the model it came from: both run on the CPU, unoptimized by the
// runtime, on the same random inputs in the inputs' value ranges.

#include <optional>

#include "base/path.h"
#include "base/progress.h"
#include "optimize/optimizer.h"

namespace mk {

struct NumericCheckOptions {
  std::optional<Path> ort;  // --ort
  // Of the largest difference of an output, relative to its largest magnitude where that is above 1. Models with
  // float16 or bfloat16 values get 10 times as much.
  double tolerance = 1e-3;
};

// The reference is run once, however often the check is asked. Where there is no ONNX Runtime, where the model does not
// run on such inputs, or draws random numbers itself, the verdict says that nothing was compared.
NumericCheck numeric_check(const NumericCheckOptions& options, Progress& progress);

}  // namespace mk
