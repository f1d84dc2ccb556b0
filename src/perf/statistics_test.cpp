#include "perf/statistics.h"

#include "base/json.h"
#include "testing/testing.h"

namespace mk {
namespace {

// The cases' percentiles are numpy's.
TEST(LatencyStatistics, EqualsNumpy) {
  ASSERT_OK_AND(const auto book, read_json(testing::repository("tests/data/metrics/latency.json")));
  ASSERT_GE(book["cases"].size(), 10u);
  for (const Json& golden : book["cases"]) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    const auto samples = golden["input"]["samples"].get<std::vector<double>>();
    const auto s = latency_statistics(samples, golden["input"]["warmup"].get<std::size_t>());
    const Json& expected = golden["expected"];
    const auto close = [](double actual, const Json& value) {
      EXPECT_NEAR(actual, value.get<double>(), 1e-12 * std::max(1.0, std::abs(value.get<double>())));
    };
    close(s.p50, expected["p50"]["linear"]);
    close(s.p90, expected["p90"]["linear"]);
    close(s.p95, expected["p95"]["linear"]);
    close(s.p99, expected["p99"]["linear"]);
    close(s.mean, expected["mean"]);
    close(s.std, expected["std"]);
    close(s.min, expected["min"]);
    close(s.max, expected["max"]);
    close(s.warmup_mean, expected["warmup_mean"]);
  }
}

}  // namespace
}  // namespace mk
