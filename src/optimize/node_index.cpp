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
}

void NodeIndex::erase(Node* node) {
  const auto found = places_.find(node);
  if (found == places_.end()) return;
  (*found->second.list)[found->second.index] = nullptr;
  places_.erase(found);
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
