#pragma once
// What `winml perf` found, and how it is written: schema 2 of the Python tool's report. Not measured is null.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/result.h"
#include "perf/statistics.h"
#include "runtime/session.h"

namespace mk {

struct MemoryUse {                               // bytes resident; absent where the system does not tell
  std::optional<std::uint64_t> baseline;         // before the session is made
  std::optional<std::uint64_t> after_compile;    // once it is
  std::optional<std::uint64_t> after_inference;  // after the last run
};

// An earlier report and how this run stands to it.
struct BaselineVerdict {
  Path path;
  double median_ms = 0;       // the earlier p50
  double change_percent = 0;  // of the median; above 0 is slower
  double limit_percent = 0;
  std::vector<std::string> differences;  // in what was measured: "batch_size is 4, was 1"
  bool slower() const { return change_percent > limit_percent; }
};

struct PerfReport {
  std::string model_id;          // as typed
  std::string origin = "local";  // or "HF": for people
  Path running_model_path;
  std::optional<std::string> task;
  std::string device;
  std::string device_name;  // of the hardware; may be empty
  std::string ep;           // full name
  std::string ep_short_name;
  std::optional<std::string> ep_source;
  std::string ep_version;          // the runtime's, where the EP is built in
  std::optional<Path> ep_library;  // of a plugin
  std::vector<std::pair<std::string, std::string>> ep_options;
  std::string precision = "auto";  // as asked for
  std::int64_t warmup = 0;
  std::optional<double> duration;
  std::int64_t batch_size = 1;
  std::int64_t effective_batch_size = 1;
  std::string timestamp;

  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<std::pair<std::string, std::int64_t>> dynamic;  // dimensions that were chosen
  std::vector<std::vector<std::int64_t>> input_dims;          // as run
  std::int64_t opset = 0;
  std::optional<std::string> detected_precision;

  std::vector<double> samples_ms;  // timed only
  LatencyStatistics latency;
  std::optional<MemoryUse> memory;
  std::optional<BaselineVerdict> baseline;
  std::optional<Path> saved_to;

  double samples_per_second() const;
  double batches_per_second() const;
};

Json perf_json(const PerfReport& report);
// The figures, for people; "Results saved to: ..." at the end where they were.
std::string perf_text(const PerfReport& report);
// What is shown before the run: the model and the device.
std::string perf_header(const PerfReport& report);

// An earlier report, read before the run that is held against it. usage when the file is no such report.
struct Baseline {
  Path path;
  double median_ms = 0;
  std::shared_ptr<const Json> document;
};
Result<Baseline> read_baseline(const Path& path);
BaselineVerdict judge_against(const Baseline& baseline, const PerfReport& report, double limit_percent);

}  // namespace mk
