// Nodes and initializers that nothing uses go; graph inputs stay.

#include "optimize/pass.h"

namespace mk {
namespace {

void collect(Graph& graph, std::vector<Value*>& candidates) {
  for (Node* node : graph.nodes()) {
    for (Value* output : node->outputs()) {
      if (output && output->is_unused()) candidates.push_back(output);
    }
    for (Graph* inner : node->subgraphs()) collect(*inner, candidates);
  }
  for (Value* value : graph.initializers()) {
    if (value->is_unused()) candidates.push_back(value);
  }
}

Status run(PassRun& run) {
  std::vector<Value*> candidates;
  collect(*run.model().graph, candidates);
  const std::size_t nodes = run.index().size(), initializers = run.model().graph->initializers().size();
  run.sweep(std::move(candidates));
  if (run.index().size() != nodes || run.model().graph->initializers().size() != initializers) run.changed();
  return {};
}

}  // namespace

extern const Pass dead_code;
const Pass dead_code{.name = "dead-code", .summary = "Nodes and initializers that nothing uses go", .run = run};

}  // namespace mk
