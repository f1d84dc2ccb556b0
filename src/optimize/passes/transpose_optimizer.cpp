// Transposes are moved towards the end, through operators that do not mind the order of dimensions, until they meet
// others that they cancel or merge with. Only where fewer Transposes are left than there were: for each Transpose the
// whole region behind it is looked at, and then changed at once.

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/permuted.h"
#include "optimize/pass.h"
#include "optimize/transpose_rules.h"

namespace mk {
namespace {

constexpr std::size_t largest_region = 200;  // nodes

bool is_transpose(const Node* node) {
  return node && node->op_type == "Transpose" && (node->domain.empty() || node->domain == "ai.onnx");
}

class Region {
 public:
  Region(Node& seed, const Permutation& perm, std::int64_t opset) : seed_(seed), opset_(opset) {
    add_source(seed, perm);
    grow();
  }

  // Transposes that go less those that come.
  int gain() const {
    int before = 0, after = 0;
    for (const Node* source : sources_) {
      ++before;
      after += is_needed_in_place(source->output(0)) ? 1 : 0;
    }
    for (const Node* end : ends_) {
      ++before;
      after += is_identity(result_of(*end)) ? 0 : 1;
    }
    for (const Node* node : nodes_) {
      for (const Value* output : node->outputs()) {
        after += output && is_needed_in_place(output) && !is_identity(order_of(output)) ? 1 : 0;
      }
    }
    return before - after;
  }

  // Leaves out nodes from which no Transpose is reached.
  void prune() {
    std::unordered_set<const Node*> useful;
    for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
      const auto leads_on = [&](const Value* output) {
        return output && std::any_of(output->uses().begin(), output->uses().end(),
                                     [&](const Use& use) { return useful.contains(use.node) || is_end(use.node); });
      };
      if (std::any_of((*node)->outputs().begin(), (*node)->outputs().end(), leads_on)) useful.insert(*node);
    }
    std::erase_if(nodes_, [&](const Node* node) { return !useful.contains(node); });
    for (auto form = forms_.begin(); form != forms_.end();) {
      form = useful.contains(form->first) ? std::next(form) : forms_.erase(form);
    }
    std::erase_if(ends_, [&](const Node* end) { return !is_lane(end->input(0)); });
    std::erase_if(sources_, [&](const Node* source) {
      if (source == &seed_) return false;
      const auto& uses = source->output(0)->uses();
      return std::none_of(uses.begin(), uses.end(),
                          [&](const Use& use) { return forms_.contains(use.node) || is_end(use.node); });
    });
  }

  Patch patch() const {
    Patch patch(opset_);
    std::unordered_map<const Value*, PatchValue> moved;
    for (const Node* source : sources_) moved[source->output(0)] = source->input(0);
    for (const Node* node : nodes_) {
      const ReorderedNode& form = forms_.at(node);
      std::vector<PatchValue> inputs;
      for (Value* input : node->inputs()) inputs.emplace_back(input);
      const Permutation& perm = order_of(node->input(form.moved.front()));
      for (const std::size_t i : form.moved) inputs[i] = moved.at(node->input(i));
      for (const std::size_t i : form.constant) inputs[i] = reordered_constant(patch, node->input(i), perm);
      for (const auto& [i, values] : form.integers) {
        if (inputs.size() <= i) inputs.resize(i + 1);
        inputs[i] = patch.integers(values);
      }
      PatchNode copy = patch.copy(*node, std::move(inputs));
      for (const auto& [name, value] : form.axis) copy.with(name, value);
      for (const auto& [name, values] : form.axes) copy.with(name, values);
      for (std::uint32_t i = 0; i < node->outputs().size(); ++i) {
        if (node->output(i)) moved[node->output(i)] = copy[i];
      }
    }
    for (const Node* end : ends_) {
      patch.replace(end->output(0), transposed_value(patch, moved.at(end->input(0)), result_of(*end)));
    }
    for (const Node* node : nodes_) {
      for (Value* output : node->outputs()) {
        if (!output || !is_needed_in_place(output)) continue;
        patch.replace(output, transposed_value(patch, moved.at(output), order_of(output)));
      }
    }
    return patch;
  }

 private:
  void add_source(Node& transpose, const Permutation& perm) {
    sources_.push_back(&transpose);
    orders_[transpose.output(0)] = perm;
    pending_.push_back(transpose.output(0));
  }

  void grow() {
    while (!pending_.empty()) {
      const Value* lane = pending_.back();
      pending_.pop_back();
      const std::vector<Use> uses = lane->uses();
      for (const Use& use : uses) visit(use);
    }
  }

  void visit(const Use& use) {
    Node& node = *use.node;
    if (node.graph() != seed_.graph() || forms_.contains(&node) || nodes_.size() >= largest_region) return;
    if (is_transpose(&node)) {
      if (!is_end(&node) && std::find(sources_.begin(), sources_.end(), &node) == sources_.end()) end(node);
      return;
    }
    const Permutation perm = order_of(node.input(use.input));
    auto form = reordered(node, use.input, perm, opset_);
    if (!form || form->moved.empty()) return;
    std::vector<Node*> joined;
    for (const std::size_t i : form->moved) {
      Value* input = node.input(i);
      if (is_lane(input)) {
        if (order_of(input) != perm) return;
        continue;
      }
      Node* producer = input->producer();  // another Transpose that may join
      if (!is_transpose(producer) || producer->graph() != seed_.graph() || permutation_of(*producer) != perm) return;
      joined.push_back(producer);
    }
    for (Node* source : joined) {
      if (!is_lane(source->output(0))) add_source(*source, perm);
    }
    for (Value* output : node.outputs()) {
      if (!output) continue;
      orders_[output] = form->results;
      if (!is_identity(form->results)) pending_.push_back(output);
    }
    nodes_.push_back(&node);
    forms_.emplace(&node, std::move(*form));
  }

  void end(Node& transpose) {
    const auto perm = permutation_of(transpose);
    if (!perm || perm->size() != order_of(transpose.input(0)).size()) return;
    // A graph output needs a node that makes it.
    const bool cancels = is_identity(composed(order_of(transpose.input(0)), *perm));
    const bool is_new = !is_transpose(transpose.input(0)->producer());
    if (cancels && transpose.output(0)->is_graph_output() && !is_new) return;
    ends_.push_back(&transpose);
  }

  bool is_end(const Node* node) const { return std::find(ends_.begin(), ends_.end(), node) != ends_.end(); }
  bool is_lane(const Value* value) const {
    const Node* producer = value->producer();
    return producer &&
           (forms_.contains(producer) || std::find(sources_.begin(), sources_.end(), producer) != sources_.end());
  }
  const Permutation& order_of(const Value* lane) const { return orders_.at(lane); }
  Permutation result_of(const Node& end) const { return composed(order_of(end.input(0)), *permutation_of(end)); }

  // Whether something outside the region uses it in the old order.
  bool is_needed_in_place(const Value* value) const {
    if (value->is_graph_output()) return true;
    return std::any_of(value->uses().begin(), value->uses().end(), [&](const Use& use) {
      const auto form = forms_.find(use.node);
      if (form == forms_.end()) return !is_end(use.node);
      const auto& moved = form->second.moved;
      return std::find(moved.begin(), moved.end(), use.input) == moved.end();
    });
  }

  static PatchValue transposed_value(Patch& patch, PatchValue value, const Permutation& perm) {
    if (is_identity(perm)) return value;
    return patch.op("Transpose", {value}).with("perm", perm);
  }

  // The constant whose Transpose by `perm` is the old one, which may have fewer dims.
  static PatchValue reordered_constant(Patch& patch, const Value* value, const Permutation& perm) {
    Tensor tensor = *constant_of(value);
    tensor.dims.insert(tensor.dims.begin(), perm.size() - tensor.dims.size(), 1);
    return patch.constant(permuted(tensor, inverse(perm)));
  }

  Node& seed_;
  std::int64_t opset_;
  std::vector<Node*> sources_;                            // Transposes that the region begins at
  std::vector<Node*> nodes_;                              // in an order that they can be computed in
  std::vector<Node*> ends_;                               // Transposes that it ends at
  std::unordered_map<const Value*, Permutation> orders_;  // value = Transpose(new value, order)
  std::unordered_map<const Node*, ReorderedNode> forms_;  // of nodes_
  std::vector<const Value*> pending_;
};

Status run(PassRun& run) {
  const std::vector<Node*>& nodes = run.index().of("Transpose");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    Node* node = nodes[i];
    if (!node || !node->input(0) || is_constant(node->input(0)) || node->output(0)->is_unused()) continue;
    const auto perm = permutation_of(*node);
    if (!perm || is_identity(*perm)) continue;
    Region region(*node, *perm, run.opset());
    if (region.gain() <= 0) region.prune();
    if (region.gain() <= 0) {
      run.miss(*node, "no Transpose behind it cancels it");
      continue;
    }
    run.apply(region.patch(), *node);
  }
  return {};
}

}  // namespace

extern const Pass transpose_optimizer;
const Pass transpose_optimizer{.name = "transpose-optimizer",
                               .category = "layout",
                               .summary = "Transposes move towards each other and cancel",
                               .run = run};

}  // namespace mk
