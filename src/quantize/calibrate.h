#pragma once
// The ranges that a model's float tensors take over samples. The model is run as it is and its values are read where
// the runtime has them; nothing is kept of a sample, so memory does not grow with their number, and samples may have
// different shapes.
//
// minmax      the smallest and the largest value seen
// entropy     Histogram of 128 bins, entropy_range with 128 levels
// percentile  Histogram of 2,048 bins, percentile_range of 99.999
// These are the definitions of onnxruntime.quantization. NaN and infinities do not count: a warning names the tensor.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "graph/ir.h"
#include "quantize/tensor_ranges.h"
#include "runtime/library.h"
#include "runtime/sample_source.h"

namespace mk {

enum class CalibrationMethod { minmax, entropy, percentile };
std::string_view name_of(CalibrationMethod method);
Result<CalibrationMethod> calibration_method_named(std::string_view name);  // usage, listing them

// The range of each index of a tensor's last axis, by the value's name.
using ChannelRanges = std::unordered_map<std::string, std::vector<TensorRange>>;

struct CalibrationOptions {
  CalibrationMethod method = CalibrationMethod::minmax;
  std::size_t first = 0;  // the samples first, first + 1, ... first + count - 1 of the source, as far as it goes
  std::size_t count = 10;
  std::vector<std::string> tensors;   // of the main graph; those that are no float tensors are left out
  std::vector<std::string> channels;  // of those: minmax along the last axis too
  int threads = 0;                    // of the runtime; 0 leaves it to it
};

struct Calibration {
  TensorRanges ranges;  // a tensor that had no finite value has none
  ChannelRanges channels;
  std::size_t samples = 0;
  std::vector<std::string> warnings;
};

// failed where there is no sample; errors of the source and of the runtime; interrupted.
Result<Calibration> calibrate(const std::shared_ptr<Runtime>& runtime, const Model& model, const SampleSource& source,
                              const CalibrationOptions& options, Progress& progress);

}  // namespace mk
