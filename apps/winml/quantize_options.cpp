#include "winml/quantize_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/json.h"
#include "base/text.h"
#include "build/build_config.h"
#include "build/quantize_passes.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

const std::vector<std::string> integer_types{"uint8", "int8", "uint16", "int16"};

struct FromConfig {
  QuantConfig quant;
  bool has_mode = false;
  bool has_weight_type = false;
  bool has_activation_type = false;
};

Result<FromConfig> read_config(const std::optional<Path>& file, Progress& progress) {
  FromConfig found;
  if (!file) return found;
  MK_TRY(const BuildConfig config, read_build_config(*file, progress));
  if (!config.quant) return found;
  found.quant = *config.quant;
  MK_TRY(const Json json, read_config_json(*file));
  const Json& section = json.at("quant");
  found.has_mode = section.contains("mode");
  found.has_weight_type = section.contains("weight_type");
  found.has_activation_type = section.contains("activation_type");
  return found;
}

template <typename T, typename U>
void take(T& target, const std::optional<U>& typed) {
  if (typed) target = *typed;
}

void take(std::optional<std::vector<std::string>>& target, const std::vector<std::string>& typed) {
  if (!typed.empty()) target = typed;
}

QuantConfig merged(QuantConfig config, const QuantizeCommandOptions& o) {
  take(config.samples, o.samples);
  take(config.calibration_data, o.calibration_data);
  take(config.calibration_column, o.calibration_column);
  take(config.calibration_split, o.calibration_split);
  take(config.calibration_method, o.method);
  take(config.per_channel, o.per_channel);
  take(config.symmetric, o.symmetric);
  take(config.weight_symmetric, o.weight_symmetric);
  take(config.activation_symmetric, o.activation_symmetric);
  take(config.reduce_range, o.reduce_range);
  take(config.rtn_block_size, o.block_size);
  take(config.fp16_keep_io_types, o.keep_io);
  take(config.nodes_to_exclude, o.exclude);
  take(config.op_types_to_exclude, o.exclude_op);
  take(config.op_types_to_quantize, o.op_types);
  take(config.fp16_op_block_list, o.float32_ops);
  take(config.seed, o.seed);
  take(config.task, o.task);
  take(config.model_id, o.model_id);
  if (o.symmetric && !o.weight_symmetric) config.weight_symmetric.reset();
  if (o.symmetric && !o.activation_symmetric) config.activation_symmetric.reset();
  return config;
}

// Options that none of the passes reads.
void warn_of_unused(const QuantizeCommandOptions& o, const std::vector<QuantConfig>& passes, Progress& progress) {
  struct Row {
    const char* name;
    bool typed;
    std::initializer_list<std::string_view> modes;
  };
  const Row rows[] = {{"--samples", o.samples.has_value(), {"static"}},
                      {"--method", o.method.has_value(), {"static"}},
                      {"--weight-type", o.weight_type.has_value(), {"static", "dynamic"}},
                      {"--activation-type", o.activation_type.has_value(), {"static"}},
                      {"--per-channel", o.per_channel.has_value(), {"static", "dynamic"}},
                      {"--reduce-range", o.reduce_range.has_value(), {"dynamic"}},
                      {"--block-size", o.block_size.has_value(), {"rtn"}},
                      {"--keep-io", o.keep_io.has_value(), {"fp16"}},
                      {"--float32-op", !o.float32_ops.empty(), {"fp16"}},
                      {"--op-type", !o.op_types.empty(), {"static", "dynamic"}},
                      {"--exclude-op", !o.exclude_op.empty(), {"static", "dynamic", "rtn"}},
                      {"--task", o.task.has_value(), {"static"}},
                      {"--seed", o.seed.has_value(), {"static"}}};
  std::string unused;
  for (const Row& row : rows) {
    const bool used = std::ranges::any_of(
        passes, [&](const QuantConfig& pass) { return std::ranges::find(row.modes, pass.mode) != row.modes.end(); });
    if (row.typed && !used) unused += (unused.empty() ? "" : ", ") + std::string(row.name);
  }
  if (!unused.empty()) progress.warn(unused + " ignored: this precision does not use it");
}

std::string suffix_of(const std::vector<std::string>& precisions, const std::vector<QuantConfig>& passes) {
  if (precisions.size() > 1) {
    std::string suffix;
    for (const std::string& precision : precisions) suffix += "_" + lower_case(precision);
    return suffix;
  }
  const std::string& mode = passes.front().mode;
  return mode == "rtn"       ? fmt::format("_int{}", passes.front().rtn_bits)
         : mode == "fp16"    ? "_fp16"
         : mode == "dynamic" ? "_dynamic"
                             : "_quantized";
}

std::string precision_text(const std::vector<std::string>& precisions, const QuantConfig& first) {
  std::string text;
  for (const std::string& precision : precisions) text += (text.empty() ? "" : " + ") + lower_case(precision);
  if (!text.empty() && text != "auto") return text;
  return first.mode == "static" ? fmt::format("{} weights, {} activations", first.weight_type, first.activation_type)
                                : first.mode;
}

}  // namespace

void describe_quantize(QuantizeCommandOptions& o, OptionTable& options) {
  model_option(options, o.model, "An ONNX file, or a folder that build made").required();
  output_option(options, o.output, "The file to write").preset("STEM_quantized.onnx beside the model, or _int4, _fp16");
  overwrite_option(options, o.overwrite);
  options
      .value("-p, --precision", "PRECISION", o.precisions,
             "auto, int8, int16, int4, fp16, dynamic or w{4|8|16}a{8|16|32}; several are passes in that order")
      .preset("auto: 8-bit weights and activations");
  options
      .value("--calibration-data", "PATH", o.calibration_data,
             "Real inputs: .npz, .txt, Parquet, or a folder of archives or images")
      .accepts(Accepts::file);
  options.value("--calibration-column", "NAME", o.calibration_column, "The column that has the images or texts")
      .preset("the first one that fits");
  options.value("--calibration-split", "NAME", o.calibration_split, "The split of a data set")
      .preset("train, else validation, else test");
  options.value("--judge-data", "PATH", o.judge_data, "Judge on these instead of the samples beyond --samples")
      .accepts(Accepts::file);
  options.value("--samples", "N", o.samples, "Samples to calibrate with; those beyond them judge the result")
      .between(1, most_samples)
      .preset("10");
  options.value("--method", "METHOD", o.method, "How ranges come from samples")
      .choices({"minmax", "entropy", "percentile"})
      .preset("minmax");
  options.value("--weight-type", "TYPE", o.weight_type, "Beats --precision").choices(integer_types);
  options.value("--activation-type", "TYPE", o.activation_type, "Beats --precision").choices(integer_types);
  options.toggle("--per-channel", o.per_channel, "A scale for each output channel of a weight").preset("off");
  options.toggle("--symmetric", o.symmetric, "Zero point 0, of weights and activations").preset("off");
  options.toggle("--weight-symmetric", o.weight_symmetric, "The same of weights alone");
  options.toggle("--activation-symmetric", o.activation_symmetric, "The same of activations alone");
  options.toggle("--reduce-range", o.reduce_range, "dynamic: 7-bit weights, for processors without VNNI").preset("off");
  options.value("--block-size", "N", o.block_size, "int4: weights that share a scale").at_least(16).preset("128");
  options.toggle("--keep-io", o.keep_io, "fp16: inputs and outputs stay float32").preset("on");
  options.value("--exclude", "NODE", o.exclude, "Leave this node as it is: a name, or a pattern with * and ?");
  options.value("--exclude-op", "TYPE", o.exclude_op, "Leave operators of this type as they are");
  options.value("--op-type", "TYPE", o.op_types, "Quantize only operators of this type");
  options.value("--float32-op", "TYPE", o.float32_ops, "fp16: operators that stay float32, instead of the usual ones");
  options.value("--seed", "N", o.seed, "Of random samples").at_least(0).preset("42");
  options.value("--shape-config", "FILE", o.shape_config, "Shapes of random samples, as JSON").accepts(Accepts::file);
  task_option(options, o.task);
  options.value("--model-id", "MODEL", o.model_id,
                "The folder or id that has the preprocessor or tokenizer, where -m has none beside it");
  config_option(options, o.config, "A build config, whose quant section counts where an option is not typed");
  options.flag("--report", o.report, "Compare every inner tensor with the original's, too");
  options.toggle("--verify", o.verify, "Run the result and compare it with the original").preset("on");
  options.value("--threads", "N", o.threads, "Threads of ONNX Runtime; 0 leaves it to it").at_least(0);
  ort_option(options, o.ort);
}

Result<QuantizePlan> quantize_plan(const QuantizeCommandOptions& o, Progress& progress) {
  MK_TRY(const FromConfig from, read_config(o.config, progress));
  const QuantConfig base = merged(from.quant, o);
  QuantizePlan plan;
  if (o.precisions.empty() && from.has_mode) {
    plan.passes = {base};
  } else if (o.precisions.empty()) {
    MK_TRY(plan.passes, quantize_passes("auto", base));
  }
  for (const std::string& precision : o.precisions) {
    MK_TRY(auto passes, quantize_passes(precision, base));
    std::ranges::move(passes, std::back_inserter(plan.passes));
  }
  for (QuantConfig& pass : plan.passes) {
    if (from.has_weight_type) pass.weight_type = from.quant.weight_type;
    if (from.has_activation_type) pass.activation_type = from.quant.activation_type;
    take(pass.weight_type, o.weight_type);
    take(pass.activation_type, o.activation_type);
  }
  warn_of_unused(o, plan.passes, progress);
  plan.precision = precision_text(o.precisions, plan.passes.front());
  plan.suffix = suffix_of(o.precisions, plan.passes);
  return plan;
}

}  // namespace mk::cli
