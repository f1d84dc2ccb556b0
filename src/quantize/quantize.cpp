#include "quantize/quantize.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/json.h"
#include "graph/summary.h"
#include "graph/verifier.h"
#include "quantize/calibrate.h"
#include "quantize/quantization_parameters.h"
#include "runtime/random_samples.h"

namespace mk {
namespace {

constexpr std::uint64_t default_seed = 42;
constexpr std::size_t most_judged = 100;

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Everything that the passes of one run share.
struct Run {
  Model& model;
  const QuantizeSetup& setup;
  Progress& progress;
  QuantizeReport report;
  std::unique_ptr<SampleSource> drawn;  // random samples, where a static pass had no others

  const SampleSource* samples() const { return setup.samples ? setup.samples : drawn.get(); }
};

Result<DataType> integer_type(const std::string& name, std::string_view what) {
  const auto type = data_type_named(name);
  if (type && is_quantized_type(*type)) return *type;
  return fail(ErrorCode::usage, fmt::format("'{}' is no {} type", name, what), {},
              "There are uint8, int8, uint16 and int16");
}

NodeFilter exclusions(const QuantConfig& config) {
  return {config.nodes_to_exclude.value_or(std::vector<std::string>{}),
          config.op_types_to_exclude.value_or(std::vector<std::string>{})};
}

// --- static ---

Result<QdqOptions> qdq_options(const QuantConfig& config) {
  QdqOptions options;
  MK_TRY(options.weight_type, integer_type(config.weight_type, "weight"));
  MK_TRY(options.activation_type, integer_type(config.activation_type, "activation"));
  options.per_channel = config.per_channel;
  options.weight_symmetric = config.weight_symmetric.value_or(config.symmetric);
  options.activation_symmetric = config.activation_symmetric.value_or(config.symmetric);
  options.op_types = config.op_types_to_quantize.value_or(std::vector<std::string>{});
  options.exclude = exclusions(config);
  return options;
}

Status ensure_samples(Run& run, const QuantConfig& config) {
  if (run.samples()) return {};
  // Some more than calibrate: those are judged on.
  const auto count = static_cast<std::size_t>(config.samples);
  const auto seed = static_cast<std::uint64_t>(config.seed.value_or(static_cast<std::int64_t>(default_seed)));
  MK_TRY(run.drawn, random_samples(run.model, count + std::max<std::size_t>(1, count / 4), seed, {}));
  run.report.warnings.push_back(
      "calibrated with random values in the inputs' ranges: the accuracy on real data is likely to be lower; give "
      "real samples with --calibration-data");
  return {};
}

Status static_pass(Run& run, const QuantConfig& config, QuantizeStep& step) {
  if (config.samples < 1) return fail(ErrorCode::usage, "the number of samples must be at least 1");
  MK_TRY(const QdqOptions options, qdq_options(config));
  CalibrationOptions calibration;
  MK_TRY(calibration.method, calibration_method_named(config.calibration_method));
  MK_CHECK(ensure_samples(run, config));
  MK_TRY(calibration.tensors, tensors_to_observe(run.model, options));
  calibration.count = static_cast<std::size_t>(config.samples);
  calibration.threads = run.setup.threads;
  const SampleSource& source = *run.samples();
  if (source.size() < calibration.count && run.setup.samples)
    run.report.warnings.push_back(fmt::format("there are {} samples, fewer than the {} asked for: all calibrate",
                                              source.size(), calibration.count));
  MK_TRY(const auto runtime, run.setup.runtime());
  const auto start = Clock::now();
  MK_TRY(Calibration seen, calibrate(runtime, run.model, source, calibration, run.progress));
  step.calibration_seconds = since(start);
  step.method = config.calibration_method;
  step.samples = seen.samples;
  step.source = source.description();
  std::ranges::move(seen.warnings, std::back_inserter(run.report.warnings));
  MK_TRY(QdqReport report, insert_qdq(run.model, seen.ranges, options));
  std::ranges::copy(report.warnings, std::back_inserter(run.report.warnings));
  step.nodes = report.nodes_quantized;
  step.qdq = std::move(report);
  return {};
}

// --- fp16 ---

Status float16_pass(Run& run, const QuantConfig& config, QuantizeStep& step) {
  Float16Options options;
  options.keep_io_types = config.fp16_keep_io_types;
  options.blocked_ops = config.fp16_op_block_list;
  options.blocked_nodes = config.nodes_to_exclude.value_or(std::vector<std::string>{});
  MK_TRY(Float16Report report, convert_to_float16(run.model, options));
  for (const std::string& pattern : report.unmatched_patterns)
    run.report.warnings.push_back(fmt::format("no node matches the exclusion '{}'", pattern));
  step.nodes = report.converted_nodes;
  step.float16 = std::move(report);
  return {};
}

struct ModeRow {
  std::string_view mode;
  Status (*apply)(Run&, const QuantConfig&, QuantizeStep&);
  bool integers;  // makes integers of floats, which a quantized model has few of
  bool calibrates;
};
constexpr std::array modes{
    ModeRow{"static", &static_pass, true, true},
    ModeRow{"fp16", &float16_pass, false, false},
};

Result<const ModeRow*> row_of(const QuantConfig& config) {
  for (const ModeRow& row : modes)
    if (row.mode == config.mode) return &row;
  std::string known;
  for (const ModeRow& row : modes) known.append(known.empty() ? "" : ", ").append(row.mode);
  return fail(ErrorCode::usage, fmt::format("unknown mode of quantization '{}'", config.mode), {},
              "There are " + known);
}

// --- judging ---

struct Judged {
  const SampleSource* source;
  JudgeOptions options;
  std::string text;
};

// The samples beyond those that calibrate; where there are none the last fifth, which then also calibrated.
Judged choose_judged(const Run& run, std::size_t calibrating) {
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

// Both run once on random values, to see that the result gives numbers.
Status check_run(Run& run, const Model& original) {
  auto runtime = run.setup.runtime();
  if (!runtime) {
    run.report.warnings.push_back("the result was not run: " + runtime.error().message);
    return {};
  }
  auto source = random_samples(original, 1, default_seed, {});
  if (!source) {
    run.report.warnings.push_back("the result was not run: " + source.error().to_string());
    return {};
  }
  const JudgeOptions once{.count = 1, .threads = run.setup.threads};
  MK_TRY(const Accuracy accuracy, judge(*runtime, original, run.model, **source, once, run.progress));
  if (const std::string problem = accuracy.problem(); !problem.empty())
    return fail(ErrorCode::failed, "the quantized model runs, but " + problem, {},
                "--no-verify writes it all the same; excluding nodes may mend it");
  return {};
}

Status judge_result(Run& run, const Model& original, std::size_t calibrating, bool calibrated) {
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
    MK_TRY(Accuracy accuracy, judge(runtime, original, run.model, *judged.source, judged.options, run.progress));
    if (const std::string problem = accuracy.problem(); !problem.empty())
      return fail(ErrorCode::failed, "the quantized model runs, but " + problem, {},
                  "--no-verify writes it all the same; excluding nodes may mend it");
    run.report.accuracy = std::move(accuracy);
    run.report.judged_on = std::move(judged.text);
  }
  run.report.judge_seconds = since(start);
  return {};
}

std::size_t quantized_nodes(const Model& model) {
  std::size_t count = 0;
  for_each_node(*model.graph, [&](const Node& node) { count += is_quantized_operator(node.op_type); });
  return count;
}

}  // namespace

Status check_quantizable(const Model& model, std::span<const QuantConfig> passes) {
  if (passes.empty()) return fail(ErrorCode::usage, "there is no pass to run");
  if (model.opset() == 0)
    return fail(ErrorCode::malformed, "the model imports no opset of ai.onnx", {},
                "Was it written in full? A full disk leaves such files");
  for (const QuantConfig& config : passes) MK_CHECK(row_of(config));
  const Node* compiled = nullptr;
  for_each_node(*model.graph, [&](const Node& node) {
    if (node.op_type == "EPContext") compiled = &node;
  });
  if (compiled)
    return fail(ErrorCode::unsupported, "the model is compiled already", compiled->label(),
                "Quantize the model that it was compiled from");
  MK_TRY(const ModeRow* first, row_of(passes.front()));
  const std::size_t quantized = first->integers ? quantized_nodes(model) : 0;
  if (quantized > 0)
    return fail(ErrorCode::unsupported, fmt::format("the model is quantized already: {} of its nodes are", quantized),
                {}, "Quantize the float model that it was made from; -p fp16 converts what is still float in it");
  return {};
}

Result<QuantizeReport> quantize_model(Model& model, std::span<const QuantConfig> passes, const QuantizeSetup& setup,
                                      Progress& progress) {
  MK_CHECK(check_quantizable(model, passes));
  Run run{model, setup, progress, {}, nullptr};
  const std::unique_ptr<Model> original = setup.verify ? clone(model) : nullptr;
  bool calibrated = false;
  for (const QuantConfig& config : passes) {
    MK_TRY(const ModeRow* row, row_of(config));
    QuantizeStep step{.mode = config.mode};
    const auto start = Clock::now();
    MK_CHECK(row->apply(run, config, step));
    step.seconds = since(start);
    calibrated = calibrated || row->calibrates;
    run.report.steps.push_back(std::move(step));
  }
  MK_CHECK(verify(model));
  if (setup.verify) {
    const auto calibrating = static_cast<std::size_t>(std::max<std::int64_t>(passes.front().samples, 0));
    MK_CHECK(judge_result(run, *original, calibrating, calibrated));
  } else {
    run.report.judged_on = "not judged: --no-verify";
  }
  return std::move(run.report);
}

}  // namespace mk
