#include "optimize/node_index.h"

namespace mk {

NodeIndex::NodeIndex(Graph& graph) {
  places_.reserve(graph.node_count());
  for_each_node(graph, [&](Node& node) { add(&node); });
}

void NodeIndex::add(Node* node) {
  const bool standard = node->domain.empty() || node->domain == "ai.onnx";
  std::vector<Node*>& list = lists_[standard ? node->op_type : node->domain + '.' + node->op_type];
  places_[node] = {&list, list.size()};
  list.push_back(node);
  if (!node->name.empty()) ++names_[node->name];
}

void NodeIndex::forget_name(const std::string& name) {
  const auto found = names_.find(name);
  if (found != names_.end() && --found->second == 0) names_.erase(found);
}

std::string NodeIndex::unique_name(const std::string& stem) {
  if (!names_.contains(stem)) return stem;
  std::uint64_t& suffix = next_suffixes_[stem];
  std::string name;
  do {
    name = stem + '_' + std::to_string(++suffix);
  } while (names_.contains(name));
  return name;
}

void NodeIndex::rename(Node* node, std::string name) {
  forget_name(node->name);
  node->name = std::move(name);
  if (!node->name.empty()) ++names_[node->name];
}

void NodeIndex::erase(Node* node) {
  const auto found = places_.find(node);
  if (found == places_.end()) return;
  (*found->second.list)[found->second.index] = nullptr;
  places_.erase(found);
  forget_name(node->name);
  for (Graph* inner : node->subgraphs()) {
    for_each_node(*inner, [&](Node& held) { erase(&held); });
  }
}

const std::vector<Node*>& NodeIndex::of(const std::string& op) const {
  static const std::vector<Node*> none;
  const auto found = lists_.find(op);
  return found == lists_.end() ? none : found->second;
}

}  // namespace mk
