// winml inspect: what a model is and what the tool makes of it.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <variant>

#include "base/json.h"
#include "hub/tasks.h"
#include "models/registry.h"
#include "winml/command.h"
#include "winml/inspect_graph.h"
#include "winml/inspect_model.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct InspectOptions {
  ModelSource source;
  std::optional<std::string> task;
  bool hierarchy = false;
  bool list_tasks = false;
  bool list_tensors = false;
};

using TaskList = std::vector<std::string>;
using InspectReport = std::variant<TaskList, GraphFacts, ModelFacts>;

void describe(InspectOptions& o, OptionTable& options) {
  model_option(
      options, o.source.model,
      "A folder with config.json, a model id in the local Hub cache, an ONNX file, or a folder that build made");
  task_option(options, o.task);
  options.toggle("-H, --hierarchy", o.hierarchy, "Show the module tree").also_negated_by("-N");
  options.flag("--list-tasks", o.list_tasks,
               "List the known tasks; with a model or a type, those it can be exported for");
  options.flag("--list-tensors", o.list_tensors, "List the tensors with types and shapes; -v does so, too");
  options.value("--model-type", "TYPE", o.source.model_type, "Look at an architecture without a model");
  options.value("--model-class", "CLASS", o.source.model_class,
                "The transformers class, where the model does not say it");
}

// Of the type, in order; those that are known tasks.
Result<TaskList> tasks_of(std::string_view model_type) {
  const auto type = find_model_type(model_type);
  if (!type)
    return fail(ErrorCode::negative, fmt::format("models of type '{}' cannot be exported", model_type), {},
                "`winml inspect --list-tasks` lists all tasks");
  std::set<std::string> tasks;
  for (const HeadInfo& head : type->heads)
    if (std::ranges::binary_search(known_tasks(), head.task)) tasks.emplace(head.task);
  return TaskList(tasks.begin(), tasks.end());
}

Result<TaskList> list_tasks(const ModelSource& source, Hub& hub) {
  if (source.empty()) return TaskList(known_tasks().begin(), known_tasks().end());
  if (source.model_type) return tasks_of(*source.model_type);
  std::optional<ResolvedModel> resolved;
  if (source.model) {
    MK_TRY(resolved, resolve_model(*source.model, WantedModel::checkpoint, hub, Fetch::configs));
  }
  MK_TRY(const ModelConfig config, config_of(source, resolved));
  return tasks_of(config.model_type());
}

Result<InspectReport> run(const InspectOptions& o, Context& context) {
  if (o.task) MK_CHECK(check_task(*o.task));
  if (o.list_tasks) {
    MK_TRY(TaskList tasks, list_tasks(o.source, context.hub));
    return InspectReport(std::move(tasks));
  }
  if (o.source.empty())
    return fail(ErrorCode::usage, "nothing to inspect", {}, "Give -m MODEL, --model-type or --model-class");
  const bool list_tensors = o.list_tensors || context.verbosity > 0;
  InspectRequest request{.source = o.source,
                         .task = o.task,
                         .hierarchy = o.hierarchy,
                         .list_tensors = list_tensors,
                         .build_config = context.verbosity > 0};
  if (o.source.model) {
    MK_TRY(request.resolved, resolve_model(*o.source.model, WantedModel::any, context.hub, Fetch::configs));
    if (request.resolved->is_onnx()) {
      MK_TRY(GraphFacts facts, inspect_graph(*request.resolved, list_tensors, context.progress));
      return InspectReport(std::move(facts));
    }
  }
  MK_TRY(ModelFacts facts, inspect_model(request, context.progress));
  return InspectReport(std::move(facts));
}

struct Texts {
  const Context& context;
  std::string operator()(const TaskList& tasks) const { return fmt::format("{}\n", fmt::join(tasks, "\n")); }
  std::string operator()(const GraphFacts& facts) const { return to_text(facts, context); }
  std::string operator()(const ModelFacts& facts) const { return to_text(facts, context); }
};
struct Jsons {
  Json operator()(const TaskList& tasks) const { return tasks; }
  Json operator()(const GraphFacts& facts) const { return to_json(facts); }
  Json operator()(const ModelFacts& facts) const { return to_json(facts); }
};

std::string text(const InspectReport& report, const Context& context) { return std::visit(Texts{context}, report); }
Json json(const InspectReport& report) { return std::visit(Jsons{}, report); }

}  // namespace

Command inspect_command() {
  return define<InspectOptions, InspectReport>({
      .name = "inspect",
      .group = "Discover",
      .summary = "Show what a model is, and how it would be exported",
      .examples = {{"winml inspect -m microsoft/resnet-50", "A model in the local Hub cache"},
                   {"winml inspect -m model.onnx -f json", "An ONNX file, for a script"},
                   {"winml inspect -m DIR --list-tensors", "The tensors of a checkpoint"},
                   {"winml inspect --model-type bert --list-tasks", "What an architecture can be exported for"}},
      .formats = {"text", "json", "table"},
      .options = describe,
      .run = run,
      .text = text,
      .json = json,
  });
}

}  // namespace mk::cli
