// optimize_model IN.onnx [OUT.onnx] [CAPABILITY ...]: what the optimizer costs and does, pass by pass. `all` switches
// on every capability, `-NAME` switches one off.

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <map>

#include "base/path.h"
#include "base/publish.h"
#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "optimize/optimizer.h"

namespace {

using namespace mk;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status run(int count, char** arguments) {
  auto start = std::chrono::steady_clock::now();
  MK_TRY(auto model, read_onnx(Path(arguments[1])));
  fmt::print("read {:.3f} s\n", seconds_since(start));
  OptimizeOptions options{.explain = std::getenv("EXPLAIN") != nullptr};
  for (int i = 3; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word == "all") {
      for (const Capability& capability : all_capabilities()) MK_CHECK(options.capabilities.set(capability.name, true));
    } else if (word.starts_with('-')) {
      MK_CHECK(options.capabilities.set(word.substr(1), false));
    } else {
      MK_CHECK(options.capabilities.set(word, true));
    }
  }
  start = std::chrono::steady_clock::now();
  MK_TRY(const OptimizeReport report, optimize(model, options));
  fmt::print("optimize {:.3f} s, nodes {} -> {}\n", seconds_since(start), report.nodes_before, report.nodes_after);
  for (const PassRecord& pass : report.passes)
    fmt::print("  {:32} {:6} {:.4f} s\n", pass.pass, pass.fired, pass.seconds);
  for (const RolledBack& pass : report.rolled_back) fmt::print("  rolled back {}: {}\n", pass.pass, pass.reason);
  for (const NearMiss& miss : report.near_misses) fmt::print("  - {} {}: {}\n", miss.pass, miss.node, miss.reason);
  std::map<std::string, int> operators;
  for_each_node(*model->graph, [&](Node& node) { ++operators[node.op_type]; });
  for (const auto& [name, times] : operators) fmt::print("{}:{} ", name, times);
  fmt::print("\n");
  start = std::chrono::steady_clock::now();
  if (count > 2) {
    Publication publication;
    MK_CHECK(write_onnx(*model, Path(arguments[2]), publication, /*overwrite=*/true));
    MK_CHECK(publication.commit());
  }
  fmt::print("write {:.3f} s\n", seconds_since(start));
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) return 2;
  const Status done = run(count, arguments);
  if (!done) fmt::print(stderr, "{}\n", done.error().to_string());
  return done ? 0 : 1;
}
