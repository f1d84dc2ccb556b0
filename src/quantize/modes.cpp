#include "quantize/modes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "quantize/calibrate.h"
#include "quantize/channel_gain.h"
#include "quantize/quantization_parameters.h"
#include "runtime/random_samples.h"

namespace mk {
namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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

Status ensure_samples(QuantizeRun& run, const QuantConfig& config) {
  if (run.samples()) return {};
  // Some more than calibrate: those are judged on.
  const auto count = static_cast<std::size_t>(config.samples);
  const auto seed = static_cast<std::uint64_t>(config.seed.value_or(static_cast<std::int64_t>(default_seed)));
  MK_TRY(run.drawn, random_samples(run.model, count + std::max<std::size_t>(1, count / 4), seed, run.setup.shapes));
  run.report.warnings.push_back(
      "calibrated with random values in the inputs' ranges: the accuracy on real data is likely to be lower; give "
      "real samples with --calibration-data");
  return {};
}

Status static_pass(QuantizeRun& run, const QuantConfig& config, QuantizeStep& step) {
  MK_TRY(const QdqOptions options, qdq_options(config));
  CalibrationOptions calibration;
  MK_TRY(calibration.method, calibration_method_named(config.calibration_method));
  MK_CHECK(ensure_samples(run, config));
  MK_TRY(calibration.tensors, tensors_to_observe(run.model, options));
  MK_TRY(calibration.channels, tensors_to_smooth(run.model, options));
  calibration.count = static_cast<std::size_t>(config.samples);
  calibration.threads = run.setup.threads;
  const SampleSource& source = *run.samples();
  if (source.size() < calibration.count && run.setup.samples)
    run.report.warnings.push_back(fmt::format("there are {} samples, fewer than the {} asked for: all calibrate",
                                              source.size(), calibration.count));
  MK_TRY(const auto runtime, run.setup.runtime());
  const auto start = Clock::now();
  auto calibrated = calibrate(runtime, run.model, source, calibration, run.progress);
  if (!calibrated && !run.setup.samples && calibrated.error().code == ErrorCode::inference)
    calibrated.error().hint =
        "Give real inputs with --calibration-data, or sizes of dynamic dimensions with --shape-config";
  if (!calibrated) return tl::make_unexpected(std::move(calibrated).error());
  Calibration& seen = *calibrated;
  step.calibration_seconds = since(start);
  step.method = config.calibration_method;
  step.samples = seen.samples;
  step.source = source.description();
  std::ranges::move(seen.warnings, std::back_inserter(run.report.warnings));
  MK_TRY(step.smooth, smooth_activations(run.model, seen.channels, seen.ranges, options));
  if (run.setup.verify && !options.per_channel) {
    MK_TRY(step.per_channel_gain_db,
           per_channel_gain(run.model, options.weight_type, options.weight_symmetric, options.exclude));
  }
  MK_TRY(QdqReport report, insert_qdq(run.model, seen.ranges, options));
  std::ranges::copy(report.warnings, std::back_inserter(run.report.warnings));
  step.nodes = report.nodes_quantized;
  step.qdq = std::move(report);
  return {};
}

Status float16_pass(QuantizeRun& run, const QuantConfig& config, QuantizeStep& step) {
  Float16Options options;
  options.keep_io_types = config.fp16_keep_io_types;
  options.blocked_ops = config.fp16_op_block_list;
  options.blocked_nodes = config.nodes_to_exclude.value_or(std::vector<std::string>{});
  MK_TRY(Float16Report report, convert_to_float16(run.model, options));
  step.nodes = report.converted_nodes;
  step.float16 = std::move(report);
  return {};
}

Status dynamic_pass(QuantizeRun& run, const QuantConfig& config, QuantizeStep& step) {
  DynamicOptions options;
  MK_TRY(options.weight_type, integer_type(config.weight_type, "weight"));
  options.per_channel = config.per_channel;
  options.weight_symmetric = config.weight_symmetric.value_or(config.symmetric);
  options.reduce_range = config.reduce_range;
  options.op_types = config.op_types_to_quantize.value_or(std::vector<std::string>{});
  options.exclude = exclusions(config);
  MK_TRY(DynamicReport report, quantize_dynamic(run.model, options));
  std::ranges::copy(report.warnings, std::back_inserter(run.report.warnings));
  step.nodes = report.nodes_quantized;
  step.dynamic = std::move(report);
  return {};
}

Status weight_only_pass(QuantizeRun& run, const QuantConfig& config, QuantizeStep& step) {
  WeightOnlyOptions options;
  options.bits = static_cast<int>(config.rtn_bits);
  options.block_size = config.rtn_block_size;
  options.symmetric = config.rtn_symmetric;
  options.accuracy_level = static_cast<int>(config.rtn_accuracy_level);
  options.exclude = exclusions(config);
  MK_TRY(WeightOnlyReport report, quantize_weights_only(run.model, options));
  std::ranges::copy(report.warnings, std::back_inserter(run.report.warnings));
  step.nodes = report.nodes_quantized;
  step.weight_only = std::move(report);
  return {};
}

constexpr std::array modes{
    QuantizeMode{"static", &static_pass, true, true},
    QuantizeMode{"dynamic", &dynamic_pass, true, false},
    QuantizeMode{"rtn", &weight_only_pass, true, false},
    QuantizeMode{"fp16", &float16_pass, false, false},
};

}  // namespace

Result<const QuantizeMode*> mode_of(const QuantConfig& config) {
  for (const QuantizeMode& mode : modes)
    if (mode.name == config.mode) return &mode;
  std::string known;
  for (const QuantizeMode& mode : modes) known.append(known.empty() ? "" : ", ").append(mode.name);
  return fail(ErrorCode::usage, fmt::format("unknown mode of quantization '{}'", config.mode), {},
              "There are " + known);
}

}  // namespace mk
