// Nodes that compute the same from the same become one. Random numbers are never the same; nodes with sub-graphs and
// calls of functions are left alone.

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::uint64_t largest_tensor = 1024;  // in an attribute, that is compared

bool is_random(const Node& node) {
  static constexpr std::array<std::string_view, 7> names{
      "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"};
  return std::find(names.begin(), names.end(), node.op_type) != names.end();
}

template <typename T>
void append(std::string& key, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  key.append(reinterpret_cast<const char*>(&value), sizeof(T));
}
void append_text(std::string& key, std::string_view text) {
  append(key, text.size());
  key += text;
}
template <typename T>
void append_list(std::string& key, const std::vector<T>& values) {
  append(key, values.size());
  for (const T& value : values) append(key, value);
}

bool append_tensor(std::string& key, const Tensor& tensor) {
  if (!tensor.data || tensor.data->size() > largest_tensor) return false;
  append(key, tensor.type);
  append_list(key, tensor.dims);
  const auto bytes = read_all(*tensor.data);
  if (bytes) key.append(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  return bytes.has_value();
}

bool append_attribute(std::string& key, const Attribute& attribute) {
  append_text(key, attribute.name);
  append(key, attribute.value.index());
  if (!attribute.reference.empty() || !attribute.raw.empty()) return false;
  if (const auto* real = std::get_if<float>(&attribute.value)) {
    append(key, *real);
  } else if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) {
    append(key, *integer);
  } else if (const auto* text = std::get_if<std::string>(&attribute.value)) {
    append_text(key, *text);
  } else if (const auto* reals = std::get_if<std::vector<float>>(&attribute.value)) {
    append_list(key, *reals);
  } else if (const auto* integers = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
    append_list(key, *integers);
  } else if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) {
    append(key, texts->size());
    for (const std::string& part : *texts) append_text(key, part);
  } else if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&attribute.value)) {
    return append_tensor(key, **tensor);
  } else {
    return false;
  }
  return true;
}

// What decides a node's results; nothing where it is not compared.
std::optional<std::string> key_of(const Node& node) {
  if (is_random(node) || node.outputs().empty()) return std::nullopt;
  std::string key;
  append_text(key, node.op_type);
  append_text(key, node.domain == "ai.onnx" ? std::string() : node.domain);
  append_text(key, node.overload);
  append(key, node.inputs().size());
  for (const Value* input : node.inputs()) append(key, reinterpret_cast<std::uintptr_t>(input));
  append(key, node.outputs().size());
  for (const Value* output : node.outputs()) append(key, output != nullptr);
  std::vector<const Attribute*> attributes;
  for (const Attribute& attribute : node.attributes()) attributes.push_back(&attribute);
  std::sort(attributes.begin(), attributes.end(), [](auto* a, auto* b) { return a->name < b->name; });
  for (const Attribute* attribute : attributes) {
    if (!append_attribute(key, *attribute)) return std::nullopt;
  }
  return key;
}

bool is_function(const Model& model, const Node& node) {
  return std::any_of(model.functions.begin(), model.functions.end(),
                     [&](const Function& f) { return f.name == node.op_type && f.domain == node.domain; });
}

void merge(Graph& graph, PassRun& run) {
  std::unordered_map<std::string, Node*> seen;
  const std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
  for (Node* node : nodes) {
    if (!run.index().has(node)) continue;
    const std::vector<Graph*> inner = node->subgraphs();
    for (Graph* body : inner) merge(*body, run);
    if (!inner.empty() || is_function(run.model(), *node)) continue;
    auto key = key_of(*node);
    if (!key) continue;
    const auto [first, is_new] = seen.emplace(std::move(*key), node);
    if (is_new) continue;
    Patch patch(run.opset());
    for (std::size_t i = 0; i < node->outputs().size(); ++i) {
      if (node->output(i) && !node->output(i)->is_unused()) patch.replace(node->output(i), first->second->output(i));
    }
    if (!patch.empty()) run.apply(std::move(patch), *node);
  }
}

Status run(PassRun& run) {
  merge(*run.model().graph, run);
  return {};
}

}  // namespace

extern const Pass common_subexpressions;
const Pass common_subexpressions{
    .name = "common-subexpressions", .summary = "Nodes that compute the same from the same become one", .run = run};

}  // namespace mk
