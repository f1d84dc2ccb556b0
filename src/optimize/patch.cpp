#include "optimize/patch.h"

namespace mk {

NewNode& PatchNode::node() const { return patch_->nodes_[static_cast<std::size_t>(index_)]; }

PatchValue PatchNode::operator[](std::uint32_t output) const {
  NewNode& made = node();
  if (output >= made.outputs.size()) made.outputs.resize(output + 1);
  if (!made.outputs[output]) made.outputs[output].emplace();
  PatchValue value;
  value.node_ = index_;
  value.output_ = output;
  return value;
}

PatchNode Patch::op(std::string_view name, std::vector<PatchValue> inputs) {
  const auto is_absent = [](const PatchValue& v) { return !v.existing_ && v.node_ < 0 && v.constant_ < 0; };
  while (!inputs.empty() && is_absent(inputs.back())) inputs.pop_back();
  NewNode& node = nodes_.emplace_back();
  const std::size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) node.domain = name.substr(0, dot);
  node.op_type = name.substr(dot == std::string_view::npos ? 0 : dot + 1);
  node.inputs = std::move(inputs);
  node.outputs.emplace_back(Type{});
  return {*this, static_cast<std::int32_t>(nodes_.size() - 1)};
}

PatchNode Patch::copy(const Node& original, std::vector<PatchValue> inputs) {
  PatchNode made = op(original.op_type, std::move(inputs));
  NewNode& node = nodes_.back();
  node.domain = original.domain;
  node.op_type = original.op_type;
  node.name = original.name;
  node.metadata = original.metadata;
  node.outputs.clear();
  for (const Value* output : original.outputs()) {
    node.outputs.push_back(output ? std::optional(Type{}) : std::nullopt);
  }
  for (const Attribute& attribute : original.attributes()) made.with(attribute);
  return made;
}

PatchValue Patch::constant(Tensor tensor) {
  constants_.push_back(std::move(tensor));
  PatchValue value;
  value.constant_ = static_cast<std::int32_t>(constants_.size() - 1);
  return value;
}

PatchValue Patch::integers(const std::vector<std::int64_t>& values) { return constant(int64_tensor({}, values)); }

PatchValue Patch::scalar(DataType type, double value) {
  Tensor tensor = scalar_tensor({}, static_cast<float>(value));
  if (type == DataType::float64) tensor = make_tensor({}, type, {}, owned_values(std::vector<double>{value}));
  if (type != tensor.type) {
    tensor.data = cast(tensor.data, DataType::float32, type);
    tensor.type = type;
  }
  return constant(std::move(tensor));
}

void Patch::replace(Value* old, PatchValue with) { replaced_.emplace_back(old, with); }

void Patch::set_input(Node* node, std::uint32_t input, PatchValue value) { inputs_.push_back({node, input, value}); }

void Patch::set_attribute(Node* node, Attribute attribute) { attributes_.emplace_back(node, std::move(attribute)); }

}  // namespace mk
