#include "nn/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mk::nn {
namespace {

bool is_index(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// What the last part of a path adds to a tag: Class, or Class.N for an item of a list.
std::string tag_segment(const Module& module) {
  const std::string_view last = std::string_view(module.name).substr(module.name.rfind('.') + 1);
  return is_index(last) ? fmt::format("{}.{}", module.class_name, last) : module.class_name;
}

}  // namespace

const Shape& Value::shape() const {
  static const Shape none;
  return value_ && value_->type.shape ? *value_->type.shape : none;
}

Dim Value::dim(int axis) const {
  const Shape& dims = shape();
  const int index = axis < 0 ? axis + static_cast<int>(dims.size()) : axis;
  return index >= 0 && index < static_cast<int>(dims.size()) ? dims[static_cast<std::size_t>(index)] : Dim{};
}

Scope Scope::operator[](std::string_view name) const { return {*builder_, builder_->child(*module_, name, {}, true)}; }

Scope Scope::operator()(std::string_view name, std::string_view class_name) const {
  return {*builder_, builder_->child(*module_, name, class_name, false)};
}

Scope Scope::operator()(std::string_view list, std::int64_t index, std::string_view class_name) const {
  return (*this)(fmt::format("{}.{}", list, index), class_name);
}

void Scope::is_a(std::string_view torch_class) const {
  if (module_->class_name.empty()) module_->class_name = torch_class;
}

std::string Scope::full_name(std::string_view name) const {
  return module_->path.empty() ? std::string(name) : fmt::format("{}.{}", module_->path, name);
}

void Scope::tie(std::string_view name, std::string_view original) const {
  builder_->weights().tie(full_name(name), full_name(original));
}

void Scope::declare(std::string_view name, const Bytes& float32_values) const {
  builder_->weights().declare(full_name(name), float32_values);
}

const Parameter& Scope::parameter(std::string_view name, std::vector<std::int64_t> dims) const {
  return builder_->weights().get(full_name(name), std::move(dims));
}

Value Scope::weight(std::string_view name, std::vector<std::int64_t> dims) const {
  return builder_->initializer(parameter(name, std::move(dims)));
}

Builder::Builder(Graph& graph, Weights& weights, BuilderOptions options)
    : graph_(graph), weights_(weights), options_(options) {}

Scope Builder::root(std::string_view class_name) {
  if (modules_.empty()) {
    Module& module = modules_.emplace_back();
    module.class_name = class_name;
    module.tag = fmt::format("/{}", class_name);
    module.depth = "1";
  }
  return {*this, modules_.front()};
}

Module& Builder::child(Module& parent, std::string_view name, std::string_view class_name, bool plain) {
  for (Module* known : parent.children)
    if (known->name == name) return *known;
  Module& module = modules_.emplace_back();
  module.parent = &parent;
  module.name = name;
  module.path = parent.path.empty() ? std::string(name) : fmt::format("{}.{}", parent.path, name);
  module.node_path = fmt::format("{}/{}", parent.node_path, name);
  module.class_name = class_name;
  module.plain = plain;
  module.tag = plain ? parent.tag : fmt::format("{}/{}", parent.tag, tag_segment(module));
  module.depth = std::to_string(std::count(module.tag.begin(), module.tag.end(), '/'));
  parent.children.push_back(&module);
  return module;
}

double Builder::mask_value() const {
  if (options_.mask_value) return *options_.mask_value;
  switch (options_.float_type) {
    case DataType::float16:
      return -65504.0;
    case DataType::bfloat16:
      return -0x1.fep127;
    default:
      return -0x1.fffffep127;
  }
}

Value Builder::input(std::string name, DataType type, Shape shape) {
  return Value(graph_.add_input(std::move(name), Type::tensor(type, std::move(shape))));
}

void Builder::output(Value value, std::string name) {
  if (!value) return;
  mk::Value* result = value.ir();
  if (!result->producer() || result->is_graph_output()) {
    Op identity(root({}), "Identity", {value});
    result = identity.like(value).ir();
  }
  if (result->name() != name) graph_.rename(result, std::move(name));
  graph_.mark_output(result);
}

Value Builder::constant(std::string name, DataType type, std::vector<std::int64_t> dims, Bytes data) {
  const auto [entry, added] = constants_.try_emplace(std::move(name));
  if (added) {
    Shape shape = static_shape(dims);
    mk::Value* value = graph_.add_initializer(make_tensor(entry->first, type, std::move(dims), std::move(data)));
    value->type = Type::tensor(type, std::move(shape));
    entry->second = Value(value);
  }
  return entry->second;
}

Value Builder::initializer(const Parameter& parameter) {
  return constant(parameter.name, parameter.type, parameter.dims, parameter.data);
}

Value Builder::transposed(const Parameter& parameter) {
  const auto rows = static_cast<std::uint64_t>(parameter.dims[0]),
             columns = static_cast<std::uint64_t>(parameter.dims[1]);
  const auto width = static_cast<std::uint64_t>(bits_of(parameter.type)) / 8;
  Bytes data = parameter.data ? mk::transposed(parameter.data, 1, rows, columns, width) : nullptr;
  return constant(parameter.name + ".T", parameter.type, {parameter.dims[1], parameter.dims[0]}, std::move(data));
}

Value Builder::transposed_rows(const Parameter& parameter, std::int64_t first, std::int64_t count) {
  const auto columns = static_cast<std::uint64_t>(parameter.dims[1]);
  const auto width = static_cast<std::uint64_t>(bits_of(parameter.type)) / 8, row = columns * width;
  const auto begin = static_cast<std::uint64_t>(first), rows = static_cast<std::uint64_t>(count);
  Bytes data = parameter.data ? mk::transposed(sliced(parameter.data, begin * row, rows * row), 1, rows, columns, width)
                              : nullptr;
  return constant(fmt::format("{}[{}:{}].T", parameter.name, first, first + count), parameter.type,
                  {parameter.dims[1], count}, std::move(data));
}

Value Builder::rows(const Parameter& parameter, std::int64_t first, std::int64_t count) {
  if (first == 0 && count == parameter.dims[0]) return initializer(parameter);
  std::vector<std::int64_t> dims = parameter.dims;
  std::uint64_t row = static_cast<std::uint64_t>(bits_of(parameter.type)) / 8;
  for (std::size_t axis = 1; axis < dims.size(); ++axis) row *= static_cast<std::uint64_t>(dims[axis]);
  dims[0] = count;
  Bytes data = parameter.data ? sliced(parameter.data, static_cast<std::uint64_t>(first) * row,
                                       static_cast<std::uint64_t>(count) * row)
                              : nullptr;
  return constant(fmt::format("{}[{}:{}]", parameter.name, first, first + count), parameter.type, std::move(dims),
                  std::move(data));
}

Value Builder::scalar(DataType type, double value) {
  if (!is_float(type)) {
    const auto number = static_cast<std::int64_t>(value);
    Bytes data = owned_values(std::span(&number, 1));
    if (type != DataType::int64) data = cast(std::move(data), DataType::int64, type);
    return constant(fmt::format("constant/{}/{}", name_of(type), number), type, {}, std::move(data));
  }
  const auto number = static_cast<float>(value);
  Bytes data = type == DataType::float64 ? owned_values(std::span(&value, 1)) : owned_values(std::span(&number, 1));
  if (type != DataType::float32 && type != DataType::float64) data = cast(std::move(data), DataType::float32, type);
  return constant(fmt::format("constant/{}/{}", name_of(type), number), type, {}, std::move(data));
}

Value Builder::integers(std::vector<std::int64_t> values) {
  std::string name = fmt::format("constant/int64/[{}]", fmt::join(values, ","));
  const auto count = static_cast<std::int64_t>(values.size());
  return constant(std::move(name), DataType::int64, {count}, owned_values(values));
}

Value Builder::floats(std::string name, const std::vector<float>& values) {
  return constant(std::move(name), DataType::float32, {static_cast<std::int64_t>(values.size())}, owned_values(values));
}

void Builder::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Status Builder::status() const {
  if (error_) return tl::make_unexpected(*error_);
  return weights_.status();
}

Op::Op(const Scope& scope, std::string_view type, std::initializer_list<Value> inputs) {
  make(scope, type, inputs.begin(), inputs.size(), 1);
}

Op::Op(const Scope& scope, std::string_view type, const std::vector<Value>& inputs, std::size_t outputs) {
  make(scope, type, inputs.data(), inputs.size(), outputs);
}

void Op::make(const Scope& scope, std::string_view type, const Value* inputs, std::size_t count, std::size_t outputs) {
  std::vector<mk::Value*> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!inputs[i]) return;
    values[i] = inputs[i].ir();
  }
  Module& module = scope.module();
  const auto known = std::find_if(module.operators.begin(), module.operators.end(),
                                  [&](const auto& entry) { return entry.first == type; });
  std::string name = fmt::format("{}/{}", module.node_path, type);
  if (known == module.operators.end())
    module.operators.emplace_back(type, 1);
  else
    name += fmt::format("_{}", known->second++);

  Builder& builder = scope.builder();
  Graph& graph = builder.graph();
  if (outputs == 1) {
    node_ = graph.add_op(std::string(type), std::move(values), name + "_output_0")->producer();
  } else {
    std::vector<mk::Value*> made;
    for (std::size_t i = 0; i < outputs; ++i)
      made.push_back(graph.add_value(graph.unique_name(fmt::format("{}_output_{}", name, i))));
    node_ = graph.add_node(std::string(type), std::move(values), std::move(made));
  }
  node_->name = std::move(name);
  if (builder.options_.hierarchy_tags) {
    set(node_->metadata, "winml.hierarchy.tag", module.tag);
    set(node_->metadata, "winml.hierarchy.depth", module.depth);
  }
}

Value Op::out(DataType type, Shape shape, std::size_t index) {
  if (!node_) return {};
  mk::Value* output = node_->output(index);
  output->type = Type::tensor(type, std::move(shape));
  return Value(output);
}

}  // namespace mk::nn
