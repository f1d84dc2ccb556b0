// What can be computed before the model runs is: nodes whose inputs are constant, integers that follow from shapes, the
// shape of a Reshape as far as it does, and the branch of an If whose condition is known.

#include "optimize/evaluate.h"
#include "optimize/known_values.h"
#include "optimize/pass.h"

namespace mk {
namespace {

// The file may grow by this much for a node that goes: a mask or a table of positions is worth its place, a weight that
// stands in two layouts is not.
constexpr std::uint64_t most_growth = 1 << 20;

class Folder {
 public:
  explicit Folder(PassRun& run) : run_(run), known_(run.model()) {}

  void fold(Graph& graph) {
    const std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
    for (Node* node : nodes) {
      if (!run_.index().has(node)) continue;  // gone with another
      if (node->op_type == "Constant" || !is_plain(*node)) {
        fold_inside(*node);
        continue;
      }
      if (fold_branch(*node) || fold_node(*node)) continue;
      known_.follow(*node);
      if (fold_known(*node) || fold_reshape(*node)) continue;
      fold_inside(*node);
    }
  }

 private:
  static bool is_plain(const Node& node) { return node.domain.empty() || node.domain == "ai.onnx"; }

  void fold_inside(Node& node) {
    for (Graph* inner : node.subgraphs()) fold(*inner);
  }

  bool fold_node(Node& node) {
    if (!kernel_of(node.op_type) || node.inputs().empty()) return false;
    std::vector<std::optional<Tensor>> inputs;
    std::uint64_t freed = 0;
    for (const Value* input : node.inputs()) {
      if (!input) {
        inputs.emplace_back();
        continue;
      }
      if (input->producer() && !input->initializer()) return false;
      inputs.push_back(constant_of(input));
      if (!inputs.back()) return false;
      if (input->uses().size() == 1 && !input->is_graph_output()) freed += inputs.back()->byte_count();
    }
    std::uint64_t made = 0;
    for (const Value* output : node.outputs()) {
      const auto dims = static_dims(output);
      if (!dims) return false;
      made += make_tensor({}, output->type.element, *dims, nullptr).byte_count();
    }
    if (made > freed && made - freed > most_growth) {
      run_.miss(node, "its result is larger than what it is made from by " + std::to_string(made - freed) + " bytes");
      return false;
    }
    std::optional<std::vector<Tensor>> outputs = evaluate(node, run_.opset(), inputs);
    if (!outputs) {
      run_.miss(node, "its inputs are constant, but it is not computed here");
      return false;
    }
    Patch patch(run_.opset());
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      (*outputs)[i].name = node.output(i)->name();
      patch.replace(node.output(i), patch.constant(std::move((*outputs)[i])));
    }
    return run_.apply(std::move(patch), node);
  }

  // Whole numbers that shapes give. Floats only from a Cast: other arithmetic on them may round, or give -0.
  bool fold_known(Node& node) {
    Patch patch(run_.opset());
    for (Value* output : node.outputs()) {
      if (!output || output->is_unused()) continue;
      const KnownValue* value = known_.value_of(*output);
      if (!value || !value->is_constant()) return false;
      if (!is_integer(value->type) && value->type != DataType::boolean &&
          (node.op_type != "Cast" || value->type != DataType::float32)) {
        return false;
      }
      const std::vector<std::int64_t> elements = value->constants();
      Tensor tensor = make_tensor(output->name(), DataType::int64, value->dims, owned_values(elements));
      if (value->type == DataType::float32) {
        const std::vector<float> reals(elements.begin(), elements.end());
        tensor.data = owned_values(reals);
      } else if (value->type != DataType::int64) {
        tensor.data = cast(tensor.data, DataType::int64, value->type);
      }
      tensor.type = value->type;
      patch.replace(output, patch.constant(std::move(tensor)));
    }
    return !patch.empty() && run_.apply(std::move(patch), node);
  }

  bool fold_reshape(Node& node) {
    if (node.op_type != "Reshape" || node.integer("allowzero", 0) != 0 || is_constant(node.input(1))) return false;
    const Value *x = node.input(0), *shape = node.input(1), *output = node.output(0);
    if (!x || !shape || !output || !x->type.shape) return false;
    const KnownValue* value = known_.value_of(*shape);
    std::optional<std::vector<std::int64_t>> target;
    if (value) target = reshape_target(*x->type.shape, *value);
    if (!target && output->type.shape) target = reshape_target(*x->type.shape, *output->type.shape);
    if (!target) {
      run_.miss(node, "more than one dimension of its shape is not known");
      return false;
    }
    Patch patch(run_.opset());
    patch.set_input(&node, 1, patch.integers(*target));
    return run_.apply(std::move(patch), node);
  }

  // The branch that is taken stands in the place of the If.
  bool fold_branch(Node& node) {
    if (node.op_type != "If" || !node.input(0)) return false;
    const auto condition = scalar_of(node.input(0));
    if (!condition) return false;
    const Attribute* attribute = node.attribute(*condition != 0 ? "then_branch" : "else_branch");
    const auto* held = attribute ? std::get_if<std::unique_ptr<Graph>>(&attribute->value) : nullptr;
    if (!held || (*held)->outputs().size() != node.outputs().size()) return false;
    Graph& branch = **held;
    Patch patch(run_.opset());
    std::unordered_map<const Value*, PatchValue> moved;
    for (Value* value : branch.initializers()) moved[value] = patch.constant(*value->initializer());
    const auto outside = [&](Value* value) -> PatchValue {
      const auto found = moved.find(value);
      return found == moved.end() ? PatchValue(value) : found->second;
    };
    for (const Node* inner : branch.nodes()) {
      if (!inner->subgraphs().empty() || !inner->overload.empty()) {
        run_.miss(node, "its branch has sub-graphs or overloaded functions itself");
        return false;
      }
      std::vector<PatchValue> inputs;
      for (Value* input : inner->inputs()) inputs.push_back(input ? outside(input) : PatchValue());
      PatchNode copy = patch.copy(*inner, std::move(inputs));
      for (std::uint32_t i = 0; i < inner->outputs().size(); ++i) {
        const Value* output = inner->output(i);
        if (output) moved[output] = copy.typed(output->type, i)[i];
      }
    }
    for (std::size_t i = 0; i < branch.outputs().size(); ++i) {
      if (!node.output(i)) continue;
      PatchValue result = outside(branch.outputs()[i]);
      if (result.existing() && node.output(i)->is_graph_output()) result = patch.op("Identity", {result});
      patch.replace(node.output(i), result);
    }
    if (!run_.apply(std::move(patch), node)) return false;
    known_.forget();  // the nodes that came are followed in the next round
    return true;
  }

  PassRun& run_;
  KnownValues known_;
};

Status run(PassRun& run) {
  Folder(run).fold(*run.model().graph);
  return {};
}

}  // namespace

extern const Pass constant_folding;
const Pass constant_folding{.name = "constant-folding",
                            .category = "graph",
                            .summary = "What can be computed before the model runs is",
                            .by_default = true,
                            .run = run};

}  // namespace mk
