// winml compare: two models value by value.

#include "base/json.h"
#include "calibration/calibration_data.h"
#include "eval/node_compare.h"
#include "graph/onnx_reader.h"
#include "hub/resolve.h"
#include "runtime/random_samples.h"
#include "winml/command.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct CompareCommandOptions {
  std::string model;
  Path reference;
  std::optional<std::string> data;
  std::optional<std::string> column;
  std::optional<std::string> split;
  std::optional<std::string> model_id;
  std::optional<Path> shape_config;
  std::int64_t samples = 3;
  std::int64_t seed = 42;
  KeyValues tolerances;
  std::int64_t top = 10;
  std::optional<Path> ort;
};

struct CompareCommandReport {
  NodeCompareReport nodes;
  std::size_t top = 0;
};

void describe(CompareCommandOptions& o, OptionTable& options) {
  model_option(options, o.model, "The ONNX file that is to be like the reference, or a folder that build made");
  options.value("--reference", "FILE", o.reference, "The ONNX file that it was made from")
      .accepts(Accepts::file)
      .required();
  options
      .value("--input-data, --calibration-data", "PATH", o.data,
             "Real inputs: .npz, .txt, Parquet, or a folder of archives or images; random ones if absent")
      .accepts(Accepts::file);
  options.value("--calibration-column", "NAME", o.column, "The column that has the images or texts")
      .preset("the first one that fits");
  options.value("--calibration-split", "NAME", o.split, "The split of a data set")
      .preset("train, else validation, else test");
  options.value("--model-id", "MODEL", o.model_id,
                "The folder or id that has the preprocessor or tokenizer, where -m has none beside it");
  options.value("--shape-config", "FILE", o.shape_config, "Shapes of random inputs, as JSON").accepts(Accepts::file);
  options.value("--samples", "N", o.samples, "How many samples at most").at_least(1);
  options.value("--seed", "N", o.seed, "Of random inputs").at_least(0);
  options.value("--tolerance", "METRIC=VALUE", o.tolerances, "The worst that is still alike")
      .preset("max_abs_diff=1e-3, cosine_similarity=0.999");
  options.value("--top", "N", o.top, "How many of the worst values to show").at_least(0);
  ort_option(options, o.ort);
}

Result<std::unique_ptr<SampleSource>> samples_of(const CompareCommandOptions& o, const ResolvedModel& model,
                                                 const Model& reference, Hub& hub) {
  if (!o.data) {
    ShapeOverrides shapes;
    if (o.shape_config) {
      MK_TRY(shapes, read_shape_overrides(*o.shape_config));
    }
    return random_samples(reference, static_cast<std::size_t>(o.samples), static_cast<std::uint64_t>(o.seed), shapes);
  }
  CalibrationData data;
  data.path = path_from_utf8(*o.data);
  data.column = o.column;
  data.split = o.split;
  data.assets = model.folder;
  if (o.model_id) {
    MK_TRY(const ResolvedModel named, resolve_model(*o.model_id, WantedModel::any, hub, Fetch::side_files));
    data.assets = named.folder;
  }
  data.most = static_cast<std::size_t>(o.samples);
  data.seed = static_cast<std::uint64_t>(o.seed);
  return open_calibration_data(data, input_ports(reference));
}

Result<CompareCommandReport> run(const CompareCommandOptions& o, Context& context) {
  MK_TRY(const auto tolerances, parse_tolerances(o.tolerances));
  MK_TRY(const ResolvedModel model, resolve_model(o.model, WantedModel::onnx, context.hub));
  MK_TRY(const auto candidate, read_onnx(model.onnx, {.progress = &context.progress}));
  MK_TRY(const auto reference, read_onnx(o.reference, {.progress = &context.progress}));
  MK_TRY(const auto source, samples_of(o, model, *reference, context.hub));
  MK_TRY(const auto runtime,
         Runtime::load({.ort = o.ort, .progress = &context.progress, .verbosity = context.verbosity}));
  CompareCommandReport report;
  report.top = static_cast<std::size_t>(o.top);
  MK_TRY(report.nodes, compare_nodes(runtime, *candidate, *reference, *source, static_cast<std::size_t>(o.samples),
                                     tolerances, context.progress));
  return report;
}

std::string text(const CompareCommandReport& report, const Context&) {
  return node_compare_text(report.nodes, report.top);
}
Json json(const CompareCommandReport& report) { return node_compare_json(report.nodes); }
bool answer(const CompareCommandReport& report) { return report.nodes.yes(); }

}  // namespace

Command compare_command() {
  return define<CompareCommandOptions, CompareCommandReport>({
      .name = "compare",
      .group = "Measure",
      .summary = "Hold two models against each other, value by value",
      .details =
          "Values are matched by name, by their node's name, or by the module they come from, and both models run on "
          "the "
          "same inputs. Shown is where the model begins to differ from its reference, and where it differs most. Exit "
          "1 where a value is beyond the tolerance.",
      .examples = {{"winml compare -m model_quantized.onnx --reference model.onnx", "What quantization did, and where"},
                   {"winml compare -m model_opt.onnx --reference model.onnx --tolerance max_abs_diff=1e-4",
                    "Exit 1 where a fusion changed the numbers"}},
      .formats = {"text", "json"},
      .options = describe,
      .run = run,
      .text = text,
      .json = json,
      .answer = answer,
  });
}

}  // namespace mk::cli
