// winml perf: latency, throughput and memory of one model on one target.

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "base/publish.h"
#include "base/system.h"
#include "export/export.h"
#include "hub/resolve.h"
#include "hub/tasks.h"
#include "perf/measure.h"
#include "runtime/ep_devices.h"
#include "winml/command.h"
#include "winml/runnable_model.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct PerfOptions {
  std::string model;
  std::optional<std::string> task;
  std::int64_t iterations = 100;
  std::int64_t warmup = 10;
  std::optional<double> duration;
  std::optional<std::int64_t> batch_size;
  ExportFiles files;
  std::optional<Path> input_data;
  std::int64_t seed = 42;
  TargetOptions target;
  std::optional<bool> use_cache;
  std::optional<bool> rebuild;
  std::optional<bool> quant, optimize, analyze, compile;
  KeyValues ep_options;
  std::int64_t threads = 0;
  std::string optimization = "all";
  bool memory = true;
  std::optional<Path> config;
  std::optional<Path> output;
  bool overwrite = false;
  std::optional<Path> baseline;
  double max_slowdown = 10;

  std::int64_t batch() const { return batch_size.value_or(1); }
};

constexpr std::array<std::string_view, 4> optimizations{"none", "basic", "extended", "all"};

void describe(PerfOptions& o, OptionTable& options) {
  model_option(options, o.model, "An ONNX file, a folder that build made, or a model id");
  task_option(options, o.task);
  options.value("--iterations", "N", o.iterations, "Timed runs").at_least(1);
  options.value("--warmup", "N", o.warmup, "Runs before them, which count for nothing but their own mean").at_least(0);
  options.value("--duration", "SECONDS", o.duration, "Run for this long instead of a number of times");
  options
      .value("--batch-size", "N", o.batch_size, "The leading dimension, where it is dynamic or a checkpoint is built")
      .at_least(1)
      .preset("1");
  options.value("--input-data", "FILE", o.input_data, "Inputs as numpy saved them (.npz), fed as one batch")
      .accepts(Accepts::file);
  options.value("--seed", "N", o.seed, "Seed of random inputs").at_least(0);
  export_file_options(options, o.files);
  target_options(options, o.target);
  ep_options_option(options, o.ep_options);
  options.value("--threads", "N", o.threads, "Threads within an operator; 0 leaves it to ONNX Runtime").at_least(0);
  options.value("--graph-optimization", "LEVEL", o.optimization, "What ONNX Runtime may do to the graph")
      .choices({optimizations.begin(), optimizations.end()});
  options.toggle("--memory", o.memory, "Report resident memory");
  config_option(options, o.config, "A build config, whose task and target count where they are not typed");
  output_option(options, o.output, "Where the JSON report goes; else a new file in the cache folder");
  overwrite_option(options, o.overwrite);
  options
      .value("--baseline", "FILE", o.baseline, "An earlier report: the answer is no (exit 1) when this run is slower")
      .accepts(Accepts::file);
  options.value("--max-slowdown", "PERCENT", o.max_slowdown, "By how much the median may exceed the baseline's");
  options.toggle("--use-cache", o.use_cache, "Keep what a checkpoint builds in the cache folder").preset("on");
  options.toggle("--rebuild", o.rebuild, "Build a checkpoint even where nothing has changed").preset("off");
  // Scripts switch these stages; a build of this version has none of them.
  options.toggle("--quant, --quantize", o.quant, "Quantization").hidden();
  options.toggle("--optimize", o.optimize, "Graph optimization").hidden();
  options.toggle("--analyze", o.analyze, "Analysis").hidden();
  options.toggle("--compile", o.compile, "Compilation").hidden();
}

// The config's task and target, where they were not typed.
Status merge_config(PerfOptions& o) {
  if (!o.config) return {};
  MK_TRY(const auto json, read_json(*o.config, ErrorCode::usage));
  const JsonView root(json, to_utf8(*o.config), ErrorCode::usage);
  if (!root.is_object()) return tl::make_unexpected(root.expected("a build config"));
  const auto take = [](std::optional<std::string>& option, const JsonView& value) -> Status {
    if (option || value.is_null()) return {};
    MK_TRY(option, value.string());
    return {};
  };
  MK_CHECK(take(o.task, root.at("loader").at("task")));
  const JsonView compile = root.at("compile");
  const JsonView target = compile.at("ep_device");
  const bool ep_typed = o.target.ep.has_value();
  MK_CHECK(take(o.target.ep, target.at("ep")));
  MK_CHECK(take(o.target.device, target.at("device")));
  MK_CHECK(take(o.target.ep, compile.at("execution_provider")));
  MK_CHECK(take(o.target.device, compile.at("device")));
  if (!ep_typed && o.target.ep && target.has("source") && o.target.ep->find('@') == std::string::npos) {
    MK_TRY(const auto source, target.at("source").string());
    *o.target.ep += "@" + source;
  }
  return {};
}

Status check_numbers(const PerfOptions& o) {
  if (o.duration && !(std::isfinite(*o.duration) && *o.duration > 0))
    return fail(ErrorCode::usage, "must be a finite number of seconds above 0", "--duration");
  if (!std::isfinite(o.max_slowdown) || o.max_slowdown < 0)
    return fail(ErrorCode::usage, "must be a number of at least 0", "--max-slowdown");
  if (o.threads > 4096) return fail(ErrorCode::usage, "must be at most 4096", "--threads");
  return {};
}

// ROOT/perf/SLUG/TIME.json, a new name where two runs start in the same second.
Path default_output(const ResolvedModel& model) {
  std::string slug = model.ref.kind == ModelRefKind::hub_id ? model.ref.id : to_utf8(model.onnx.stem());
  if (!model.is_onnx() && model.is_local()) slug = to_utf8(std::filesystem::absolute(model.folder).filename());
  if (model.ref.kind == ModelRefKind::folder) slug = to_utf8(std::filesystem::absolute(model.folder).filename());
  for (char& c : slug)
    if (c == '/' || c == '\\') c = '_';
  const Path folder = cache_root() / "perf" / path_from_utf8(slug);
  const std::string time = local_timestamp();
  Path path = folder / (time + ".json");
  std::error_code ignored;
  for (int i = 2; std::filesystem::exists(path, ignored); ++i) path = folder / fmt::format("{}-{}.json", time, i);
  return path;
}

Status save(const PerfReport& report, const Path& path, bool overwrite) {
  Publication publication;
  MK_CHECK(publication.add_text(path, json_text(perf_json(report)), overwrite));
  return publication.commit();
}

// Flags that say how a checkpoint is built, where nothing is built.
void warn_of_build_flags(const PerfOptions& o, Progress& progress) {
  std::string typed;
  for (const auto& [name, given] :
       std::initializer_list<std::pair<const char*, bool>>{{"--input-specs", o.files.input_specs.has_value()},
                                                           {"--export-config", o.files.export_config.has_value()},
                                                           {"--dynamic-axes", o.files.dynamic_axes.has_value()},
                                                           {"--precision", o.target.precision.has_value()},
                                                           {"--use-cache", o.use_cache.has_value()},
                                                           {"--rebuild", o.rebuild.has_value()},
                                                           {"--quant", o.quant.has_value()},
                                                           {"--optimize", o.optimize.has_value()},
                                                           {"--analyze", o.analyze.has_value()},
                                                           {"--compile", o.compile.has_value()}})
    if (given) typed += (typed.empty() ? "" : ", ") + std::string(name);
  if (!typed.empty()) progress.warn(typed + " ignored: an ONNX model is measured as it is, nothing is built");
}

void warn_of_input_flags(const PerfOptions& o, Progress& progress) {
  if (!o.input_data) return;
  if (o.files.shape_config) progress.warn("--shape-config is ignored: --input-data has the shapes");
  if (o.batch_size) progress.warn("--batch-size is ignored: --input-data is one batch");
}

Result<RunnableModel> runnable(const PerfOptions& o, const ResolvedModel& model, const ShapeOverrides& shapes,
                               Context& context) {
  CheckpointBuild build{.task = o.task, .batch = o.batch_size, .files = o.files, .target = o.target};
  build.shapes = shapes.symbols;
  build.files.shape_config.reset();
  build.use_cache = o.use_cache.value_or(true);
  build.rebuild = o.rebuild.value_or(false);
  return runnable_model(model, build, context);
}

Result<PerfReport> run(const PerfOptions& typed, Context& context) {
  PerfOptions o = typed;
  MK_TRY(const auto model, resolve_model(o.model, WantedModel::any, context.hub));
  MK_CHECK(merge_config(o));
  MK_CHECK(check_numbers(o));
  if (o.task) MK_CHECK(check_task(*o.task));
  MK_TRY(const auto request, parse_target(o.target.ep.value_or(""), o.target.device.value_or("")));
  MK_CHECK(guard_overwrite(o.output, o.overwrite));
  std::optional<Baseline> baseline;
  if (o.baseline) {
    MK_TRY(baseline, read_baseline(*o.baseline));
  }

  std::shared_ptr<Runtime> runtime;
  const auto load = [&]() -> Result<std::shared_ptr<Runtime>> {
    if (!runtime) {
      MK_TRY(runtime,
             Runtime::load({.ort = o.target.ort, .progress = &context.progress, .verbosity = context.verbosity}));
    }
    return runtime;
  };
  EpDevices devices(load);
  MK_TRY(const auto target, resolve_on_this_machine(request, devices, context.progress));
  MK_TRY(const auto* device, devices.find(target));
  if (!device && !o.ep_options.empty())
    return fail(ErrorCode::usage, "the CPU execution provider takes no options", "--ep-options");

  warn_of_input_flags(o, context.progress);
  MeasureOptions m;
  if (o.files.shape_config && !o.input_data) {
    MK_TRY(m.shapes, read_shape_overrides(*o.files.shape_config));
  }
  if (!model.is_onnx()) MK_CHECK(check_export_shapes(m.shapes.symbols, m.shapes.where));
  if (model.is_onnx()) warn_of_build_flags(o, context.progress);
  MK_TRY(const auto built, runnable(o, model, m.shapes, context));
  if (!model.is_onnx()) m.shapes.symbols.clear();  // the export has used them
  m.model_id = o.model;
  m.origin = model.is_onnx() || model.is_local() ? "local" : "HF";
  m.model = built.onnx;
  m.task = o.task ? o.task : built.task;
  m.target = target;
  m.device = device;
  m.ep_options = o.ep_options;
  m.precision = o.target.precision.value_or("auto");
  m.session.intra_op_threads = static_cast<int>(o.threads);
  for (std::size_t i = 0; i < optimizations.size(); ++i)
    if (o.optimization == optimizations[i]) m.session.optimization = static_cast<GraphOptimization>(i);
  m.loop = {.warmup = o.warmup, .iterations = o.iterations, .duration = o.duration};
  m.batch_size = o.batch();
  m.seed = static_cast<std::uint64_t>(o.seed);
  m.input_data = o.input_data;
  m.memory = o.memory;

  MK_CHECK(load());
  const auto show = [&](const PerfReport& report) { context.progress.note(perf_header(report)); };
  MK_TRY(auto report, measure(runtime, m, context.progress, show));
  if (o.batch_size && !o.input_data && report.effective_batch_size != *o.batch_size)
    context.progress.warn(fmt::format("--batch-size {} has no effect: the model's leading dimension is {}",
                                      *o.batch_size, report.effective_batch_size));
  if (baseline) report.baseline = judge_against(*baseline, report, o.max_slowdown);
  const Path path = o.output.value_or(default_output(model));
  if (const Status saved = save(report, path, o.overwrite)) {
    report.saved_to = path;
    if (context.json()) context.progress.note("Results saved to: " + to_utf8(path));
  } else if (o.output) {
    return tl::make_unexpected(saved.error());
  } else {
    context.progress.warn("the report could not be kept: " + saved.error().to_string());
  }
  return report;
}

std::string text(const PerfReport& report, const Context&) { return perf_text(report); }

bool answer(const PerfReport& report) { return !report.baseline || !report.baseline->slower(); }

}  // namespace

Command perf_command() {
  return define<PerfOptions, PerfReport>({
      .name = "perf",
      .group = "Measure",
      .summary = "Time a model on a device",
      .details =
          "Inputs are random unless --input-data gives them: drawn within the ranges that the exporter recorded, "
          "with a fixed seed. Every dynamic dimension gets a value, which the report lists.",
      .examples = {{"winml perf -m model.onnx", "100 runs on the best device of this machine"},
                   {"winml perf -m out --duration 10 --format json", "A folder that build made, for ten seconds"},
                   {"winml perf -m out --baseline before.json", "Exit 1 when the median is more than 10 % slower"}},
      .formats = {"text", "json"},
      .options = describe,
      .run = run,
      .text = text,
      .json = perf_json,
      .answer = answer,
  });
}

}  // namespace mk::cli
