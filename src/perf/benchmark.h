#pragma once
// The timed loop: warm-up, then runs that are timed one by one, on the same inputs.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "runtime/session.h"

namespace mk {

struct LoopOptions {
  std::int64_t warmup = 10;
  std::int64_t iterations = 100;
  std::optional<double> duration;  // seconds: run until they have passed since the warm-up, instead of `iterations`
};

// Milliseconds per run, warm-up first. A sample is the wall time around the runtime's call and nothing else: inputs are
// bound before, outputs are released after.
struct LoopSamples {
  std::vector<double> milliseconds;
  std::size_t warmup = 0;
};

// At least one timed run. The error of the first run that fails; interrupted.
Result<LoopSamples> run_loop(BoundRun& run, const LoopOptions& options, Progress& progress);

}  // namespace mk
