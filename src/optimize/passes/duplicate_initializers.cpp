// Initializers with the same content become one. Small ones are compared by their bytes, large ones only by where their
// bytes are: weights are not read for this.

#include <unordered_map>

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::uint64_t compared_by_content = 1024;  // bytes: scalars, shapes, axes, short vectors

template <typename T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

std::optional<std::string> key_of(const Tensor& tensor) {
  if (!tensor.data || !tensor.sparse.empty()) return std::nullopt;
  std::string key;
  append(key, tensor.type);
  append(key, tensor.dims.size());
  for (const std::int64_t dim : tensor.dims) append(key, dim);
  if (tensor.data->size() <= compared_by_content) {
    const auto bytes = read_all(*tensor.data);
    if (!bytes) return std::nullopt;
    key.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  } else if (const auto range = tensor.data->file_range()) {
    append(key, reinterpret_cast<std::uintptr_t>(range->file.get()));
    append(key, range->offset);
  } else {
    append(key, reinterpret_cast<std::uintptr_t>(tensor.data.get()));
  }
  return key;
}

void merge(Graph& graph, PassRun& run, std::vector<Value*>& replaced) {
  std::unordered_map<std::string, Value*> seen;
  for (Value* value : graph.initializers()) {
    if (value->is_graph_input() || value->is_graph_output() || value->is_unused()) continue;
    auto key = key_of(*value->initializer());
    if (!key) continue;
    const auto [first, is_new] = seen.emplace(std::move(*key), value);
    if (is_new) continue;
    graph.replace_uses(value, first->second);
    replaced.push_back(value);
  }
  for (Node* node : graph.nodes()) {
    for (Graph* inner : node->subgraphs()) merge(*inner, run, replaced);
  }
}

Status run(PassRun& run) {
  std::vector<Value*> replaced;
  merge(*run.model().graph, run, replaced);
  run.changed(replaced.size());
  run.sweep(std::move(replaced));
  return {};
}

}  // namespace

extern const Pass duplicate_initializers;
const Pass duplicate_initializers{
    .name = "duplicate-initializers", .summary = "Initializers with the same content become one", .run = run};

}  // namespace mk
