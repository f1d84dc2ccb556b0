#include "build/optimize_stage.h"

#include <fmt/format.h>

#include "base/json.h"
#include "build/numeric_check.h"
#include "build/pass_policy.h"
#include "optimize/optimizer.h"

namespace mk {
namespace {

AfterOptimize after_optimize(const BuildConfig& config) {
  if (!config.quant) return AfterOptimize::nothing;
  return config.quant->mode == "fp16" ? AfterOptimize::float16 : AfterOptimize::integers;
}

Result<std::map<std::string, bool>> flags_of(const BuildConfig& config) {
  std::map<std::string, bool> flags;
  if (!config.optim) return flags;
  for (const auto& [name, value] : *config.optim) {
    const bool* on = std::get_if<bool>(&value);
    if (!on) return fail(ErrorCode::usage, "Capability '" + name + "' expects bool", "#/optim/" + name);
    flags[name] = *on;
  }
  return flags;
}

Json details_of(const OptimizeReport& report, const PassPolicy& policy) {
  Json passes = Json::object(), taken_back = Json::object();
  for (const PassRecord& row : report.passes) passes[std::string(row.pass)] = row.fired;
  for (const RolledBack& row : report.rolled_back) taken_back[std::string(row.pass)] = row.reason;
  Json details{{"policy", policy.reason},
               {"nodes_before", report.nodes_before},
               {"nodes_after", report.nodes_after},
               {"passes", std::move(passes)}};
  if (!taken_back.empty()) details["rolled_back"] = std::move(taken_back);
  return details;
}

}  // namespace

bool is_compiled(const Model& model) {
  for (const Node* node : model.graph->nodes()) {
    if (node->op_type == "EPContext") return true;
  }
  return false;
}

Result<OptimizeStage> run_optimize(BuildState& state) {
  PassPolicy policy = pass_policy(state.request.wanted, after_optimize(state.config));
  MK_TRY(const auto flags, flags_of(state.config));
  MK_TRY(const auto left_out, policy.passes.set_all(flags));
  for (const std::string& sentence : left_out) state.progress.info(sentence);
  policy.passes.close();
  OptimizeOptions options{.capabilities = policy.passes, .standard_only = policy.standard_only};
  if (state.request.verify) options.check = numeric_check({.ort = state.request.ort}, state.progress);
  MK_TRY(const OptimizeReport report, optimize(state.graph, options));
  for (const RolledBack& taken : report.rolled_back) {
    state.progress.warn(fmt::format("{} was taken back: {}", taken.pass, taken.reason));
  }
  if (!report.numbers.not_compared.empty()) {
    state.progress.warn("the optimized model was not compared: " + report.numbers.not_compared);
  }
  OptimizeStage done{.fired = !report.passes.empty()};
  done.outcome.summary = fmt::format("{} -> {} nodes", report.nodes_before, report.nodes_after);
  done.outcome.details = [details = details_of(report, policy)] { return details; };
  return done;
}

}  // namespace mk
