#pragma once
// Which graphs a model is exported as: one, or several that serve a pipeline together, as an encoder and a decoder do
// (spec: loader, composite registry).

#include <string>
#include <vector>

#include "base/result.h"
#include "models/registry.h"

namespace mk {

struct GraphsRequest {
  std::string task;         // as the user wrote it; detected where empty
  std::string model_class;  // of a build config's loader; empty where it says nothing
  std::string model_id;     // as the user wrote it
  std::string submodel;     // only this one of several
};

struct GraphChoices {
  std::string task;                         // canonical, or the pipeline's name where it was given
  std::string task_source;                  // "user-task", "tasks-manager" ... (spec: loader, task resolution)
  std::vector<std::string> pipeline_tasks;  // that the graphs serve together, sorted; empty for a lone graph
  std::vector<ComponentChoice> graphs;      // a lone graph has no name

  bool is_composite() const { return !pipeline_tasks.empty(); }
};

// An explicit task chooses the composite that it names ("translation"), else one graph: text2text-generation is the
// decoder alone. A detected one chooses the composite that serves it. usage: a submodel that there is not (names those
// there are), several composites that the detected task does not tell apart, and the errors of choose_task and
// choose_head.
Result<GraphChoices> choose_graphs(const ModelConfig& config, const GraphsRequest& request);

// The one graph that such a request is for: that of the task, and of a composite whose task no single graph serves its
// last.
Result<GraphChoices> choose_graph(const ModelConfig& config, const GraphsRequest& request);

}  // namespace mk
