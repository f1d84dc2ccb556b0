#include <algorithm>
#include <cassert>

#include "graph/ir.h"

namespace mk {

void Value::add_use(Node* node, std::uint32_t input) {
  node->use_slots_[input] = static_cast<std::uint32_t>(uses_.size());
  uses_.push_back({node, input});
}

void Value::remove_use(Node* node, std::uint32_t input) {
  const std::uint32_t slot = node->use_slots_[input];
  assert(slot < uses_.size() && uses_[slot] == (Use{node, input}));
  uses_[slot] = uses_.back();
  uses_[slot].node->use_slots_[uses_[slot].input] = slot;
  uses_.pop_back();
}

const Attribute* Node::attribute(std::string_view wanted) const {
  for (const Attribute& attribute : attributes_) {
    if (attribute.name == wanted) return &attribute;
  }
  return nullptr;
}

namespace {

template <typename Visit>
void for_each_graph(const Attribute& attribute, Visit&& visit) {
  if (const auto* one = std::get_if<std::unique_ptr<Graph>>(&attribute.value)) {
    if (*one) visit(**one);
  } else if (const auto* many = std::get_if<std::vector<std::unique_ptr<Graph>>>(&attribute.value)) {
    for (const auto& graph : *many) visit(*graph);
  }
}

}  // namespace

// Tells the graphs in an attribute whose they are now.
void Node::adopt(Attribute& attribute) {
  for_each_graph(attribute, [&](Graph& graph) {
    if (graph.parent_ && graph.parent_->graph_) std::erase(graph.parent_->graph_->children_, &graph);
    graph.parent_ = this;
    graph_->children_.push_back(&graph);
  });
}

void Node::set_attribute(Attribute attribute) {
  adopt(attribute);
  for (Attribute& old : attributes_) {
    if (old.name == attribute.name) {
      old = std::move(attribute);
      return;
    }
  }
  attributes_.push_back(std::move(attribute));
}

void Node::append_attribute(Attribute attribute) {
  adopt(attribute);
  attributes_.push_back(std::move(attribute));
}

void Node::erase_attribute(std::string_view wanted) {
  std::erase_if(attributes_, [&](const Attribute& attribute) { return attribute.name == wanted; });
}

std::int64_t Node::integer(std::string_view wanted, std::int64_t otherwise) const {
  const Attribute* found = attribute(wanted);
  const auto* value = found ? std::get_if<std::int64_t>(&found->value) : nullptr;
  return value ? *value : otherwise;
}

float Node::real(std::string_view wanted, float otherwise) const {
  const Attribute* found = attribute(wanted);
  const auto* value = found ? std::get_if<float>(&found->value) : nullptr;
  return value ? *value : otherwise;
}

std::string Node::string(std::string_view wanted, std::string_view otherwise) const {
  const Attribute* found = attribute(wanted);
  const auto* value = found ? std::get_if<std::string>(&found->value) : nullptr;
  return value ? *value : std::string(otherwise);
}

const std::vector<std::int64_t>* Node::integers(std::string_view wanted) const {
  const Attribute* found = attribute(wanted);
  return found ? std::get_if<std::vector<std::int64_t>>(&found->value) : nullptr;
}

std::vector<Graph*> Node::subgraphs() const {
  std::vector<Graph*> graphs;
  for (const Attribute& attribute : attributes_) {
    for_each_graph(attribute, [&](Graph& graph) { graphs.push_back(&graph); });
  }
  return graphs;
}

std::string Node::label() const {
  if (!name.empty()) return name;
  for (const Value* value : outputs_) {
    if (value) return op_type + " -> " + value->name();
  }
  return op_type;
}

bool Node::uses_agree() const {
  if (use_slots_.size() != inputs_.size()) return false;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i]) continue;
    const std::vector<Use>& uses = inputs_[i]->uses();
    const Use own{const_cast<Node*>(this), static_cast<std::uint32_t>(i)};
    if (use_slots_[i] >= uses.size() || !(uses[use_slots_[i]] == own)) return false;
  }
  return true;
}

void Node::set_input(std::size_t i, Value* value) {
  if (i >= inputs_.size()) resize_inputs(i + 1);
  if (inputs_[i] == value) return;
  const auto index = static_cast<std::uint32_t>(i);
  if (inputs_[i]) inputs_[i]->remove_use(this, index);
  inputs_[i] = value;
  if (value) value->add_use(this, index);
}

void Node::resize_inputs(std::size_t count) {
  for (std::size_t i = count; i < inputs_.size(); ++i) {
    if (inputs_[i]) inputs_[i]->remove_use(this, static_cast<std::uint32_t>(i));
  }
  inputs_.resize(count, nullptr);
  use_slots_.resize(count, 0);
}

void Node::drop_uses(bool captured_only) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] && !(captured_only && inputs_[i]->graph_ == graph_)) {
      inputs_[i]->remove_use(this, static_cast<std::uint32_t>(i));
      inputs_[i] = nullptr;
    }
  }
}

}  // namespace mk
