// Constant nodes become initializers: one form of constants for the passes that follow.

#include "optimize/pass.h"

namespace mk {
namespace {

Status run(PassRun& run) {
  const std::vector<Node*> nodes = run.index().of("Constant");
  for (Node* node : nodes) {
    if (!node || !node->output(0)) continue;
    std::optional<Tensor> tensor = constant_of(node->output(0));
    if (!tensor) continue;
    if (node->output(0)->is_graph_output() && node->graph()->parent()) {
      run.miss(*node, "it is a sub-graph's output");
      continue;
    }
    Patch patch(run.opset());
    tensor->name = node->output(0)->name();
    patch.replace(node->output(0), patch.constant(std::move(*tensor)));
    run.apply(std::move(patch), *node);
  }
  return {};
}

}  // namespace

extern const Pass constants_to_initializers;
const Pass constants_to_initializers{
    .name = "constants-to-initializers", .summary = "Constant nodes become initializers", .run = run};

}  // namespace mk
