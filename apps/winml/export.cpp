// winml export: a checkpoint as a checked ONNX model.

#include "export/export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/json.h"
#include "build/check_run.h"
#include "build/manifest.h"
#include "hub/resolve.h"
#include "winml/command.h"
#include "winml/export_options.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct ExportOptions {
  std::string model;
  Path output;
  bool overwrite = false;
  std::optional<std::string> task;
  std::optional<std::string> submodel;
  std::optional<std::int64_t> batch_size;
  std::optional<bool> hierarchy;
  bool clean_onnx = false;
  bool with_report = false;
  std::optional<std::string> dtype;
  bool keep_quantized = false;
  ExportFiles files;
  std::optional<Path> config;
  bool verify = true;
  std::optional<Path> ort;
};

void describe(ExportOptions& o, OptionTable& options) {
  model_option(options, o.model, "A folder with config.json and weights, or a model id in the local Hub cache");
  output_option(options, o.output, "The ONNX file to write");
  overwrite_option(options, o.overwrite);
  task_option(options, o.task);
  options.value("--submodel", "NAME", o.submodel, "Of a model of several graphs only this one (encoder, decoder ...)");
  options.value("--batch-size", "N", o.batch_size, "Leading dimension of every input").preset("1").at_least(1);
  options.value("--dtype", "TYPE", o.dtype, "Type of the weights and activations")
      .choices({"fp32", "fp16"})
      .preset("fp32");
  options.flag("--keep-quantized", o.keep_quantized,
               "Of a quantized GGUF file, keep 4 and 8 bits as MatMulNBits instead of undoing them");
  export_file_options(options, o.files);
  config_option(options, o.config, "A build config: its export section and loader.task are the lowest layer");
  options.toggle("--hierarchy", o.hierarchy, "Embed the module tree in the nodes' metadata").preset("on");
  options.flag("--clean-onnx", o.clean_onnx, "The old name of --no-hierarchy").hidden();
  options.toggle("--with-report", o.with_report, "Also write STEM_htp_metadata.json and STEM_htp_export_report.md");
  options.toggle("--verify", o.verify, "Run the result once: declared types and shapes, finite values").preset("on");
  ort_option(options, o.ort);
}

Result<ExportRequest> request_of(const ExportOptions& o, Context& context) {
  ExportRequest request;
  MK_TRY(const ResolvedModel model, resolve_model(o.model, WantedModel::checkpoint, context.hub));
  request.folder = model.folder;
  request.model_id = model.name();
  MK_TRY(ExportLayers layers, read_export_layers(o.config, o.files, context.progress));
  request.config = std::move(layers.config);
  request.shapes = std::move(layers.shapes);
  request.task = o.task ? o.task : layers.task;
  request.submodel = o.submodel.value_or("");
  if (o.batch_size) request.config.batch_size = *o.batch_size;
  if (o.clean_onnx) {
    context.progress.warn("--clean-onnx is the old name of --no-hierarchy");
    if (!o.hierarchy) request.config.enable_hierarchy_tags = false;
  }
  if (o.hierarchy) request.config.enable_hierarchy_tags = *o.hierarchy;
  if (o.dtype == "fp16") request.float_type = DataType::float16;
  request.keep_quantized = o.keep_quantized;
  return request;
}

Result<ExportReport> run(const ExportOptions& o, Context& context) {
  MK_TRY(const ExportRequest request, request_of(o, context));
  std::string problem;
  const auto manifest = find_manifest(o.output.parent_path(), "", problem);
  ExportDestination destination{.output = o.output,
                                .overwrite = o.overwrite,
                                .with_report = o.with_report,
                                .ours = manifest ? artifacts_of(*manifest, "side") : std::vector<std::string>{}};
  if (o.verify) {
    destination.check = [&](const Path& model, const ExportPlan& plan) {
      return check_run(model, o.ort, plan.symbol_sizes, context.progress);
    };
  }
  return export_model(request, destination, context.progress);
}

using Rows = std::vector<std::vector<std::string>>;

void add_graph(Rows& rows, const GraphReport& graph) {
  const char* label = "Inputs";
  for (const InputSpec& input : graph.plan.inputs) {
    rows.push_back(
        {std::exchange(label, ""), fmt::format("{}  {}{}", input.name, name_of(input.type), to_string(input.shape))});
  }
  rows.push_back({"Outputs", fmt::format("{}", fmt::join(graph.plan.outputs, ", "))});
  rows.push_back(
      {"Graph", fmt::format("opset {}, {} nodes, {} parameters", graph.opset, graph.nodes, graph.parameters)});
  if (!graph.tied.empty()) rows.push_back({"Tied", fmt::format("{} stored once", fmt::join(graph.tied, ", "))});
}

std::string written(const GraphReport& graph) {
  return fmt::format("{} ({})", to_utf8(graph.files.front()), bytes_text(graph.bytes));
}

std::string text(const ExportReport& r, const Context& context) {
  const GraphReport& first = r.graphs.front();
  Rows rows;
  if (r.choices.is_composite()) {
    rows.push_back({"Model", fmt::format("{} ({}), for {}", r.model_id, first.plan.head.model_type,
                                         fmt::join(r.choices.pipeline_tasks, ", "))});
  } else {
    rows.push_back({"Model", fmt::format("{} ({}, {})", r.model_id, first.plan.head.class_name, first.plan.head.task)});
  }
  for (const GraphReport& graph : r.graphs) {
    if (r.choices.is_composite())
      rows.push_back({"Component", fmt::format("{} ({}, {})", graph.plan.component, graph.plan.head.class_name,
                                               graph.plan.head.task)});
    add_graph(rows, graph);
    if (graph.check) rows.push_back({"Verify", *graph.check});
    if (r.graphs.size() > 1) rows.push_back({"Written", written(graph)});
  }
  if (!r.unused.empty()) {
    rows.push_back({"Unused", fmt::format("{} tensors of the checkpoint{}", r.unused.size(),
                                          context.verbosity > 0 ? ": " + fmt::format("{}", fmt::join(r.unused, ", "))
                                                                : " (-v lists them)")});
  }
  const std::string what =
      r.graphs.size() == 1 ? written(first) : fmt::format("{} models ({})", r.graphs.size(), bytes_text(r.bytes));
  rows.push_back({"Written", fmt::format("{} in {:.2f} s", what, r.seconds)});
  return columns(rows);
}

}  // namespace

Command export_command() {
  return define<ExportOptions, ExportReport>({
      .name = "export",
      .group = "Build",
      .summary = "Write a checkpoint as ONNX, with its module tree in the metadata",
      .details = "The graph is built from the model's configuration and its weights are streamed from the checkpoint: "
                 "no Python, no "
                 "tracing. It is written only if it passes the verifier and ONNX's full checker. Beside it go "
                 "config.json and the "
                 "files of the preprocessor and the tokenizer. An encoder with a decoder, and the two towers of a "
                 "zero-shot classifier, are files of their own: -o out/m.onnx gives out/m_encoder.onnx and "
                 "out/m_decoder.onnx, all of them or none. --task text2text-generation is the decoder alone.",
      .examples = {{"winml export -m samples/digits-vit -o out/model.onnx", "From a folder"},
                   {"winml export -m sentence-transformers/all-MiniLM-L6-v2 -o minilm.onnx",
                    "From the local Hub cache"}},
      .formats = {"text", "json"},
      .options = describe,
      .run = run,
      .text = text,
      .json = to_json,
      .shows = [](const ExportReport&) { return false; },
  });
}

}  // namespace mk::cli
