#include "build/quantize_stage.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "calibration/calibration_data.h"
#include "quantize/quantize.h"
#include "runtime/random_samples.h"

namespace mk {
namespace {

// Samples beyond those that calibrate, to judge on.
constexpr std::size_t judged_samples = 100;

std::string summary_of(const QuantizeReport& report) {
  std::string text;
  for (const QuantizeStep& step : report.steps) {
    text += fmt::format("{}{}, {} nodes", text.empty() ? "" : "; ", step.mode, step.nodes);
  }
  if (report.accuracy && !report.accuracy->outputs.empty()) {
    const TensorAccuracy& output = report.accuracy->outputs.front();
    text += fmt::format("; cosine of {} {:.4f}", output.name, output.cosine);
  }
  return text;
}

}  // namespace

Result<std::unique_ptr<SampleSource>> open_samples(const Path& path, const QuantConfig& config, const Path& assets,
                                                   const Model& model) {
  CalibrationData data{.path = path,
                       .column = config.calibration_column,
                       .split = config.calibration_split,
                       .assets = assets,
                       .most = static_cast<std::size_t>(config.samples) + judged_samples};
  if (config.seed) data.seed = static_cast<std::uint64_t>(*config.seed);
  return open_calibration_data(data, input_ports(model));
}

void warn_of_columns(const QuantConfig& config, std::span<const Path> data, Progress& progress) {
  if ((!config.calibration_column && !config.calibration_split) || std::ranges::any_of(data, has_columns)) return;
  const std::string what = config.calibration_column ? "the column '" + *config.calibration_column + "'"
                                                     : "the split '" + *config.calibration_split + "'";
  progress.warn(data.empty()
                    ? fmt::format("{} of the calibration data is ignored: no data is given", what)
                    : fmt::format("{} of the calibration data is ignored: {} has none", what, to_utf8(data.front())));
}

Result<StageOutcome> run_quantize(BuildState& state) {
  const BuildRequest& request = state.request;
  std::vector<QuantConfig> passes{*state.config.quant};
  if (request.then_float16) {
    passes.push_back(passes.front());
    passes.back().mode = "fp16";
  }
  std::unique_ptr<SampleSource> samples;
  std::vector<Path> data;
  if (const auto& path = passes.front().calibration_data) data.push_back(path_from_utf8(*path));
  if (passes.front().mode == "static") warn_of_columns(passes.front(), data, state.progress);
  if (const auto& path = passes.front().calibration_data) {
    MK_TRY(samples, open_samples(path_from_utf8(*path), passes.front(), request.model.folder, *state.graph));
  }
  std::shared_ptr<Runtime> runtime;
  const QuantizeSetup setup{.name = request.model.name(),
                            .runtime = [&]() -> Result<std::shared_ptr<Runtime>> {
                              if (!runtime) {
                                MK_TRY(runtime, Runtime::load({.ort = request.ort, .progress = &state.progress}));
                              }
                              return runtime;
                            },
                            .samples = samples.get(),
                            .verify = request.verify};
  MK_TRY(const QuantizeReport report, quantize_model(*state.graph, passes, setup, state.progress));
  return StageOutcome{summary_of(report), [report, &state] {
                        for (const std::string& warning : all_warnings(report)) state.progress.warn(warning);
                        return to_json(report);
                      }};
}

}  // namespace mk
