// winml build: a model becomes a folder of artefacts.

#include "build/build.h"

#include <fmt/format.h>

#include "base/json.h"
#include "build/cache_key.h"
#include "build/composite.h"
#include "build/generate.h"
#include "build/quantize_passes.h"
#include "build/strict.h"
#include "export/model_config.h"
#include "graph/onnx_reader.h"
#include "graph/summary.h"
#include "hub/tasks.h"
#include "winml/command.h"
#include "winml/export_options.h"
#include "winml/model_source.h"
#include "winml/shared_options.h"
#include "winml/target_options.h"

namespace mk::cli {
namespace {

struct BuildOptions {
  std::optional<std::string> model;
  std::optional<Path> config;
  bool strict = false;
  std::optional<Path> output;
  bool use_cache = false;
  bool rebuild = false;
  std::optional<std::string> task;
  std::optional<std::string> submodel;
  std::optional<std::string> dtype;
  ExportFiles files;
  TargetOptions target;
  bool quant = true;
  std::optional<bool> compile;
  bool optimize = true;
  bool analyze = true;
  bool verify = true;
  bool keep_intermediates = false;
  std::optional<std::string> calibration_data;
  std::optional<std::string> calibration_column;
  std::optional<std::string> calibration_split;
};

void describe(BuildOptions& o, OptionTable& options) {
  model_option(options, o.model, "A folder with config.json, a model id in the local Hub cache, or an ONNX file");
  config_option(options, o.config, "A build config; made from the model if absent");
  strict_option(options, o.strict);
  options.value("-o, --output-dir", "DIR", o.output, "The folder for the artefacts").accepts(Accepts::folder);
  options.toggle("--use-cache", o.use_cache, "Put them into the cache instead (WINML_CACHE_DIR, else ~/.cache/winml)");
  options.toggle("--rebuild", o.rebuild, "Build even where nothing has changed, and over a model that no build made");
  task_option(options, o.task);
  options.value("--submodel", "NAME", o.submodel, "Of a model of several graphs only this one (encoder, decoder ...)");
  options.value("--dtype", "TYPE", o.dtype, "Type of an exported model's weights and activations")
      .choices({"fp32", "fp16"})
      .preset("fp32");
  export_file_options(options, o.files);
  target_options(options, o.target);
  options.toggle("--quant, --quantize", o.quant, "Keep the quant section that precision and device ask for");
  options
      .value("--calibration-data", "PATH", o.calibration_data,
             "Real inputs to calibrate with: .npz, .txt, Parquet, or a folder of archives or images")
      .accepts(Accepts::file);
  options.value("--calibration-column", "NAME", o.calibration_column, "The column that has the images or texts");
  options.value("--calibration-split", "NAME", o.calibration_split, "The split of a data set");
  options.toggle("--compile", o.compile, "Keep the compile section of the execution provider").preset("off");
  options.toggle("--optimize", o.optimize, "Fuse and simplify the graph for the target");
  // Scripts switch this stage off; a build of this version has none.
  options.toggle("--analyze", o.analyze, "Analysis").hidden();
  options
      .toggle("--verify", o.verify,
              "Compare the optimized model's numbers, and run the result: declared types and shapes, finite values")
      .preset("on");
  options.flag("--keep-intermediates", o.keep_intermediates, "Also write the model after each stage that changed it");
}

Status check_options(const BuildOptions& o) {
  if (!o.model) return fail(ErrorCode::usage, "no model to build", {}, "Give -m MODEL");
  if (o.output && o.use_cache) return fail(ErrorCode::usage, "-o and --use-cache are mutually exclusive");
  if (!o.output && !o.use_cache) return fail(ErrorCode::usage, "one of -o DIR and --use-cache is required");
  std::error_code ignored;
  if (o.output && std::filesystem::exists(*o.output, ignored) && !std::filesystem::is_directory(*o.output, ignored)) {
    return fail(ErrorCode::usage, "the output folder is a file", to_utf8(*o.output), "Choose another folder with -o");
  }
  if (o.config && o.files.shape_config) {
    return fail(ErrorCode::usage, "--shape-config is for a config that is made from the model", to_utf8(*o.config),
                "Put the shapes into the config's export.input_tensors");
  }
  return {};
}

GenerateRequest generate_request(const BuildOptions& o, const TargetPolicy& policy, Context& context) {
  GenerateRequest request;
  request.model_id = *o.model;
  request.task = o.task;
  request.policy = policy;
  request.target_typed = o.target.typed();
  request.quant = o.quant;
  request.compile = o.compile.value_or(false);
  request.resolve = target_resolver(o.target, context);
  return request;
}

Result<BuildConfig> config_from_file(const BuildOptions& o, const ResolvedModel& model, const TargetPolicy& policy,
                                     Context& context) {
  MK_TRY(const Json document, read_config_json(*o.config));
  const JsonView view(document, to_utf8(*o.config), ErrorCode::usage);
  if (o.strict) MK_CHECK(strict_build_config(view));
  MK_TRY(BuildConfig config, parse_build_config(view, context.progress));
  // A part of a config is enough where nothing is exported.
  if (model.is_onnx() && !document.contains("export")) config.exporting.reset();
  if (model.is_onnx() && !document.contains("optim")) config.optim.emplace();
  if (o.task) config.loader.task = o.task;
  if (o.files.any()) {
    if (!config.exporting)
      return fail(ErrorCode::usage, "the config has no export section to change", to_utf8(*o.config) + "#/export");
    std::map<std::string, std::int64_t> unused;
    MK_CHECK(apply_export_files(*config.exporting, unused, o.files, context.progress));
  }
  if (o.target.device || o.target.precision) {
    const QuantIdentity identity{config.loader.task, o.model, config.loader.model_type};
    MK_CHECK(apply_target_policy(config, policy, identity, target_resolver(o.target, context), context.progress));
  }
  if (!o.quant) config.quant.reset();
  if (o.compile == false) config.compile.reset();
  if (o.compile == true && !config.compile) {
    return fail(ErrorCode::usage, "--compile needs a compile section in the config", to_utf8(*o.config) + "#/compile");
  }
  return config;
}

Result<BuildConfig> config_of_model(const BuildOptions& o, BuildRequest& build, const TargetPolicy& policy,
                                    Context& context) {
  GenerateRequest request = generate_request(o, policy, context);
  if (build.model.is_onnx()) {
    if (o.files.any()) {
      return fail(ErrorCode::usage, "the options that change an export do not apply to an ONNX file",
                  to_utf8(build.model.onnx),
                  "Leave --shape-config, --input-specs, --export-config and --dynamic-axes out");
    }
    MK_TRY(const auto model, read_onnx(build.model.onnx, {.progress = &context.progress}));
    return generate_onnx_config(summarize(*model), request, context.progress);
  }
  MK_CHECK(apply_export_files(request.exporting, request.shapes, o.files, context.progress));
  build.shapes = request.shapes;
  MK_TRY(const ModelConfig config, read_model_config(build.model.folder, *o.model));
  return generate_config(config, build.model.folder, request, context.progress);
}

void take_calibration(const BuildOptions& o, BuildConfig& config, Progress& progress) {
  if (!o.calibration_data && !o.calibration_column && !o.calibration_split) return;
  if (!config.quant || config.quant->mode == "fp16") {
    progress.warn("--calibration-data has no effect: this build does not calibrate");
    return;
  }
  if (o.calibration_data) config.quant->calibration_data = o.calibration_data;
  if (o.calibration_column) config.quant->calibration_column = o.calibration_column;
  if (o.calibration_split) config.quant->calibration_split = o.calibration_split;
}

std::string target_text(const TargetOptions& target) {
  return target.ep.value_or("auto") + "/" + target.device.value_or("auto");
}

// What the options say of every build, once its config is known.
Status apply_options(const BuildOptions& o, BuildRequest& request, Progress& progress) {
  if (o.dtype == "fp16") request.float_type = DataType::float16;
  request.target = target_text(o.target);
  request.rebuild = o.rebuild;
  MK_TRY(request.wanted, parse_target(o.target.ep.value_or(""), o.target.device.value_or("")));
  if (!o.optimize) request.config.skip_optimize = true;
  take_calibration(o, request.config, progress);
  if (o.target.precision && request.config.quant) {
    const auto passes = quantize_passes(*o.target.precision, *request.config.quant);
    request.then_float16 = passes && passes->size() > 1;
  }
  request.verify = o.verify;
  request.keep_intermediates = o.keep_intermediates;
  request.ort = o.target.ort;
  return {};
}

// What is built: one graph, or those of a composite.
struct Built {
  std::optional<BuildReport> one;
  std::optional<CompositeReport> several;
};

Result<BuildReport> build_one(const BuildOptions& o, BuildRequest request, const TargetPolicy& policy,
                              Context& context) {
  if (o.config) {
    MK_TRY(request.config, config_from_file(o, request.model, policy, context));
  } else {
    MK_TRY(request.config, config_of_model(o, request, policy, context));
  }
  MK_CHECK(apply_options(o, request, context.progress));
  if (o.output) {
    request.folder = *o.output;
  } else {
    if (!request.config.loader.task) return fail(ErrorCode::usage, "--use-cache needs loader.task in the config");
    MK_CHECK(check_task(*request.config.loader.task));
    request.cache_key = cache_key(*request.config.loader.task, request.config, {.dtype = o.dtype});
    request.folder = artifact_folder(request.model.ref);
    request.prefix = *request.cache_key + "_";
  }
  return build_model(request, context.progress);
}

// What a config that is for the whole model says of each of its graphs: how it is quantized and compiled.
void overlay(BuildConfig& config, const BuildConfig& outer, const std::string& model_id) {
  config.quant = outer.quant;
  if (config.quant) {
    config.quant->task = config.loader.task;
    config.quant->model_id = model_id;
    config.quant->model_type = config.loader.model_type;
  }
  config.compile = outer.compile;
  config.skip_optimize = outer.skip_optimize;
}

Result<CompositeReport> build_several(const BuildOptions& o, const ResolvedModel& model, const ModelConfig& config,
                                      const ExportPlans& plans, const GenerateRequest& asked,
                                      const std::optional<BuildConfig>& outer, Context& context) {
  if (o.use_cache)
    return fail(ErrorCode::usage, "--use-cache is for one graph, and the model is built as several", "--use-cache",
                "Give a folder with -o");
  CompositeRequest composite{.components = {}, .pipeline_tasks = plans.choices.pipeline_tasks, .whole = !o.submodel};
  for (const ExportPlan& plan : plans.graphs) {
    GenerateRequest request = asked;
    request.submodel = plan.component;
    request.exporting = share_of(asked.exporting, plan);
    BuildRequest& build = composite.components.emplace_back();
    build.model = model;
    build.submodel = plan.component;
    build.pipeline = asked.task;
    build.shapes = asked.shapes;
    MK_TRY(build.config, generate_config(config, model.folder, request, context.progress));
    if (outer) overlay(build.config, *outer, *o.model);
    if (const Status valid = validate(build.config); !valid) {
      Error error = valid.error();
      error.message = fmt::format("Config validation failed for sub-model '{}': {}", plan.component, error.message);
      return tl::make_unexpected(std::move(error));
    }
    MK_CHECK(apply_options(o, build, context.progress));
    build.folder = *o.output;
    build.prefix = plan.component + "_";
  }
  return build_composite(composite, context.progress);
}

Result<Built> run(const BuildOptions& o, Context& context) {
  MK_CHECK(check_options(o));
  MK_TRY(const TargetPolicy policy, target_policy_of(o.target));
  BuildRequest request;
  MK_TRY(request.model, resolve_model(*o.model, WantedModel::any, context.hub));
  Built built;
  if (request.model.is_onnx()) {
    if (o.submodel) return fail(ErrorCode::usage, "an ONNX file is one graph", "--submodel", "Leave --submodel out");
    MK_TRY(built.one, build_one(o, std::move(request), policy, context));
    return built;
  }

  // A config that names one graph's task builds that graph.
  std::optional<BuildConfig> outer;
  GenerateRequest asked = generate_request(o, policy, context);
  if (o.config) {
    BuildOptions without_files = o;
    without_files.files = {};
    MK_TRY(outer, config_from_file(without_files, request.model, policy, context));
    asked.task = outer->loader.task;
    if (outer->exporting) asked.exporting = *outer->exporting;
  }
  MK_TRY(const ModelConfig config, read_model_config(request.model.folder, *o.model));
  const GraphsRequest graphs{asked.task.value_or(""), "", *o.model, o.submodel.value_or("")};
  const auto choices = choose_graphs(config, graphs);
  if (!choices && o.submodel) return tl::make_unexpected(choices.error());
  if (!choices || !choices->is_composite()) {
    MK_TRY(built.one, build_one(o, std::move(request), policy, context));
    return built;
  }
  MK_CHECK(apply_export_files(asked.exporting, asked.shapes, o.files, context.progress));
  const ExportRequest exporting{.folder = request.model.folder,
                                .model_id = *o.model,
                                .task = asked.task,
                                .submodel = o.submodel.value_or(""),
                                .config = asked.exporting,
                                .shapes = asked.shapes};
  MK_TRY(const ExportPlans plans, plan_exports(config, exporting, context.progress));
  MK_TRY(built.several, build_several(o, request.model, config, plans, asked, outer, context));
  return built;
}

std::string text(const BuildReport& r, const Context&) {
  std::vector<std::vector<std::string>> rows;
  if (r.reused) {
    return fmt::format("Existing artifact found: {}\n  {}; --rebuild builds all the same\n", to_utf8(r.final_artifact),
                       r.reason);
  }
  for (const StageRecord& stage : r.manifest.stages) {
    rows.push_back({stage.name, stage.completed ? fmt::format("{:.2f} s", stage.elapsed_seconds.value_or(0))
                                                : "skipped: " + stage.reason.value_or("")});
  }
  return fmt::format("Build complete in {:.2f}s\n{}Final artifact: {} ({})\nBuild config: {}\n", r.elapsed_seconds,
                     columns(rows), to_utf8(r.final_artifact), bytes_text(r.bytes), to_utf8(r.config_path));
}

std::string text(const Built& built, const Context& context) {
  if (built.one) return text(*built.one, context);
  std::string all;
  for (const auto& [name, report] : built.several->components) all += name + "\n" + text(report, context);
  if (!built.several->manifest_path.empty())
    all += fmt::format("Composite manifest: {}\n", to_utf8(built.several->manifest_path));
  return all;
}

Json json(const Built& built) { return built.one ? to_json(*built.one) : to_json(*built.several); }

}  // namespace

Command build_command() {
  return define<BuildOptions, Built>({
      .name = "build",
      .group = "Build",
      .summary = "Make a folder with a checked model, its config and its manifest",
      .details = "A folder that a build has made is built again only if the source, the config, the target or winml "
                 "itself has "
                 "changed, or an artefact has; the reason is printed. Whatever interrupts a build, the folder has the "
                 "old artefacts "
                 "or the new ones. The graphs of an encoder and a decoder, or of two towers, are built side by side: "
                 "encoder_model.onnx, decoder_model.onnx and composite_manifest.json.",
      .examples = {{"winml build -m samples/digits-vit -o out", "A checkpoint"},
                   {"winml build -m model.onnx -o out", "An ONNX file"},
                   {"winml build -c config.json -m DIR -o out", "With a config that `winml config` wrote"}},
      .formats = {"text", "json"},
      .options = describe,
      .run = run,
      .text = text,
      .json = json,
      .shows = [](const Built&) { return false; },
  });
}

}  // namespace mk::cli
