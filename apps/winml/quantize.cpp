// winml quantize: a model in fewer bits, calibrated and judged.

#include <fmt/format.h>

#include <chrono>

#include "base/json.h"
#include "base/publish.h"
#include "build/quantize_stage.h"
#include "graph/model_acceptance.h"
#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "hub/resolve.h"
#include "runtime/random_samples.h"
#include "winml/command.h"
#include "winml/quantize_options.h"
#include "winml/quantize_report.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t size_of(const Path& model, const Model& read) {
  std::error_code ignored;
  std::uint64_t bytes = std::filesystem::file_size(model, ignored);
  for (const std::string& location : read.external_locations) {
    const auto size = std::filesystem::file_size(model.parent_path() / path_from_utf8(location), ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

void note_plan(const QuantizePlan& plan, const Path& model, const Path& output, Progress& progress) {
  const auto line = [&](std::string_view label, std::string_view value) {
    progress.note(fmt::format("{:<17}{}", label, value));
  };
  line("Input:", to_utf8(model));
  line("Output:", to_utf8(output));
  line("Precision:", plan.precision);
  for (const QuantConfig& pass : plan.passes) {
    if (pass.mode != "static") continue;
    line("Weight type:", pass.weight_type + (pass.per_channel ? " per channel" : ""));
    line("Activation type:", pass.activation_type);
    line("Samples:", std::to_string(pass.samples));
    line("Method:", pass.calibration_method);
  }
}

Result<std::unique_ptr<SampleSource>> open_data(const std::optional<std::string>& path, const QuantConfig& config,
                                                const Path& assets, const Model& model) {
  if (!path) return nullptr;
  return open_samples(path_from_utf8(*path), config, assets, model);
}

Result<QuantizeCommandReport> run(const QuantizeCommandOptions& o, Context& context) {
  const auto start = Clock::now();
  MK_TRY(const QuantizePlan plan, quantize_plan(o, context.progress));
  MK_TRY(const ResolvedModel source, resolve_model(*o.model, WantedModel::onnx, context.hub));
  const Path output =
      o.output.value_or(source.output_folder() / path_from_utf8(to_utf8(source.onnx.stem()) + plan.suffix + ".onnx"));
  MK_CHECK(guard_overwrite(output, o.overwrite));
  note_plan(plan, source.onnx, output, context.progress);

  MK_TRY(const std::unique_ptr<Model> model, read_onnx(source.onnx, {.progress = &context.progress}));
  std::vector<Path> data;
  for (const auto& path : {plan.passes.front().calibration_data, o.judge_data}) {
    if (path) data.push_back(path_from_utf8(*path));
  }
  if (o.calibration_column || o.calibration_split) warn_of_columns(plan.passes.front(), data, context.progress);
  std::vector<Path> others = data;
  if (o.config) others.push_back(*o.config);
  MK_CHECK(keep_inputs(output, source.onnx, model->external_locations, std::move(others)));
  MK_CHECK(accept_model(*model, context.progress));
  MK_CHECK(check_quantizable(*model, plan.passes));
  QuantizeCommandReport report;
  report.model = source.onnx;
  report.precision = plan.precision;
  report.bytes_before = size_of(source.onnx, *model);

  QuantizeSetup setup{.name = to_utf8(source.onnx)};
  std::shared_ptr<Runtime> runtime;
  setup.runtime = [&]() -> Result<std::shared_ptr<Runtime>> {
    if (!runtime) {
      MK_TRY(runtime, Runtime::load({.ort = o.ort, .progress = &context.progress, .verbosity = context.verbosity}));
    }
    return runtime;
  };
  Path assets = source.folder;
  if (plan.passes.front().model_id && (o.model_id || plan.passes.front().calibration_data || o.judge_data)) {
    MK_TRY(const ResolvedModel named,
           resolve_model(*plan.passes.front().model_id, WantedModel::any, context.hub, Fetch::side_files));
    assets = named.folder;
  }
  const QuantConfig& first = plan.passes.front();
  MK_TRY(const auto samples, open_data(first.calibration_data, first, assets, *model));
  MK_TRY(const auto judged, open_data(o.judge_data, first, assets, *model));
  setup.samples = samples.get();
  setup.judged = judged.get();
  if (o.shape_config) {
    MK_TRY(setup.shapes, read_shape_overrides(*o.shape_config));
  }
  setup.verify = o.verify;
  setup.tensors = o.report;
  setup.threads = static_cast<int>(o.threads);
  MK_TRY(report.quantized, quantize_model(*model, plan.passes, setup, context.progress));

  Publication publication;
  MK_TRY(WrittenModel written, write_onnx(*model, output, publication, o.overwrite));
  MK_CHECK(publication.commit());
  report.files = std::move(written.files);
  report.bytes_after = written.bytes;
  report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

std::string text(const QuantizeCommandReport& report, const Context& context) {
  return quantize_text(report, context.style);
}

}  // namespace

Command quantize_command() {
  return define<QuantizeCommandOptions, QuantizeCommandReport>({
      .name = "quantize",
      .group = "Build",
      .summary = "Make a model smaller: fewer bits for weights and activations",
      .details =
          "The result is run and compared with the original: cosine and SNR of each output, with --report of each "
          "inner tensor too. Nodes can be left out by name, pattern and type. An output that exists stays where the "
          "run fails.",
      .examples = {{"winml quantize -m model.onnx -p w8a16", "16-bit activations, writes model_quantized.onnx"},
                   {"winml quantize -m model.onnx -p int4 -p fp16", "4-bit weights, the rest in float16"},
                   {"winml quantize -m model.onnx --exclude '*/classifier/*'", "Leave some nodes in float"}},
      .formats = {"text", "json"},
      .options = describe_quantize,
      .run = run,
      .text = text,
      .json = quantize_json,
      .shows = [](const QuantizeCommandReport&) { return false; },
  });
}

}  // namespace mk::cli
