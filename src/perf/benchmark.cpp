#include "perf/benchmark.h"

#include <algorithm>
#include <chrono>

#include "base/system.h"

namespace mk {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

}  // namespace

Result<LoopSamples> run_loop(BoundRun& run, const LoopOptions& options, Progress& progress) {
  LoopSamples samples;
  samples.warmup = static_cast<std::size_t>(options.warmup);
  constexpr std::int64_t most = 1 << 20;  // reserved; more grow
  samples.milliseconds.reserve(
      static_cast<std::size_t>(std::min(most, options.warmup) + std::min(most, options.iterations)));
  const auto stage = progress.stage("benchmark");

  const auto once = [&]() -> Status {
    const auto start = Clock::now();
    Status status = run.run();
    const auto end = Clock::now();
    run.release_outputs();
    samples.milliseconds.push_back(milliseconds(end - start));
    if (status && interrupted()) return fail(ErrorCode::interrupted, "interrupted");
    return status;
  };

  const auto total = static_cast<std::uint64_t>(options.warmup) + static_cast<std::uint64_t>(options.iterations);
  for (std::int64_t i = 0; i < options.warmup; ++i) {
    MK_CHECK(once());
    if (!options.duration) stage->update(static_cast<std::uint64_t>(i) + 1, total);
  }
  const auto start = Clock::now();
  const double limit = options.duration.value_or(0) * 1000;
  for (std::int64_t i = 0; options.duration || i < options.iterations; ++i) {
    MK_CHECK(once());
    const double elapsed = milliseconds(Clock::now() - start);
    if (options.duration) {
      if (elapsed >= limit) break;
      stage->update(static_cast<std::uint64_t>(elapsed), static_cast<std::uint64_t>(limit));
    } else {
      stage->update(static_cast<std::uint64_t>(options.warmup) + static_cast<std::uint64_t>(i) + 1, total);
    }
  }
  stage->done(std::to_string(samples.milliseconds.size() - samples.warmup) + " runs");
  return samples;
}

}  // namespace mk
