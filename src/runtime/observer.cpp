#include "runtime/observer.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "runtime/model_session.h"

namespace mk {
namespace {

constexpr std::int64_t unknown_dim = 128;
constexpr std::uint64_t unknown_value = 1u << 20;

// What the model's symbols are for these inputs.
std::map<std::string_view, std::int64_t> symbols_of(const Session& session, std::span<const HostTensor> inputs) {
  std::map<std::string_view, std::int64_t> symbols;
  for (const Port& port : session.inputs()) {
    const auto given = std::ranges::find(inputs, port.name, &HostTensor::name);
    if (given == inputs.end() || !port.type.shape) continue;
    for (std::size_t i = 0; i < std::min(port.type.shape->size(), given->dims.size()); ++i)
      if (const Dim& dim = (*port.type.shape)[i]; !dim.symbol.empty()) symbols.emplace(dim.symbol, given->dims[i]);
  }
  return symbols;
}

std::uint64_t bytes_of(const Type& type, const std::map<std::string_view, std::int64_t>& symbols) {
  if (!type.is_tensor() || !type.shape) return unknown_value;
  double bytes = std::max<double>(bits_of(type.element), 8) / 8;
  for (const Dim& dim : *type.shape) {
    const auto symbol = symbols.find(dim.symbol);
    const std::int64_t size = dim.is_known() ? dim.value : symbol != symbols.end() ? symbol->second : unknown_dim;
    bytes *= static_cast<double>(size);
  }
  return bytes < 1e18 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{1} << 60;
}

}  // namespace

Result<Observer> Observer::open(std::shared_ptr<Runtime> runtime, const Model& model, std::vector<std::string> names,
                                const ObserverOptions& options) {
  std::vector<std::string> extra;
  std::vector<Type> types;
  std::vector<std::size_t> inputs, computed;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Value* value = model.graph->find(names[i]);
    types.push_back(value ? value->type : Type{});
    if (value && value->is_graph_input()) {
      inputs.push_back(i);
    } else {
      computed.push_back(i);
      extra.push_back(names[i]);
    }
  }
  MK_TRY(Session session, open_model(std::move(runtime), model, options.session, extra));
  Observer observer(std::move(session));
  observer.names_ = std::move(names);
  observer.types_ = std::move(types);
  observer.inputs_ = std::move(inputs);
  observer.computed_ = std::move(computed);
  observer.memory_ = options.memory;
  return observer;
}

const std::vector<std::vector<std::size_t>>& Observer::groups(std::span<const HostTensor> inputs) {
  const auto symbols = symbols_of(session_, inputs);
  groups_.clear();
  std::uint64_t held = 0;
  for (const std::size_t index : computed_) {
    const std::uint64_t bytes = bytes_of(types_[index], symbols);
    if (groups_.empty() || held + bytes > memory_) {
      groups_.emplace_back();
      held = 0;
    }
    groups_.back().push_back(index);
    held += bytes;
  }
  return groups_;
}

Result<BoundRun> Observer::run_group(std::span<const HostTensor> inputs, const std::vector<std::size_t>& group) const {
  std::vector<std::string> wanted;
  wanted.reserve(group.size());
  for (const std::size_t index : group) wanted.push_back(names_[index]);
  MK_TRY(BoundRun bound, session_.bind(inputs, wanted));
  MK_CHECK(bound.run());
  return bound;
}

Status Observer::run(std::span<const HostTensor> inputs, const See& see) {
  const auto show = [&](std::size_t index, const TensorView& value) -> Status {
    if (value.type == DataType::string) return {};
    return see(index, value);
  };
  for (const std::size_t index : inputs_) {
    const auto given = std::ranges::find(inputs, names_[index], &HostTensor::name);
    if (given != inputs.end()) MK_CHECK(show(index, view_of(*given)));
  }
  for (const auto& group : groups(inputs)) {
    MK_TRY(const BoundRun bound, run_group(inputs, group));
    for (std::size_t i = 0; i < group.size(); ++i) {
      const auto value = bound.output(i);
      if (!value && value.error().code == ErrorCode::unsupported) continue;
      if (!value) return tl::make_unexpected(value.error());
      MK_CHECK(show(group[i], *value));
    }
  }
  return {};
}

std::vector<std::string> float_values(const Model& model) {
  std::vector<std::string> names;
  const auto add = [&](const Value* value) {
    if (!value || !value->type.is_tensor()) return;
    if (value->type.element == DataType::float32 || value->type.element == DataType::float16)
      names.push_back(value->name());
  };
  for (const Value* input : model.graph->inputs())
    if (!input->initializer()) add(input);
  for (const Node* node : model.graph->nodes())
    for (const Value* output : node->outputs()) add(output);
  return names;
}

}  // namespace mk
