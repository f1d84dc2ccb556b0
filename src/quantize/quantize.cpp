#include "quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/json.h"
#include "graph/random_operators.h"
#include "graph/shape_inference.h"
#include "graph/summary.h"
#include "graph/verifier.h"
#include "quantize/modes.h"
#include "quantize/node_filter.h"
#include "runtime/random_samples.h"

namespace mk {
namespace {

constexpr std::size_t most_judged = 100;

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Judged {
  const SampleSource* source;
  JudgeOptions options;
  std::string text;
};

// The samples beyond those that calibrate; where there are none the last fifth, which then also calibrated.
Judged choose_judged(const QuantizeRun& run, std::size_t calibrating) {
  if (run.setup.judged)
    return {run.setup.judged, {.first = 0, .count = run.setup.judged->size()}, run.setup.judged->description()};
  const SampleSource& source = *run.samples();
  const std::size_t size = source.size();
  JudgeOptions options;
  std::string note;
  if (size > calibrating) {
    options.first = calibrating;
    options.count = std::min(size - calibrating, most_judged);
  } else {
    options.count = std::min(std::max<std::size_t>(1, size / 5), most_judged);
    options.first = size - options.count;
    note = ", which also calibrated";
  }
  const std::string which = options.count == 1
                                ? fmt::format("sample {}", options.first + 1)
                                : fmt::format("samples {} to {}", options.first + 1, options.first + options.count);
  return {&source, options, fmt::format("{} of {} ({}){}", which, size, source.description(), note)};
}

// Random values may be none that the model takes: then there is nothing to say of the result.
Result<std::optional<Accuracy>> judge_drawn(QuantizeRun& run, const std::shared_ptr<Runtime>& runtime,
                                            const Model& original, const SampleSource& source,
                                            const JudgeOptions& options) {
  auto accuracy = judge(runtime, original, run.model, source, options, run.progress);
  if (accuracy) return std::optional<Accuracy>(std::move(*accuracy));
  const bool runs = accuracy.error().code != ErrorCode::inference ||
                    judge(runtime, original, original, source, options, silent_progress()).has_value();
  if (runs) return tl::make_unexpected(std::move(accuracy).error());
  run.report.warnings.push_back(
      "the result was not run: the original does not run on random values either (--calibration-data gives real ones, "
      "--shape-config sizes of dynamic dimensions): " +
      accuracy.error().message);
  return std::optional<Accuracy>();
}

// Both run once on random values, to see that the result gives numbers.
Status check_run(QuantizeRun& run, const Model& original) {
  auto runtime = run.setup.runtime();
  if (!runtime) {
    run.report.warnings.push_back("the result was not run: " + runtime.error().message);
    return {};
  }
  auto source = random_samples(original, 1, default_seed, run.setup.shapes);
  if (!source) {
    run.report.warnings.push_back("the result was not run: " + source.error().to_string());
    return {};
  }
  const JudgeOptions once{.count = 1, .threads = run.setup.threads};
  MK_TRY(const auto accuracy, judge_drawn(run, *runtime, original, **source, once));
  if (!accuracy) return {};
  if (const std::string problem = accuracy->problem(); !problem.empty())
    return fail(ErrorCode::failed, "the quantized model runs, but " + problem, {},
                "--no-verify writes it all the same; excluding nodes may mend it");
  return {};
}

Status judge_result(QuantizeRun& run, const Model& original, std::size_t calibrating, bool calibrated) {
  const auto start = Clock::now();
  const bool given = run.setup.samples || run.setup.judged;
  if (!given && !calibrated) {
    run.report.judged_on = "not judged: there are no samples (--calibration-data gives some)";
    MK_CHECK(check_run(run, original));
  } else {
    MK_TRY(const auto runtime, run.setup.runtime());
    Judged judged = choose_judged(run, calibrating);
    judged.options.tensors = run.setup.tensors;
    judged.options.threads = run.setup.threads;
    std::optional<Accuracy> accuracy;
    if (given) {
      MK_TRY(accuracy, judge(runtime, original, run.model, *judged.source, judged.options, run.progress));
    } else {
      MK_TRY(accuracy, judge_drawn(run, runtime, original, *judged.source, judged.options));
    }
    if (!accuracy) {
      run.report.judged_on = "not judged: the model does not run on random values";
      return {};
    }
    if (const std::string problem = accuracy->problem(); !problem.empty())
      return fail(ErrorCode::failed, "the quantized model runs, but " + problem, {},
                  "--no-verify writes it all the same; excluding nodes may mend it");
    for (const TensorAccuracy& output : accuracy->outputs) {
      if (output.not_finite > 0)
        run.report.warnings.push_back(fmt::format(
            "the output {} has {} values that are NaN or infinite in the original and in the result: they do not count",
            output.name, output.not_finite));
    }
    run.report.accuracy = std::move(accuracy);
    run.report.judged_on = std::move(judged.text);
  }
  run.report.judge_seconds = since(start);
  return {};
}

// What the user names that the model does not have.
void warn_of_unmatched(QuantizeRun& run, std::span<const QuantConfig> passes) {
  std::set<std::string> patterns, op_types;
  const auto take = [](std::set<std::string>& into, const std::optional<std::vector<std::string>>& names) {
    if (names) into.insert(names->begin(), names->end());
  };
  for (const QuantConfig& config : passes) {
    take(patterns, config.nodes_to_exclude);
    take(op_types, config.op_types_to_exclude);
    take(op_types, config.op_types_to_quantize);
    if (config.mode == "fp16") take(op_types, config.fp16_op_block_list);
  }
  const auto visit = [&](const Node& node) {
    std::erase_if(patterns, [&](const std::string& pattern) { return NodeFilter{{pattern}, {}}.matches(node); });
    op_types.erase(node.op_type);
  };
  for_each_node(*run.model.graph, visit);
  for (const Function& function : run.model.functions) for_each_node(*function.body, visit);
  for (const std::string& pattern : patterns)
    run.report.warnings.push_back(fmt::format("no node matches the exclusion '{}'", pattern));
  for (const std::string& type : op_types)
    run.report.warnings.push_back(fmt::format("the model has no operator of type '{}'", type));
}

std::string first_reason(const QuantizeStep& step) {
  const std::vector<SkippedNode>* skipped = step.qdq           ? &step.qdq->skipped
                                            : step.dynamic     ? &step.dynamic->skipped
                                            : step.weight_only ? &step.weight_only->skipped
                                                               : nullptr;
  if (skipped && !skipped->empty()) return skipped->front().node + ": " + skipped->front().reason;
  if (step.float16 && !step.float16->kept.empty())
    return step.float16->kept.front().node + ": " + step.float16->kept.front().reason;
  return {};
}

std::size_t quantized_nodes(const Model& model) {
  std::size_t count = 0;
  for_each_node(*model.graph, [&](const Node& node) { count += is_quantized_operator(node.op_type); });
  return count;
}

// A pass that changes nothing is no success, unless there was nothing left to do: a model in float16 already, or one
// that is all integers.
Status check_effect(QuantizeRun& run, const QuantConfig& config, const QuantizeStep& step) {
  if (step.nodes > 0 || (step.float16 && step.float16->converted_tensors > 0)) return {};
  if (step.float16 && step.float16->kept.empty()) {
    run.report.warnings.push_back("the model has nothing left to convert to float16");
    return {};
  }
  std::string message = fmt::format("no node was {}: ", step.float16 ? "converted to float16" : "quantized");
  const bool filtered = config.nodes_to_exclude || config.op_types_to_exclude || config.op_types_to_quantize ||
                        (step.float16 && config.fp16_op_block_list);
  const std::string reason = first_reason(step);
  message += !reason.empty() ? reason
             : filtered      ? "the exclusions leave none"
                             : "the model has no operators of the kinds that this precision changes";
  // What stands between integers stays float32.
  if (step.float16 && !filtered && quantized_nodes(run.model) > 0) {
    run.report.warnings.push_back(std::move(message));
    return {};
  }
  return fail(ErrorCode::failed, message, run.setup.name,
              filtered ? "See which names and types the options leave out" : "Choose another precision");
}

}  // namespace

Status check_quantizable(const Model& model, std::span<const QuantConfig> passes) {
  if (passes.empty()) return fail(ErrorCode::usage, "there is no pass to run");
  if (model.opset() == 0)
    return fail(ErrorCode::malformed, "the model imports no opset of ai.onnx", {},
                "Was it written in full? A full disk leaves such files");
  for (const QuantConfig& config : passes) {
    MK_CHECK(mode_of(config));
    if (config.calibration_save_path || config.calibration_load_path)
      return fail(ErrorCode::usage, "ranges of a calibration are neither saved nor loaded", "#/quant",
                  "Leave calibration_save_path and calibration_load_path out; calibration_data has the samples");
    if (config.samples < 1 || config.samples > most_samples)
      return fail(ErrorCode::usage,
                  fmt::format("the number of samples must be from 1 to {}, not {}", most_samples, config.samples));
  }
  const Node* compiled = nullptr;
  for_each_node(*model.graph, [&](const Node& node) {
    if (node.op_type == "EPContext") compiled = &node;
  });
  if (compiled)
    return fail(ErrorCode::unsupported, "the model is compiled already", compiled->label(),
                "Quantize the model that it was compiled from");
  MK_TRY(const QuantizeMode* first, mode_of(passes.front()));
  const std::size_t quantized = first->integers ? quantized_nodes(model) : 0;
  if (quantized > 0)
    return fail(ErrorCode::unsupported, fmt::format("the model is quantized already: {} of its nodes are", quantized),
                {}, "Quantize the float model that it was made from; -p fp16 converts what is still float in it");
  return {};
}

namespace {

Result<QuantizeReport> run_passes(Model& model, std::span<const QuantConfig> passes, const QuantizeSetup& setup,
                                  Progress& progress) {
  MK_CHECK(check_quantizable(model, passes));
  QuantizeRun run{model, setup, progress, {}, nullptr};
  warn_of_unmatched(run, passes);
  const std::unique_ptr<Model> original = setup.verify ? clone(model) : nullptr;
  if (original && setup.tensors) MK_CHECK(infer_shapes(*original));
  bool calibrated = false;
  for (const QuantConfig& config : passes) {
    MK_TRY(const QuantizeMode* mode, mode_of(config));
    QuantizeStep step{.mode = config.mode};
    const auto start = Clock::now();
    MK_CHECK(mode->apply(run, config, step));
    step.seconds = since(start);
    MK_CHECK(check_effect(run, config, step));
    calibrated = calibrated || mode->calibrates;
    run.report.steps.push_back(std::move(step));
  }
  MK_CHECK(verify(model));
  if (setup.verify && draws_random_numbers(model)) {
    run.report.judged_on = "not judged: the model draws random numbers";
  } else if (setup.verify) {
    const auto calibrating = static_cast<std::size_t>(std::max<std::int64_t>(passes.front().samples, 0));
    MK_CHECK(judge_result(run, *original, calibrating, calibrated));
  } else {
    run.report.judged_on = "not judged: --no-verify";
  }
  return std::move(run.report);
}

}  // namespace

Result<QuantizeReport> quantize_model(Model& model, std::span<const QuantConfig> passes, const QuantizeSetup& setup,
                                      Progress& progress) {
  auto report = run_passes(model, passes, setup, progress);
  // Sessions are made from what is in memory; the user knows the file.
  if (!report && report.error().where == "model in memory") report.error().where = setup.name;
  return report;
}

}  // namespace mk
