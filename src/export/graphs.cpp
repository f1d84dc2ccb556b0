#include "export/graphs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/spelling.h"
#include "base/text.h"
#include "hub/tasks.h"

namespace mk {
namespace {

constexpr std::string_view generation = "text2text-generation";

// Names of pipelines that are no tasks of their own: whichever composite generates serves them.
constexpr std::string_view pipelines[] = {"summarization", "translation"};

std::string written(std::string_view task) {
  std::string name = lower_case(task);
  std::ranges::replace(name, '_', '-');
  return name;
}

bool serves(const CompositeChoice& composite, std::string_view task) {
  return std::ranges::find(composite.tasks, task) != composite.tasks.end();
}

bool generates(const CompositeChoice& composite) {
  return std::ranges::any_of(composite.components,
                             [](const ComponentChoice& part) { return part.head.task == generation; });
}

std::vector<std::string_view> names_of(const std::vector<ComponentChoice>& graphs) {
  std::vector<std::string_view> names;
  for (const ComponentChoice& graph : graphs) names.push_back(graph.name);
  return names;
}

Result<TaskChoice> task_of(const ModelConfig& config, const GraphsRequest& request) {
  TaskRequest asked{
      .task = request.task, .model_class = request.model_class, .model_id = request.model_id, .first_task = {}};
  if (const auto type = find_model_type(config.model_type()); type && !type->heads.empty())
    asked.first_task = type->heads.front().task;
  return choose_task(config, asked);
}

GraphChoices as_choices(const CompositeChoice& composite, std::string task, const TaskChoice& choice) {
  GraphChoices choices{std::move(task), std::string(name_of(choice.source)), composite.tasks, composite.components};
  std::ranges::sort(choices.pipeline_tasks);
  return choices;
}

// The composite for an explicit task; null where the task is one graph's.
const CompositeChoice* named_by(const std::vector<CompositeChoice>& all, const std::string& task) {
  if (task == generation) return nullptr;
  for (const CompositeChoice& composite : all)
    if (serves(composite, task)) return &composite;
  if (std::ranges::find(pipelines, task) == std::end(pipelines)) return nullptr;
  const auto found = std::ranges::find_if(all, generates);
  return found == all.end() ? nullptr : &*found;
}

// The composite for a detected task; null where it is one graph's.
Result<const CompositeChoice*> detected(const std::vector<CompositeChoice>& all, const std::string& task,
                                        const ModelConfig& config) {
  const CompositeChoice* found = nullptr;
  std::set<std::string> tasks;
  bool several = false;
  for (const CompositeChoice& composite : all) {
    if (!serves(composite, task) && !(task == generation && generates(composite))) continue;
    several = several || (found != nullptr && names_of(found->components) != names_of(composite.components));
    tasks.insert(composite.tasks.begin(), composite.tasks.end());
    if (found == nullptr) found = &composite;
  }
  if (several)
    return fail(ErrorCode::usage, fmt::format("{} models have several composite exports", config.model_type()),
                config.name(), fmt::format("Choose with --task, one of {}", fmt::join(tasks, ", ")));
  return found;
}

Result<GraphChoices> only(GraphChoices choices, const std::string& submodel, const ModelConfig& config) {
  if (submodel.empty()) return choices;
  if (!choices.is_composite())
    return fail(ErrorCode::usage, fmt::format("{} for {} is one graph", config.model_type(), choices.task),
                "--submodel", "Leave --submodel out; it chooses one of several graphs");
  const std::vector<std::string_view> names = names_of(choices.graphs);
  const auto found = std::ranges::find(choices.graphs, submodel, &ComponentChoice::name);
  if (found == choices.graphs.end()) {
    const auto near = nearest(submodel, names);
    return fail(ErrorCode::usage, fmt::format("the model has no graph '{}'", submodel), "--submodel",
                near ? fmt::format("Did you mean '{}'?", *near) : fmt::format("It has {}", fmt::join(names, ", ")));
  }
  choices.graphs = {*found};
  return choices;
}

Result<GraphChoices> lone_graph(const ModelConfig& config, const TaskChoice& task) {
  MK_TRY(HeadChoice head, choose_head(config, task.task));
  GraphChoices choices{task.task, std::string(name_of(task.source)), {}, {}};
  choices.graphs.push_back({{}, std::move(head)});
  return choices;
}

// What a request of its task's composite is for; nothing where it is one graph.
Result<GraphChoices> composite_of(const ModelConfig& config, const GraphsRequest& request, const TaskChoice& task) {
  const std::vector<CompositeChoice> all = composites(config.model_type());
  if (!request.task.empty()) {
    const std::string name = written(request.task);
    const CompositeChoice* composite = named_by(all, name);
    return composite ? as_choices(*composite, name, task) : GraphChoices{};
  }
  MK_TRY(const CompositeChoice* composite, detected(all, task.task, config));
  return composite ? as_choices(*composite, task.task, task) : GraphChoices{};
}

}  // namespace

Result<GraphChoices> choose_graphs(const ModelConfig& config, const GraphsRequest& request) {
  MK_TRY(const TaskChoice task, task_of(config, request));
  MK_TRY(GraphChoices choices, composite_of(config, request, task));
  if (!choices.is_composite()) {
    MK_TRY(choices, lone_graph(config, task));
  }
  return only(std::move(choices), request.submodel, config);
}

Result<GraphChoices> choose_graph(const ModelConfig& config, const GraphsRequest& request) {
  if (!request.submodel.empty()) return choose_graphs(config, request);
  MK_TRY(const TaskChoice task, task_of(config, request));
  Result<GraphChoices> lone = lone_graph(config, task);
  if (lone) return lone;
  MK_TRY(GraphChoices choices, composite_of(config, request, task));
  if (!choices.is_composite()) return lone;
  choices.graphs.erase(choices.graphs.begin(), choices.graphs.end() - 1);
  return choices;
}

}  // namespace mk
