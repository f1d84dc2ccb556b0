#include "build/quantize_stage.h"

#include <fmt/format.h>

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

void warn_of_cut_values(const QuantizeReport& report, Progress& progress) {
  for (const QuantizeStep& step : report.steps) {
    const auto tensors = step.float16 ? step.float16->out_of_range() : std::vector<Float16OutOfRange>{};
    if (!tensors) continue;
    for (const Float16OutOfRange& tensor : *tensors) {
      if (const std::uint64_t count = tensor.clipped + tensor.infinite; count > 0) {
        progress.warn(fmt::format("float16 does not hold {} values of {}: they are +-65504 now", count, tensor.tensor));
      }
    }
  }
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

Result<StageOutcome> run_quantize(BuildState& state) {
  const BuildRequest& request = state.request;
  std::vector<QuantConfig> passes{*state.config.quant};
  if (request.then_float16) {
    passes.push_back(passes.front());
    passes.back().mode = "fp16";
  }
  std::unique_ptr<SampleSource> samples;
  if (const auto& path = passes.front().calibration_data) {
    MK_TRY(samples, open_samples(path_from_utf8(*path), passes.front(), request.model.folder, *state.graph));
  }
  std::shared_ptr<Runtime> runtime;
  const QuantizeSetup setup{.runtime = [&]() -> Result<std::shared_ptr<Runtime>> {
                              if (!runtime) {
                                MK_TRY(runtime, Runtime::load({.ort = request.ort, .progress = &state.progress}));
                              }
                              return runtime;
                            },
                            .samples = samples.get(),
                            .verify = request.verify};
  MK_TRY(const QuantizeReport report, quantize_model(*state.graph, passes, setup, state.progress));
  for (const std::string& warning : report.warnings) state.progress.warn(warning);
  return StageOutcome{summary_of(report), [report, &state] {
                        warn_of_cut_values(report, state.progress);
                        return to_json(report);
                      }};
}

}  // namespace mk
