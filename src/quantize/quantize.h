#pragma once
// Quantization as commands and builds run it: one pass or several in order over a model in memory, calibrated, judged
// against the model that came in.

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"
#include "graph/ir.h"
#include "quantize/accuracy.h"
#include "quantize/dynamic.h"
#include "quantize/float16.h"
#include "quantize/qdq.h"
#include "quantize/quant_config.h"
#include "quantize/smooth.h"
#include "quantize/weight_only.h"
#include "runtime/input_shapes.h"
#include "runtime/library.h"
#include "runtime/sample_source.h"

namespace mk {

struct QuantizeSetup {
  std::string name;  // what messages call the model
  // Asked when a session is needed: to calibrate, to judge and to verify.
  std::function<Result<std::shared_ptr<Runtime>>()> runtime;
  const SampleSource* samples = nullptr;  // the user's; null: static passes are calibrated with random values
  const SampleSource* judged = nullptr;   // samples to judge on, where they are others than `samples`
  ShapeOverrides shapes;                  // of random values
  bool verify = true;                     // judge, or, where there is nothing to judge on, run it once
  bool tensors = false;                   // figures of inner tensors too
  int threads = 0;                        // of the runtime; 0 leaves it to it
};

// What one pass did.
struct QuantizeStep {
  std::string mode;  // as in QuantConfig
  double seconds = 0;
  std::size_t nodes = 0;  // quantized or converted
  std::optional<QdqReport> qdq;
  std::optional<DynamicReport> dynamic;
  std::optional<WeightOnlyReport> weight_only;
  std::optional<Float16Report> float16;
  // Of a static pass.
  SmoothReport smooth;
  std::string method;
  std::size_t samples = 0;
  std::string source;  // of the samples
  double calibration_seconds = 0;
  std::optional<double> per_channel_gain_db;  // channel_gain.h, where weights are per tensor and the result is judged
};

struct QuantizeReport {
  std::vector<QuantizeStep> steps;
  std::optional<Accuracy> accuracy;  // null where there is nothing to judge on
  std::string judged_on;             // "samples 11 to 50 of 50 of sentences.txt"; else why it was not judged
  double judge_seconds = 0;
  std::vector<std::string> warnings;
};

// The model is changed in place; after an error it is not usable. Errors: unsupported for a compiled model, and for one
// that is quantized already where the first pass is not fp16; usage for settings that no pass takes; failed where the
// result does not pass its checks; inference, interrupted.
Result<QuantizeReport> quantize_model(Model& model, std::span<const QuantConfig> passes, const QuantizeSetup& setup,
                                      Progress& progress);

// failed or unsupported where a model is no input of these passes. What quantize_model() asks first.
Status check_quantizable(const Model& model, std::span<const QuantConfig> passes);

// The report's warnings, and of each tensor with values that float16 does not hold; once the model is written.
std::vector<std::string> all_warnings(const QuantizeReport& report);

// What the report says of the passes and of accuracy: {"passes": [...], "accuracy": {...} or null, "judged_on": ...,
// "warnings": [...]}, all of these. Figures that are not finite or were not measured are null.
Json to_json(const QuantizeReport& report);

}  // namespace mk
