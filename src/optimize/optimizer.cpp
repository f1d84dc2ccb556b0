#include "optimize/optimizer.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/system.h"
#include "graph/shape_inference.h"
#include "graph/verifier.h"
#include "optimize/passes.h"
#include "optimize/raise_opset.h"

namespace mk {
namespace {

constexpr int most_rounds = 8;

std::size_t count_nodes(const Model& model) {
  std::size_t count = 0;
  for_each_node(*model.graph, [&](Node&) { ++count; });
  return count;
}

struct Chosen {
  const Pass* pass;
  std::vector<Pattern> patterns;
};

std::vector<const Pass*> enabled(const OptimizeOptions& options, const std::set<std::string_view>& barred) {
  std::vector<const Pass*> list;
  for (const Pass* pass : options.passes.empty() ? all_passes() : options.passes) {
    const bool on = !pass->is_switched() || options.capabilities.has(pass->capability());
    if (on && !barred.contains(pass->name)) list.push_back(pass);
  }
  return list;
}

Result<std::vector<Chosen>> choose(const Model& model, const OptimizeOptions& options,
                                   const std::set<std::string_view>& barred, std::vector<NearMiss>* misses) {
  std::vector<Chosen> chosen;
  for (const Pass* pass : enabled(options, barred)) {
    if (auto why = cannot_raise_opset(model, pass->opset)) {
      if (misses) misses->push_back({pass->name, "", std::move(*why)});
      continue;
    }
    Chosen& entry = chosen.emplace_back(Chosen{pass, {}});
    for (const std::string_view text : pass->patterns) {
      MK_TRY(Pattern pattern, parse_pattern(text));
      entry.patterns.push_back(std::move(pattern));
    }
  }
  return chosen;
}

// How many nodes every match has.
std::size_t required_lines(const Pattern& pattern) {
  const auto always = [](const PatternLine& line) {
    return std::none_of(line.alternatives.begin(), line.alternatives.end(),
                        [](const PatternCall& call) { return call.skippable; });
  };
  return static_cast<std::size_t>(std::count_if(pattern.lines.begin(), pattern.lines.end(), always));
}

// One optimization from start to end, without the passes that are barred.
class Attempt {
 public:
  Attempt(Model& model, const OptimizeOptions& options, OptimizeReport& report)
      : model_(model),
        report_(report),
        standard_only_(options.standard_only),
        misses_(options.explain ? &report.near_misses : nullptr) {}

  // The pass that broke the structure, and how; null where all is well.
  Result<const Pass*> run(const std::vector<Chosen>& chosen, std::string& problem) {
    NodeIndex index(*model_.graph);
    PatchApplier applier(model_, index, standard_only_);
    bool again = true;
    for (int round = 0; again && round < most_rounds; ++round) {
      again = false;
      for (const Chosen& entry : chosen) {
        if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
        const auto start = std::chrono::steady_clock::now();
        PassRun run(entry.pass->name, model_, index, applier, round == 0 ? misses_ : nullptr);
        if (entry.pass->run) {
          if (model_.opset() < entry.pass->opset) continue;  // only a match is worth a newer opset
          MK_CHECK(entry.pass->run(run));
        } else {
          for (const Pattern& pattern : entry.patterns) rewrite(*entry.pass, pattern, run);
        }
        if (run.changes() > 0) {
          Status structure = model_.graph->sort();
          if (structure) structure = verify(model_);
          if (!structure) {
            problem = structure.error().to_string();
            return entry.pass;
          }
          again = true;
        }
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        record(*entry.pass, run.changes(), seconds);
      }
    }
    return nullptr;
  }

 private:
  void rewrite(const Pass& pass, const Pattern& pattern, PassRun& run) {
    for (const std::string& op : root_operators(pattern)) {
      const std::vector<Node*>& candidates = run.index().of(op);
      for (std::size_t i = 0; i < candidates.size(); ++i) {  // it may grow
        if (candidates[i]) rewrite_at(pass, pattern, *candidates[i], run);
      }
    }
  }

  static void rewrite_at(const Pass& pass, const Pattern& pattern, Node& root, PassRun& run) {
    NearMatch near;
    const std::optional<Match> found = match(pattern, root, run.explains() ? &near : nullptr);
    if (!found) {
      if (near.nodes * 2 > required_lines(pattern) + 1) run.miss(root, near.reason);
      return;
    }
    Model& model = run.model();
    const auto imports = model.opset_imports;
    const std::int64_t ir_version = model.ir_version, opset = model.opset();
    raise_opset(model, pass.opset);
    Patch patch(run.opset());
    const Outcome outcome = pass.rewrite(*found, patch);
    if (!outcome.done && !outcome.reason.empty()) run.miss(root, outcome.reason);
    if (outcome.done && run.apply(std::move(patch), root)) {
      if (model.opset() != opset) renew_nodes(model, opset);
      return;
    }
    model.opset_imports = imports;
    model.ir_version = ir_version;
  }

  void record(const Pass& pass, std::size_t fired_here, double seconds) {
    const auto known = std::find_if(report_.passes.begin(), report_.passes.end(),
                                    [&](const PassRecord& row) { return row.pass == pass.name; });
    PassRecord& row = known == report_.passes.end() ? report_.passes.emplace_back(PassRecord{pass.name}) : *known;
    row.fired += fired_here;
    row.seconds += seconds;
  }

  Model& model_;
  OptimizeReport& report_;
  bool standard_only_;
  std::vector<NearMiss>* misses_;
};

// Optimizes `source` without the passes that are barred, barring those that break the structure.
Result<std::unique_ptr<Model>> attempt(const Model& source, const OptimizeOptions& options,
                                       std::set<std::string_view>& barred, OptimizeReport& report) {
  while (true) {
    std::unique_ptr<Model> model = clone(source);
    report.passes.clear();
    report.near_misses.clear();
    MK_TRY(const std::vector<Chosen> chosen,
           choose(*model, options, barred, options.explain ? &report.near_misses : nullptr));
    std::string problem;
    MK_TRY(const Pass* broken, Attempt(*model, options, report).run(chosen, problem));
    if (!broken) return model;
    barred.insert(broken->name);
    report.rolled_back.push_back({broken->name, problem});
  }
}

// The first pass of the list with which the numbers differ: the passes before it, all together, are right.
Result<const Pass*> culprit(const Model& source, const OptimizeOptions& options,
                            const std::set<std::string_view>& barred) {
  const std::vector<const Pass*> suspects = enabled(options, barred);
  std::size_t right = 0, wrong = suspects.size();  // so many of the first passes give right and wrong numbers
  while (wrong - right > 1) {
    const std::size_t middle = (right + wrong) / 2;
    std::set<std::string_view> without = barred;
    for (std::size_t i = middle; i < suspects.size(); ++i) without.insert(suspects[i]->name);
    OptimizeReport ignored;
    MK_TRY(const auto model, attempt(source, options, without, ignored));
    MK_TRY(const NumericVerdict verdict, options.check(source, *model));
    (verdict.same ? right : wrong) = middle;
  }
  return suspects.empty() ? nullptr : suspects[wrong - 1];
}

}  // namespace

bool PassRun::apply(Patch patch, Node& anchor) {
  const std::string label = misses_ ? anchor.label() : std::string();
  if (const auto refused = applier_.apply(std::move(patch), anchor)) {
    if (misses_) misses_->push_back({pass_, label, *refused});
    return false;
  }
  ++changes_;
  return true;
}

void PassRun::miss(const Node& node, std::string reason) {
  if (misses_) misses_->push_back({pass_, node.label(), std::move(reason)});
}

Result<OptimizeReport> optimize(std::unique_ptr<Model>& model, const OptimizeOptions& options) {
  OptimizeReport report;
  report.nodes_before = count_nodes(*model);
  MK_TRY(const InferenceReport inferred, infer_shapes(*model));
  for (const InferenceNote& note : inferred.notes) report.notes.push_back(note.node + ": " + note.message);
  std::set<std::string_view> barred;
  std::unique_ptr<Model> result;
  while (true) {
    MK_TRY(result, attempt(*model, options, barred, report));
    if (!options.check) break;
    MK_TRY(report.numbers, options.check(*model, *result));
    if (report.numbers.same) break;
    MK_TRY(const Pass* wrong, culprit(*model, options, barred));
    if (!wrong || !barred.insert(wrong->name).second) {
      return fail(ErrorCode::failed, "the optimized model gives other numbers: " + report.numbers.difference);
    }
    report.rolled_back.push_back({wrong->name, report.numbers.difference});
  }
  std::erase_if(report.passes, [](const PassRecord& row) { return row.fired == 0; });
  report.nodes_after = count_nodes(*result);
  model = std::move(result);
  return report;
}

}  // namespace mk
