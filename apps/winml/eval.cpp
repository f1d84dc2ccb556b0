// winml eval: how good a model is on a data set, or how alike two models are.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/publish.h"
#include "export/model_config.h"
#include "hub/hub_cache.h"
#include "hub/resolve.h"
#include "hub/tasks.h"
#include "runtime/ep_devices.h"
#include "winml/eval_options.h"
#include "winml/eval_report.h"
#include "winml/runnable_model.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

constexpr std::string_view judged_task = "image-classification";
constexpr std::int64_t export_batch = 16;  // images per run, of a checkpoint that is built for this run

Status check_task_is_judged(std::string_view task) {
  if (task == judged_task) return {};
  return fail(
      ErrorCode::unsupported, fmt::format("There is no evaluator for the task {}", task), {},
      fmt::format("Supported: {}; any two models can be held against each other with --mode compare", judged_task));
}

Result<std::string> task_of(const EvalOptions& o, const ModelConfig& config) {
  MK_TRY(const TaskChoice choice, choose_task(config, {.task = o.task.value_or("")}));
  return choice.task;
}

Result<ImageClassificationOptions> classification_options(const EvalOptions& o) {
  ImageClassificationOptions options;
  options.rows = {.samples = static_cast<std::uint64_t>(o.samples.value_or(100)),
                  .shuffle = o.shuffle.value_or(true),
                  .seed = static_cast<std::uint64_t>(o.seed.value_or(42))};
  for (const auto& [key, column] : o.columns) {
    if (key == "input_column")
      options.input_column = column;
    else if (key == "label_column")
      options.label_column = column;
    else
      return fail(ErrorCode::usage, "unknown column " + key, "--column", "there are input_column and label_column");
  }
  if (o.label_mapping) {
    MK_TRY(options.label_mapping, read_label_mapping(*o.label_mapping));
  }
  return options;
}

// A path as it is; an id of the Hub as its snapshot in the local cache.
Result<Path> dataset_path(const EvalOptions& o) {
  Path path = path_from_utf8(*o.dataset);
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) || path.extension() == ".parquet" || !is_model_id(*o.dataset)) {
    if (o.dataset_revision) return fail(ErrorCode::usage, "--dataset-revision is for an id of the Hub", *o.dataset);
    return path;
  }
  MK_TRY(Snapshot snapshot,
         HubCache::from_environment().find(*o.dataset, o.dataset_revision.value_or(""), HubRepository::dataset));
  return std::move(snapshot.folder);
}

// One runtime for the run, loaded when it is first needed.
class Machine {
 public:
  Machine(const EvalOptions& o, Context& context)
      : options_(o), context_(context), devices_([this] { return runtime(); }) {}

  Result<std::shared_ptr<Runtime>> runtime() {
    if (!runtime_) {
      MK_TRY(runtime_,
             Runtime::load({.ort = options_.ort, .progress = &context_.progress, .verbosity = context_.verbosity}));
    }
    return runtime_;
  }

  Result<Target> target() {
    MK_TRY(const auto request, parse_target(options_.ep.value_or(""), options_.device.value_or("")));
    automatic_ = request == TargetRequest{};
    return resolve_on_this_machine(request, devices_, context_.progress);
  }

  // An automatic choice that cannot open the model falls back to the CPU, once.
  Result<Session> open(const Path& model, Target& target) {
    MK_TRY(const auto loaded, runtime());
    MK_TRY(const OfferedDevice* device, devices_.find(target));
    SessionOptions options;
    if (device != nullptr) options.device = device->handle;
    auto session = Session::open(loaded, model, options);
    if (session || device == nullptr || !automatic_) return session;
    context_.progress.warn(
        fmt::format("{} cannot open the model, trying the CPU: {}", target.to_string(), session.error().to_string()));
    target = {.ep = find_ep("cpu"), .device = DeviceKind::cpu, .source = {}};
    return Session::open(loaded, model);
  }

 private:
  const EvalOptions& options_;
  Context& context_;
  std::shared_ptr<Runtime> runtime_;
  EpDevices devices_;
  bool automatic_ = false;
};

void warn_of_left_out(const ImageClassificationReport& r, Progress& progress) {
  if (r.without_label > 0)
    progress.warn(fmt::format("{} rows have no label that the model knows; they are left out", r.without_label));
  if (r.without_image > 0) progress.warn(fmt::format("{} rows have no image; they are left out", r.without_image));
  if (r.not_finite > 0)
    progress.warn(fmt::format("the model gave NaN for {} images; they are judged wrong", r.not_finite));
}

Result<EvalReport> evaluate(const EvalOptions& o, const ResolvedModel& model, EvalReport report, Context& context) {
  Path about = model.folder;
  std::string name = model.name();
  if (o.model_id) {
    MK_TRY(const auto named, resolve_model(*o.model_id, WantedModel::any, context.hub, Fetch::side_files));
    about = named.folder;
    name = named.name();
  }
  const auto config = read_model_config(about, name);
  if (!config && config.error().code == ErrorCode::not_found)
    return fail(ErrorCode::usage, "no config.json beside the model", to_utf8(about),
                "Name the folder or id that has it with --model-id");
  if (!config) return tl::make_unexpected(config.error());
  MK_TRY(report.subject.task, task_of(o, *config));
  MK_CHECK(check_task_is_judged(*report.subject.task));
  MK_TRY(const auto labels, ModelLabels::read(*config));
  const auto processor = ImageProcessor::load(about);
  if (!processor && processor.error().code == ErrorCode::not_found)
    return fail(ErrorCode::usage, "no preprocessor_config.json beside the model", to_utf8(about),
                "Name the folder or id that has it with --model-id");
  if (!processor) return tl::make_unexpected(processor.error());
  MK_TRY(auto options, classification_options(o));
  MK_TRY(const Path source, dataset_path(o));
  MK_TRY(const auto dataset, open_dataset({source, o.dataset_name, o.split}));
  if (o.samples && static_cast<std::uint64_t>(*o.samples) > dataset->row_count())
    context.progress.warn(
        fmt::format("the split has {} rows, fewer than --samples {}: all are taken", dataset->row_count(), *o.samples));

  Machine machine(o, context);
  MK_TRY(Target target, machine.target());
  const auto chosen = static_cast<std::int64_t>(choose_rows(dataset->row_count(), options.rows).size());
  MK_TRY(const auto runnable, runnable_model(model,
                                             {.task = report.subject.task,
                                              .batch = std::clamp(chosen, std::int64_t{1}, export_batch),
                                              .target = {.ort = o.ort}},
                                             context));
  report.subject.model_path = runnable.onnx;
  MK_TRY(const auto session, machine.open(report.subject.model_path, target));
  report.subject.target = target;
  DatasetEvaluation content{.path = *o.dataset,
                            .name = o.dataset_name,
                            .revision = o.dataset_revision,
                            .split = dataset->split(),
                            .rows = options.rows,
                            .columns = o.columns,
                            .label_mapping_file = o.label_mapping,
                            .result = {}};
  MK_TRY(content.result,
         evaluate_image_classification(session, *processor, labels, *dataset, options, context.progress));
  warn_of_left_out(content.result, context.progress);
  report.content = std::move(content);
  return report;
}

Result<EvalReport> compare(const EvalOptions& o, const ResolvedModel& model, EvalReport report, Context& context) {
  report.subject.task = o.task;
  if (!model.is_onnx()) {
    MK_TRY(const auto config, read_model_config(model.folder, model.name()));
    MK_TRY(report.subject.task, task_of(o, config));
  }
  MK_TRY(const auto runnable, runnable_model(model, {.task = report.subject.task, .target = {.ort = o.ort}}, context));
  report.subject.model_path = runnable.onnx;
  MK_TRY(const auto reference, resolve_model(to_utf8(*o.reference), WantedModel::onnx, context.hub));
  CompareOptions options;
  options.samples = o.samples.value_or(options.samples);
  options.seed = static_cast<std::uint64_t>(o.seed.value_or(42));
  options.input_data = o.input_data;
  if (!o.tolerances.empty()) {
    MK_TRY(options.tolerances, parse_tolerances(o.tolerances));
  }
  if (o.shape_config) {
    MK_TRY(options.shapes, read_shape_overrides(*o.shape_config));
  }
  if (o.input_data && o.samples) context.progress.warn("--samples is ignored: --input-data says how many there are");
  for (const auto& [name, given] :
       {std::pair("--dataset", o.dataset.has_value()), std::pair("--split", o.split.has_value())})
    if (given) context.progress.warn(fmt::format("{} is ignored in --mode compare", name));
  Machine machine(o, context);
  MK_TRY(const auto runtime, machine.runtime());
  MK_TRY(auto result, compare_models(runtime, report.subject.model_path, reference.onnx, options, context.progress));
  report.content = ModelComparison{reference.onnx, o.input_data, std::move(result)};
  return report;
}

// Both models run on the CPU: a device or a provider that was typed would change nothing.
Status check_compares_on_cpu(const EvalOptions& typed) {
  MK_TRY(const TargetRequest request, parse_target(typed.ep.value_or(""), typed.device.value_or("")));
  if ((request.ep == nullptr || request.ep->short_name() == "cpu") &&
      (!request.device || request.device == DeviceKind::cpu))
    return {};
  return fail(ErrorCode::usage, "--mode compare runs both models on the CPU", typed.ep ? "--ep" : "--device",
              "Leave it out");
}

Result<EvalReport> schema(const EvalOptions& o) {
  EvalReport report;
  EvalSchema content;
  if (o.task) {
    content.task = normalise_task(*o.task);
    if (const Status judged = check_task_is_judged(*content.task); !judged) {
      Error error = judged.error();
      error.code = ErrorCode::usage;
      return tl::make_unexpected(std::move(error));
    }
  }
  report.content = std::move(content);
  return report;
}

Status save(const EvalReport& report, bool overwrite) {
  Publication publication;
  MK_CHECK(publication.add_text(*report.subject.output_path, json_text(eval_json(report)), overwrite));
  return publication.commit();
}

Result<EvalReport> run(const EvalOptions& typed, Context& context) {
  if (typed.schema) return schema(typed);
  EvalOptions o = typed;
  MK_CHECK(merge_eval_config(o));
  MK_CHECK(check_combination(o));
  if (o.compares()) MK_CHECK(check_compares_on_cpu(typed));
  MK_CHECK(guard_overwrite(o.output, o.overwrite));
  MK_TRY(const auto model, resolve_model(*o.model, WantedModel::any, context.hub));
  EvalReport empty;
  empty.subject.device = o.device.value_or("auto");
  empty.subject.ep = o.ep;
  empty.subject.output_path = o.output;
  if (o.model_id)
    empty.subject.model_id = o.model_id;
  else if (!model.is_onnx() || !model.is_local())
    empty.subject.model_id = model.name();
  MK_TRY(auto report,
         o.compares() ? compare(o, model, std::move(empty), context) : evaluate(o, model, std::move(empty), context));
  if (o.output) {
    MK_CHECK(save(report, o.overwrite));
  }
  return report;
}

std::string text(const EvalReport& report, const Context& context) { return eval_text(report, context.style); }
bool answer(const EvalReport& report) { return report.yes(); }

}  // namespace

Command eval_command() {
  return define<EvalOptions, EvalReport>({
      .name = "eval",
      .group = "Measure",
      .summary = "Judge a model on a data set, or compare two models",
      .details = "Rows are chosen by a seeded shuffle, the same as the Python tool's. Labels are matched by name with "
                 "the model's. With --mode compare the answer is yes or no: exit 1 where outputs differ by more than "
                 "the tolerance.",
      .examples = {{"winml eval -m out --dataset digits/test.parquet --samples 0", "Accuracy on every row of a file"},
                   {"winml eval -m model.onnx --model-id checkpoint --dataset images",
                    "Labels and sizes from a folder"},
                   {"winml eval -m new.onnx --mode compare --reference old.onnx", "Exit 1 unless they are alike"}},
      .formats = {"text", "json"},
      .options = describe_eval,
      .run = run,
      .text = text,
      .json = eval_json,
      .answer = answer,
  });
}

}  // namespace mk::cli
