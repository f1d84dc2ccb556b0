// winml perf: latency, throughput and memory of one model on one target.

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "base/publish.h"
#include "base/system.h"
#include "hub/resolve.h"
#include "perf/measure.h"
#include "runtime/ep_devices.h"
#include "winml/command.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct PerfOptions {
  std::string model;
  std::optional<std::string> task;
  std::int64_t iterations = 100;
  std::int64_t warmup = 10;
  std::optional<double> duration;
  std::int64_t batch_size = 1;
  std::optional<Path> shape_config;
  std::optional<Path> input_data;
  std::int64_t seed = 42;
  std::optional<std::string> device;
  std::optional<std::string> ep;
  KeyValues ep_options;
  std::int64_t threads = 0;
  std::string optimization = "all";
  bool memory = true;
  std::optional<Path> config;
  std::optional<Path> output;
  bool overwrite = false;
  std::optional<Path> baseline;
  double max_slowdown = 10;
  std::optional<Path> ort;
};

constexpr std::array<std::string_view, 4> optimizations{"none", "basic", "extended", "all"};

void describe(PerfOptions& o, OptionTable& options) {
  model_option(options, o.model, "An ONNX file, a folder that build made, or a model id");
  task_option(options, o.task);
  options.value("--iterations", "N", o.iterations, "Timed runs").at_least(1);
  options.value("--warmup", "N", o.warmup, "Runs before them, which count for nothing but their own mean").at_least(0);
  options.value("--duration", "SECONDS", o.duration, "Run for this long instead of a number of times");
  options.value("--batch-size", "N", o.batch_size, "Size of a dynamic leading dimension").at_least(1);
  options
      .value("--shape-config", "FILE", o.shape_config,
             "Shapes of random inputs, as JSON: a list under an input's name, a number under a dimension's")
      .accepts(Accepts::file);
  options.value("--input-data", "FILE", o.input_data, "Inputs as numpy saved them (.npz), fed as one batch")
      .accepts(Accepts::file);
  options.value("--seed", "N", o.seed, "Seed of random inputs").at_least(0);
  device_option(options, o.device);
  ep_option(options, o.ep);
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
  ort_option(options, o.ort);
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
  const bool ep_typed = o.ep.has_value();
  MK_CHECK(take(o.ep, target.at("ep")));
  MK_CHECK(take(o.device, target.at("device")));
  MK_CHECK(take(o.ep, compile.at("execution_provider")));
  MK_CHECK(take(o.device, compile.at("device")));
  if (!ep_typed && o.ep && target.has("source") && o.ep->find('@') == std::string::npos) {
    MK_TRY(const auto source, target.at("source").string());
    *o.ep += "@" + source;
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

Result<Path> onnx_of(const ResolvedModel& model) {
  if (model.is_onnx()) return model.onnx;
  return fail(ErrorCode::usage, "this is a checkpoint, not an ONNX model", model.name(),
              fmt::format("Build it first: winml build -m {} -o FOLDER, then winml perf -m FOLDER", model.name()));
}

// What the typed files replace is told, once.
void warn_of_ignored(const PerfOptions& o, Progress& progress) {
  if (!o.input_data) return;
  if (o.shape_config) progress.warn("--shape-config is ignored: --input-data has the shapes");
  if (o.batch_size != 1) progress.warn("--batch-size is ignored: --input-data is one batch");
}

Result<PerfReport> run(const PerfOptions& typed, Context& context) {
  PerfOptions o = typed;
  MK_TRY(const auto model, resolve_model(o.model, WantedModel::any));
  MK_CHECK(merge_config(o));
  MK_CHECK(check_numbers(o));
  MK_TRY(const auto request, parse_target(o.ep.value_or(""), o.device.value_or("")));
  MK_CHECK(guard_overwrite(o.output, o.overwrite));
  std::optional<Baseline> baseline;
  if (o.baseline) {
    MK_TRY(baseline, read_baseline(*o.baseline));
  }

  std::shared_ptr<Runtime> runtime;
  const auto load = [&]() -> Result<std::shared_ptr<Runtime>> {
    if (!runtime) {
      MK_TRY(runtime, Runtime::load({.ort = o.ort, .progress = &context.progress, .verbosity = context.verbosity}));
    }
    return runtime;
  };
  EpDevices devices(load);
  MK_TRY(const auto target, resolve_on_this_machine(request, devices, context.progress));
  MK_TRY(const auto* device, devices.find(target));
  if (!device && !o.ep_options.empty())
    return fail(ErrorCode::usage, "the CPU execution provider takes no options", "--ep-options");

  MeasureOptions m;
  m.model_id = o.model;
  m.origin = model.is_local() ? "local" : "HF";
  MK_TRY(m.model, onnx_of(model));
  m.task = o.task;
  m.target = target;
  m.device = device;
  m.ep_options = o.ep_options;
  m.session.intra_op_threads = static_cast<int>(o.threads);
  for (std::size_t i = 0; i < optimizations.size(); ++i)
    if (o.optimization == optimizations[i]) m.session.optimization = static_cast<GraphOptimization>(i);
  m.loop = {.warmup = o.warmup, .iterations = o.iterations, .duration = o.duration};
  m.batch_size = o.batch_size;
  m.seed = static_cast<std::uint64_t>(o.seed);
  m.input_data = o.input_data;
  m.memory = o.memory;
  warn_of_ignored(o, context.progress);
  if (o.shape_config && !o.input_data) {
    MK_TRY(m.shapes, read_shape_overrides(*o.shape_config));
  }

  MK_CHECK(load());
  const auto show = [&](const PerfReport& report) { context.progress.note(perf_header(report)); };
  MK_TRY(auto report, measure(runtime, m, context.progress, show));
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
