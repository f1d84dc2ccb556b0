// One Reshape for a chain of views (Reshape, Flatten, Squeeze, Unsqueeze), and for a Transpose that only moves
// dimensions of length 1: no data is moved then.

#include <algorithm>
#include <array>

#include "optimize/known_values.h"
#include "optimize/pass.h"
#include "optimize/transpose_rules.h"

namespace mk {
namespace {

constexpr std::array<const char*, 4> views{"Reshape", "Flatten", "Squeeze", "Unsqueeze"};

bool is_view(const Node* node) {
  return node && (node->domain.empty() || node->domain == "ai.onnx") &&
         std::find(views.begin(), views.end(), node->op_type) != views.end();
}

bool replace_by_reshape(PassRun& run, Node& node, Value* x) {
  Value* y = node.output(0);
  if (!x || !y || !x->type.shape || !y->type.shape) return false;
  Patch patch(run.opset());
  if (same_shape(x, y)) {
    patch.replace(y, x);
    if (run.apply(std::move(patch), node)) return true;
    patch = Patch(run.opset());
  }
  const auto target = reshape_target(*x->type.shape, *y->type.shape);
  if (!target) {
    run.miss(node, "more than one dimension of its result is not known");
    return false;
  }
  patch.replace(y, patch.op("Reshape", {x, patch.integers(*target)}));
  return run.apply(std::move(patch), node);
}

Status run(PassRun& run) {
  for (const char* op_type : views) {
    const std::vector<Node*>& nodes = run.index().of(op_type);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Node* node = nodes[i];
      if (!node || !node->input(0) || !node->output(0) || node->output(0)->is_unused()) continue;
      const Value* between = node->input(0);
      Node* first = between->producer();
      if (!is_view(first) || first->graph() != node->graph() || is_constant(between)) continue;
      if (between->uses().size() != 1 || between->is_graph_output()) {
        run.miss(*node, between->name() + " is used elsewhere, too");
        continue;
      }
      replace_by_reshape(run, *node, first->input(0));
    }
  }
  const std::vector<Node*>& transposes = run.index().of("Transpose");
  for (std::size_t i = 0; i < transposes.size(); ++i) {
    Node* node = transposes[i];
    if (!node || !node->input(0) || !node->output(0) || node->output(0)->is_unused()) continue;
    const auto perm = permutation_of(*node);
    if (!perm || is_identity(*perm)) continue;
    std::vector<std::int64_t> long_axes;
    for (const std::int64_t axis : *perm) {
      const Dim dim = dim_of(node->input(0), static_cast<int>(axis));
      if (!dim.is_known() || dim.value != 1) long_axes.push_back(axis);
    }
    if (std::is_sorted(long_axes.begin(), long_axes.end())) replace_by_reshape(run, *node, node->input(0));
  }
  return {};
}

}  // namespace

extern const Pass merge_reshapes;
const Pass merge_reshapes{
    .name = "merge-reshapes", .summary = "Chains of views become one Reshape", .opset = 5, .run = run};

}  // namespace mk
