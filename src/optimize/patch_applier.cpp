#include "optimize/patch_applier.h"

#include <algorithm>
#include <string>
#include <unordered_set>

namespace mk {
namespace {

// Why a value of type `made` cannot stand for one of type `old`.
std::optional<std::string> mismatch(const Type& old, const Type& made) {
  if (old.kind == Type::Kind::none || made.kind == Type::Kind::none) return std::nullopt;
  const auto differs = [&] { return "makes " + to_string(made) + " where there is " + to_string(old); };
  if (old.kind != made.kind || old.element != made.element) return differs();
  if (!old.shape || !made.shape) return std::nullopt;
  if (old.shape->size() != made.shape->size()) return differs();
  for (std::size_t i = 0; i < old.shape->size(); ++i) {
    const Dim &a = (*old.shape)[i], &b = (*made.shape)[i];
    if (a.is_known() && b.is_known() && a.value != b.value) return differs();
  }
  return std::nullopt;
}

// The more precise of both; symbols are those of `old`.
void refine(Type& made, const Type& old) {
  if (made.kind == Type::Kind::none || !made.shape) {
    made = old;
    return;
  }
  if (!old.shape) return;
  for (std::size_t i = 0; i < old.shape->size(); ++i) {
    Dim& dim = (*made.shape)[i];
    const Dim& before = (*old.shape)[i];
    if (before.is_known() || (!dim.is_known() && before.is_symbolic())) dim = before;
  }
}

std::string stem_of(const Node& anchor, const std::string& kind) {
  const Value* output = anchor.output(0);
  return (output ? output->name() : anchor.name) + "_" + kind;
}

}  // namespace

Value* PatchApplier::resolve(const PatchValue& value, const Made& made) {
  if (value.existing_) return value.existing_;
  if (value.constant_ >= 0) return made.constants[static_cast<std::size_t>(value.constant_)];
  return value.node_ >= 0 ? made.nodes[static_cast<std::size_t>(value.node_)]->output(value.output_) : nullptr;
}

std::optional<std::string> PatchApplier::make(Patch& patch, Node& anchor, Made& made) {
  Graph& graph = *anchor.graph();
  for (Tensor& tensor : patch.constants_) {
    tensor.name = graph.unique_name(tensor.name.empty() ? stem_of(anchor, "constant") : tensor.name);
    made.constants.push_back(graph.add_initializer(std::move(tensor)));
  }
  for (NewNode& wanted : patch.nodes_) {
    if (standard_only_ && !wanted.domain.empty()) {
      return "makes " + wanted.domain + '.' + wanted.op_type + ", and the target takes standard operators only";
    }
    if (!wanted.domain.empty() && model_.opset(wanted.domain) == 0) model_.set_opset(wanted.domain, 1);
    std::vector<Value*> inputs, outputs;
    for (const PatchValue& input : wanted.inputs) inputs.push_back(resolve(input, made));
    for (const auto& type : wanted.outputs) {
      outputs.push_back(type ? graph.add_value(graph.unique_name(stem_of(anchor, wanted.op_type)), *type) : nullptr);
    }
    Node* node = graph.add_node(wanted.op_type, std::move(inputs), std::move(outputs), &anchor);
    node->domain = wanted.domain;
    for (Attribute& attribute : wanted.attributes) node->set_attribute(std::move(attribute));
    node->metadata = wanted.metadata ? std::move(*wanted.metadata) : anchor.metadata;
    node->name = wanted.name;
    if (node->name.empty() && !anchor.name.empty()) node->name = anchor.name + '/' + wanted.op_type;
    made.nodes.push_back(node);
    if (const auto inferred = inference_.infer(*node); !inferred) {
      return "makes a node that cannot run: " + inferred.error().to_string();
    }
  }
  return std::nullopt;
}

void PatchApplier::unmake(const Made& made, Graph& graph) {
  for (auto node = made.nodes.rbegin(); node != made.nodes.rend(); ++node) graph.erase(*node);
  for (Value* constant : made.constants) graph.erase_unused(constant);
}

std::optional<std::string> PatchApplier::check(const Patch& patch, const Made& made) const {
  for (const auto& [old, replacement] : patch.replaced_) {
    const Value* with = resolve(replacement, made);
    if (!with) return "replaces " + old->name() + " by nothing";
    if (with == old) return "replaces " + old->name() + " by itself";
    if (auto why = mismatch(old->type, with->type)) return *why + " (" + old->name() + ')';
    if (!old->is_graph_output()) continue;
    const bool is_new = !replacement.existing();
    if (!is_new && (with->is_graph_output() || !with->producer() || with->graph() != old->graph())) {
      return "would rename " + with->name() + ", for " + old->name() + " is a graph output";
    }
    if (replacement.constant_ >= 0 && old->graph()->parent()) return "would make a constant a sub-graph's output";
  }
  return std::nullopt;
}

std::optional<std::string> PatchApplier::change_nodes(Patch& patch, const Made& made, std::vector<Value*>& released) {
  std::vector<Patch::InputChange> before;
  std::vector<Node*> changed;
  for (const Patch::InputChange& change : patch.inputs_) {
    Value* old = change.node->input(change.input);
    before.push_back({change.node, change.input, old});
    change.node->set_input(change.input, resolve(change.value, made));
    changed.push_back(change.node);
  }
  std::vector<std::pair<Node*, std::optional<Attribute>>> attributes;
  for (auto& [node, attribute] : patch.attributes_) {
    const Attribute* old = node->attribute(attribute.name);
    const std::string name = attribute.name;
    attributes.emplace_back(node, old ? std::optional(old->clone()) : std::nullopt);
    if (!attributes.back().second) attributes.back().second.emplace().name = name;
    node->set_attribute(std::move(attribute));
    changed.push_back(node);
  }
  for (Node* node : changed) {
    std::vector<Type> types;
    for (Value* output : node->outputs()) types.push_back(output ? output->type : Type{});
    const auto inferred = inference_.infer(*node);
    if (inferred) continue;
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (node->output(i)) node->output(i)->type = types[i];
    }
    for (auto change = before.rbegin(); change != before.rend(); ++change) {
      change->node->set_input(change->input, change->value.existing());
    }
    for (auto& [held, attribute] : attributes) {
      const bool was_there = attribute->kind != Attribute::Kind::undefined;
      was_there ? held->set_attribute(std::move(*attribute)) : held->erase_attribute(attribute->name);
    }
    return "makes a node that cannot run: " + inferred.error().to_string();
  }
  for (const Patch::InputChange& change : before) {
    if (change.value.existing()) released.push_back(change.value.existing());
  }
  return std::nullopt;
}

void PatchApplier::take_place(Value* old, Value* with, std::vector<Value*>& released) {
  refine(with->type, old->type);
  const bool was_output = old->is_graph_output();
  const std::string name = old->name();
  const bool is_new = with->producer() && !index_.has(with->producer());
  Graph& graph = *old->graph();
  graph.replace_uses(old, with, /*outputs=*/true);
  if (!was_output && !is_new) {
    released.push_back(old);
    return;
  }
  graph.rename(old, graph.unique_name(name + "_replaced"));
  with->graph()->rename(with, name);
  released.push_back(old);
}

std::optional<std::string> PatchApplier::apply(Patch patch, Node& anchor) {
  Made made;
  Graph& graph = *anchor.graph();
  const auto imports = model_.opset_imports;
  std::optional<std::string> refused = make(patch, anchor, made);
  if (!refused) refused = check(patch, made);
  std::vector<Value*> released;
  if (!refused) refused = change_nodes(patch, made, released);
  if (refused) {
    unmake(made, graph);
    model_.opset_imports = imports;
    return refused;
  }
  const std::string anchor_name = anchor.name;
  for (const auto& [old, replacement] : patch.replaced_) {
    Value* with = resolve(replacement, made);
    take_place(old, with, released);
  }
  for (Node* node : made.nodes) {
    if (!node->name.empty()) node->name = index_.unique_name(node->name);
    index_.add(node);
  }
  released.insert(released.end(), made.constants.begin(), made.constants.end());
  Node* const heir = patch.nodes_.empty() ? nullptr : heir_of(patch, made);
  sweep(std::move(released));
  if (heir && !anchor_name.empty() && index_.has(heir) && !index_.has(&anchor)) index_.rename(heir, anchor_name);
  for (std::size_t i = 0; i < made.nodes.size(); ++i) {  // a copy takes the name of its original, which is gone now
    const std::string& name = patch.nodes_[i].name;
    Node* node = made.nodes[i];
    if (!name.empty() && index_.has(node) && node->name != name && index_.unique_name(name) == name) {
      index_.rename(node, name);
    }
  }
  return std::nullopt;
}

// The node that keeps the name of the one it stands for: the first that makes what is replaced.
Node* PatchApplier::heir_of(const Patch& patch, const Made& made) {
  for (const auto& [old, replacement] : patch.replaced_) {
    if (replacement.node_ < 0) continue;
    const auto index = static_cast<std::size_t>(replacement.node_);
    if (patch.nodes_[index].name.empty()) return made.nodes[index];
  }
  return nullptr;
}

void PatchApplier::sweep(std::vector<Value*> candidates) {
  std::unordered_set<Value*> gone;  // a value may be a candidate more than once
  while (!candidates.empty()) {
    Value* value = candidates.back();
    candidates.pop_back();
    if (gone.contains(value) || !value->is_unused()) continue;
    Graph& graph = *value->graph();
    if (Node* node = value->producer()) {
      const auto in_use = [](const Value* output) { return output && !output->is_unused(); };
      if (std::any_of(node->outputs().begin(), node->outputs().end(), in_use)) continue;
      for (Value* input : node->inputs()) {
        if (input) candidates.push_back(input);
      }
      for (Graph* inner : node->subgraphs()) {
        for_each_node(*inner, [&](Node& held) {
          for (Value* input : held.inputs()) {
            if (input && input->graph() == &graph) candidates.push_back(input);
          }
        });
      }
      for (Value* output : node->outputs()) gone.insert(output);
      index_.erase(node);
      graph.erase(node);
    } else if (value->initializer() && !value->is_graph_input()) {
      gone.insert(value);
      graph.erase_unused(value);
    }
  }
}

}  // namespace mk
