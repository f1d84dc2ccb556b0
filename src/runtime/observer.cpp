#include "runtime/observer.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>

#include "runtime/model_session.h"
#include "runtime/value_watch.h"

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
  const std::unique_ptr<Model> watched = clone(model);
  const Graph& graph = *watched->graph;
  if (graph.outputs().empty()) return fail(ErrorCode::malformed, "the model has no output");
  std::vector<Type> types;
  std::vector<std::size_t> inputs;
  std::unordered_map<const Value*, std::size_t> indices;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Value* value = graph.find(names[i]);
    if (!value) return fail(ErrorCode::failed, "the graph has no value " + names[i] + " to observe");
    types.push_back(value->type);
    if (value->is_graph_input())
      inputs.push_back(i);
    else if (value->type.is_tensor() || value->type.kind == Type::Kind::none)
      indices.emplace(value, i);
  }
  std::vector<Value*> values;
  std::vector<std::size_t> order;
  const auto add = [&](Value* value) {
    const auto found = indices.find(value);
    if (found == indices.end()) return;
    values.push_back(value);
    order.push_back(found->second);
  };
  for (Value* value : graph.initializers()) add(value);
  for (Node* node : graph.nodes())
    for (Value* output : node->outputs()) add(output);
  ort::ValueWatch::watch(*watched, values);

  SessionOptions session = options.session;
  MK_TRY(session.watch, ort::ValueWatch::create(*runtime));
  MK_TRY(Session opened, open_model(std::move(runtime), *watched, session));
  Observer observer(std::move(opened));
  observer.watch_ = session.watch;
  observer.names_ = std::move(names);
  observer.types_ = std::move(types);
  observer.inputs_ = std::move(inputs);
  observer.watched_ = std::move(order);
  observer.memory_ = options.memory;
  return observer;
}

Status Observer::run(std::span<const HostTensor> inputs, const See& see) {
  const auto show = [&](std::size_t index, TensorView value) -> Status {
    if (value.type == DataType::string) return {};
    value.name = names_[index];
    return see(index, value);
  };
  for (const std::size_t index : inputs_) {
    const auto given = std::ranges::find(inputs, names_[index], &HostTensor::name);
    if (given != inputs.end()) MK_CHECK(show(index, view_of(*given)));
  }
  const ort::ValueWatch::See see_watched = [&](std::size_t place, const TensorView& value) {
    return show(watched_[place], value);
  };
  watch_->start(&see_watched);
  const std::vector<std::string> cheapest{session_.outputs().front().name};
  const auto outputs = session_.run(inputs, cheapest);
  MK_CHECK(watch_->result());
  if (!outputs) return tl::make_unexpected(outputs.error());
  return {};
}

std::vector<std::vector<std::size_t>> Observer::groups(std::span<const HostTensor> inputs) const {
  const auto symbols = symbols_of(session_, inputs);
  std::vector<std::vector<std::size_t>> groups;
  std::uint64_t held = 0;
  for (const std::size_t index : watched_) {
    const std::uint64_t bytes = bytes_of(types_[index], symbols);
    if (groups.empty() || held + bytes > memory_) {
      groups.emplace_back();
      held = 0;
    }
    groups.back().push_back(index);
    held += bytes;
  }
  return groups;
}

Result<Observer::Collected> Observer::collect(std::span<const HostTensor> inputs,
                                              const std::vector<std::size_t>& group) {
  const std::unordered_set<std::size_t> wanted(group.begin(), group.end());
  Collected collected;
  MK_CHECK(run(inputs, [&](std::size_t index, const TensorView& value) -> Status {
    if (wanted.contains(index))
      collected.emplace(index,
                        HostTensor{names_[index], value.type, value.dims, {value.data.begin(), value.data.end()}, {}});
    return {};
  }));
  return collected;
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
