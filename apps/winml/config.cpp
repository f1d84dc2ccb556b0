// winml config: the build config of a model, as JSON.

#include <fmt/format.h>

#include "base/json.h"
#include "base/publish.h"
#include "build/generate.h"
#include "build/strict.h"
#include "graph/onnx_reader.h"
#include "graph/summary.h"
#include "hub/resolve.h"
#include "winml/command.h"
#include "winml/export_options.h"
#include "winml/model_source.h"
#include "winml/shared_options.h"
#include "winml/target_options.h"

namespace mk::cli {
namespace {

struct ConfigOptions {
  ModelSource source;
  std::optional<std::string> task;
  std::optional<Path> config;
  bool strict = false;
  ExportFiles files;
  TargetOptions target;
  bool quant = true;
  std::optional<bool> compile;
  std::optional<Path> output;
  bool overwrite = false;
  std::string library = "transformers";
};

struct ConfigReport {
  BuildConfig config;
  std::optional<Path> written;  // then nothing goes to stdout
};

void describe(ConfigOptions& o, OptionTable& options) {
  model_option(options, o.source.model,
               "A folder with config.json, a model id in the local Hub cache, or an ONNX file");
  task_option(options, o.task);
  options.value("--model-class", "CLASS", o.source.model_class,
                "The transformers class, where the model does not say it");
  options.value("--model-type", "TYPE", o.source.model_type, "The architecture, for a config without a model");
  config_option(options, o.config, "A build config that changes the generated one; it may name only what differs");
  strict_option(options, o.strict);
  export_file_options(options, o.files);
  target_options(options, o.target);
  options.toggle("--quant, --quantize", o.quant, "Write the quant section that precision and device ask for");
  options.toggle("--compile", o.compile, "Write the compile section of the execution provider").preset("off");
  output_option(options, o.output, "The file to write; stdout if absent");
  overwrite_option(options, o.overwrite);
  options.value("--library", "NAME", o.library, "Where the class comes from").choices({"transformers"}).hidden();
}

Result<BuildConfig> from_graph(const Path& onnx, const GenerateRequest& request, const ConfigOptions& o,
                               Context& context) {
  if (o.files.any())
    return fail(ErrorCode::usage, "the options that change an export do not apply to an ONNX file", to_utf8(onnx),
                "Leave --shape-config, --input-specs, --export-config and --dynamic-axes out");
  MK_TRY(const auto model, read_onnx(onnx, {.progress = &context.progress, .require_external_data = false}));
  return generate_onnx_config(summarize(*model), request, context.progress);
}

void note_summary(const BuildConfig& config, const ConfigOptions& o, Progress& progress) {
  const auto line = [&](std::string_view label, std::string_view value) {
    if (!value.empty()) progress.note(fmt::format("{:<12}{}", label, value));
  };
  line("Model", o.source.name());
  line("Class", config.loader.model_class.value_or(""));
  line("Task", config.loader.task.value_or("") + (config.loader.task && !o.task ? " (auto-detected)" : ""));
  if (o.config) line("Overrides", to_utf8(*o.config));
  line("Device", o.target.device.value_or("auto"));
  line("EP", o.target.ep.value_or(""));
  if (config.quant)
    line("Quant", config.quant->mode == "static" ? fmt::format("{} {}/{}", config.quant->mode,
                                                               config.quant->weight_type, config.quant->activation_type)
                                                 : config.quant->mode);
  if (config.compile) line("Compile", config.compile->execution_provider.value_or(""));
  if (config.compile)
    progress.note("`winml build` of this version has no compile stage yet: build from it with --no-compile");
}

Result<ConfigReport> run(const ConfigOptions& o, Context& context) {
  if (o.source.empty())
    return fail(ErrorCode::usage, "nothing to configure", {}, "Give -m MODEL, --model-type or --model-class");
  MK_CHECK(guard_overwrite(o.output, o.overwrite));
  MK_TRY(const TargetPolicy policy, target_policy_of(o.target));

  GenerateRequest request;
  request.model_id = o.source.name();
  request.task = o.task;
  request.model_class = o.source.model_class;
  request.policy = policy;
  request.target_typed = o.target.typed();
  request.quant = o.quant;
  request.compile = o.compile;
  request.resolve = target_resolver(o.target, context);
  Json overrides;
  if (o.config) {
    MK_TRY(overrides, read_config_json(*o.config));
    if (o.strict) MK_CHECK(strict_build_config(JsonView(overrides, to_utf8(*o.config), ErrorCode::usage)));
    request.overrides = &overrides;
    request.overrides_name = to_utf8(*o.config);
  }

  std::optional<ResolvedModel> resolved;
  if (o.source.model) {
    MK_TRY(resolved, resolve_model(*o.source.model, WantedModel::any, context.hub, Fetch::configs));
  }
  ConfigReport report;
  if (resolved && resolved->is_onnx()) {
    MK_TRY(report.config, from_graph(resolved->onnx, request, o, context));
  } else {
    MK_CHECK(apply_export_files(request.exporting, request.shapes, o.files, context.progress));
    MK_TRY(const ModelConfig config, config_of(o.source, resolved));
    const Path folder = resolved ? resolved->folder : Path();
    MK_TRY(report.config, generate_config(config, folder, request, context.progress));
  }
  MK_CHECK(validate(report.config));
  note_summary(report.config, o, context.progress);
  if (o.output) {
    Publication publication;
    MK_CHECK(publication.add_text(*o.output, dump_json(to_json(report.config)), o.overwrite));
    MK_CHECK(publication.commit());
    context.progress.note(fmt::format("Config written to {}", to_utf8(*o.output)));
    report.written = o.output;
  }
  return report;
}

std::string text(const ConfigReport& report, const Context&) {
  return report.written ? "" : dump_json(to_json(report.config)) + "\n";
}

}  // namespace

Command config_command() {
  return define<ConfigOptions, ConfigReport>({
      .name = "config",
      .group = "Build",
      .summary = "Write the build config of a model, to look at, change and build from",
      .examples = {{"winml config -m microsoft/resnet-50 -o resnet.json", "Then: winml build -c resnet.json ..."},
                   {"winml config -m DIR -d npu", "With the quant section that an NPU asks for"}},
      .options = describe,
      .run = run,
      .text = text,
  });
}

}  // namespace mk::cli
