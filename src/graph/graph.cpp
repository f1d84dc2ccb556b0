#include <algorithm>
#include <cassert>

#include "graph/ir.h"

namespace mk {

// Sub-graphs take back their uses of values here, which touches the other users of those values: sub-graphs go first,
// then nodes, then values.
Graph::~Graph() {
  if (parent_ && parent_->graph_) std::erase(parent_->graph_->children_, this);
  for (Graph* child : children_) child->parent_ = nullptr;
  children_.clear();
  for (const auto& node : nodes_) node->drop_uses(/*captured_only=*/true);
  for (const auto& node : nodes_) node->attributes_.clear();
  for (Value* output : outputs_) --output->output_uses_;
  order_.clear();
  nodes_.clear();
}

Value* Graph::find(std::string_view wanted) const {
  const auto found = values_.find(wanted);
  return found == values_.end() ? nullptr : found->second.get();
}

Value* Graph::resolve(std::string_view wanted) const {
  for (const Graph* graph = this; graph; graph = graph->outer()) {
    if (Value* value = graph->find(wanted)) return value;
  }
  return nullptr;
}

bool Graph::tree_has(std::string_view wanted) const {
  if (find(wanted)) return true;
  return std::any_of(children_.begin(), children_.end(), [&](const Graph* child) { return child->tree_has(wanted); });
}

std::string Graph::unique_name(std::string_view stem) {
  Graph* root = this;
  while (root->outer()) root = root->outer();
  if (!stem.empty() && !root->tree_has(stem)) return std::string(stem);
  const std::string base(stem.empty() ? std::string_view("value") : stem);
  std::uint64_t& next = root->next_suffix_[base];
  while (true) {
    std::string candidate = base + '_' + std::to_string(++next);
    if (!root->tree_has(candidate)) return candidate;
  }
}

Value* Graph::add_value(std::string value_name, Type type) {
  auto value = std::make_unique<Value>();
  value->name_ = value_name.empty() ? unique_name({}) : std::move(value_name);
  value->graph_ = this;
  value->type = std::move(type);
  Value* result = value.get();
  [[maybe_unused]] const bool is_new = values_.emplace(result->name_, std::move(value)).second;
  assert(is_new && "a value of that name exists");
  return result;
}

Value* Graph::add_input(std::string value_name, Type type) {
  Value* value = add_value(std::move(value_name), std::move(type));
  mark_input(value);
  return value;
}

Value* Graph::add_initializer(Tensor tensor) {
  Value* value = add_value(tensor.name);
  set_initializer(value, std::move(tensor));
  return value;
}

void Graph::set_initializer(Value* value, Tensor tensor) {
  assert(value->graph_ == this && !value->producer_);
  if (!value->initializer_) initializers_.push_back(value);
  tensor.name = value->name_;
  value->type = Type::tensor(tensor.type, static_shape(tensor.dims));
  value->initializer_ = std::make_unique<Tensor>(std::move(tensor));
}

void Graph::remove_initializer(Value* value) {
  assert(value->graph_ == this && value->initializer_);
  value->initializer_.reset();
  std::erase(initializers_, value);
}

void Graph::mark_input(Value* value) {
  assert(value->graph_ == this && !value->producer_ && !value->is_input_);
  value->is_input_ = true;
  inputs_.push_back(value);
}

void Graph::mark_output(Value* value) {
  ++value->output_uses_;
  outputs_.push_back(value);
}

void Graph::set_output(std::size_t index, Value* value) {
  assert(index < outputs_.size());
  --outputs_[index]->output_uses_;
  outputs_[index] = value;
  ++value->output_uses_;
}

void Graph::rename(Value* value, std::string new_name) {
  assert(value->graph_ == this && !new_name.empty());
  if (value->name_ == new_name) return;
  assert(!find(new_name) && "a value of that name exists");
  auto entry = values_.extract(value->name_);
  value->name_ = std::move(new_name);
  if (value->initializer_) value->initializer_->name = value->name_;
  entry.key() = value->name_;
  values_.insert(std::move(entry));
}

Node* Graph::add_node(std::string op_type, std::vector<Value*> inputs, std::vector<Value*> outputs, Node* before) {
  assert(!before || before->graph_ == this);
  nodes_.push_back(std::unique_ptr<Node>(new Node));
  Node* node = nodes_.back().get();
  node->op_type = std::move(op_type);
  node->graph_ = this;
  node->slot_ = nodes_.size() - 1;
  node->position_ = order_.insert(before ? before->position_ : order_.end(), node);
  node->inputs_ = std::move(inputs);
  node->use_slots_.resize(node->inputs_.size());
  for (std::size_t i = 0; i < node->inputs_.size(); ++i) {
    if (node->inputs_[i]) node->inputs_[i]->add_use(node, static_cast<std::uint32_t>(i));
  }
  node->outputs_ = std::move(outputs);
  for (std::size_t i = 0; i < node->outputs_.size(); ++i) {
    Value* output = node->outputs_[i];
    if (!output) continue;
    assert(output->graph_ == this && !output->producer_ && !output->is_input_ && !output->initializer_);
    output->producer_ = node;
    output->output_index_ = static_cast<std::uint32_t>(i);
  }
  return node;
}

Value* Graph::add_op(std::string op_type, std::vector<Value*> inputs, std::string_view output_name, Node* before) {
  Value* output = add_value(unique_name(output_name.empty() ? std::string_view(op_type) : output_name));
  add_node(std::move(op_type), std::move(inputs), {output}, before);
  return output;
}

void Graph::move_before(Node* node, Node* before) {
  assert(node->graph_ == this && before->graph_ == this);
  if (node != before) order_.splice(before->position_, order_, node->position_);
}

void Graph::retarget_outputs(Value* from, Value* to) {
  for (Value*& output : outputs_) {
    if (output != from) continue;
    output = to;
    --from->output_uses_;
    ++to->output_uses_;
  }
  for (Graph* child : children_) child->retarget_outputs(from, to);
}

void Graph::replace_uses(Value* from, Value* to, bool outputs) {
  if (from == to) return;
  while (!from->uses_.empty()) {
    const Use use = from->uses_.back();
    use.node->set_input(use.input, to);
  }
  if (outputs && from->output_uses_ > 0) from->graph_->retarget_outputs(from, to);
}

void Graph::erase(Node* node) {
  assert(node->graph_ == this);
  node->attributes_.clear();
  node->drop_uses(/*captured_only=*/false);
  for (Value* output : node->outputs_) {
    if (!output) continue;
    assert(output->is_unused() && "a node whose outputs are used cannot be erased");
    values_.erase(output->name_);
  }
  order_.erase(node->position_);
  const std::size_t slot = node->slot_;
  std::swap(nodes_[slot], nodes_.back());
  nodes_[slot]->slot_ = slot;
  nodes_.pop_back();
}

void Graph::erase_unused(Value* value) {
  assert(value->graph_ == this && value->is_unused() && !value->producer_);
  if (value->is_input_) std::erase(inputs_, value);
  if (value->initializer_) std::erase(initializers_, value);
  values_.erase(value->name_);
}

}  // namespace mk
