#pragma once
// Measures one ONNX file on one target: opens it, makes inputs, runs the loop, and reports.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"
#include "perf/benchmark.h"
#include "perf/report.h"
#include "runtime/ep_devices.h"
#include "runtime/input_shapes.h"

namespace mk {

struct MeasureOptions {
  std::string model_id;  // as typed, for the report
  std::string origin = "local";
  Path model;  // the file that the session opens
  std::optional<std::string> task;
  std::string precision = "auto";  // as asked for
  Target target;
  const OfferedDevice* device = nullptr;  // of the target; null for the CPU
  std::vector<std::pair<std::string, std::string>> ep_options;
  SessionOptions session;
  LoopOptions loop;
  std::int64_t batch_size = 1;     // of dynamic leading dimensions
  std::uint64_t seed = 42;         // of random inputs
  ShapeOverrides shapes;           // of random inputs
  std::optional<Path> input_data;  // .npz, fed as one batch
  bool memory = true;
};

// `started` is called once the session is open and the inputs are there, with a report that has everything but figures.
Result<PerfReport> measure(const std::shared_ptr<Runtime>& runtime, const MeasureOptions& options, Progress& progress,
                           const std::function<void(const PerfReport&)>& started = {});

}  // namespace mk
