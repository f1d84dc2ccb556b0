#pragma once
// The nodes of a model by operator, sub-graphs included, kept while patches are applied: a pass looks only at nodes
// that can be its root.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/ir.h"

namespace mk {

class NodeIndex {
 public:
  explicit NodeIndex(Graph& graph);
  void add(Node* node);
  void erase(Node* node);  // before it is erased from its graph
  bool has(const Node* node) const { return places_.contains(node); }

  // "OpType", or "domain.OpType". In order of the graph at first, new nodes after; null where one was erased.
  const std::vector<Node*>& of(const std::string& op) const;
  // Every node, in no particular order.
  std::size_t size() const { return places_.size(); }

 private:
  struct Place {
    std::vector<Node*>* list;
    std::size_t index;
  };
  std::unordered_map<std::string, std::vector<Node*>> lists_;
  std::unordered_map<const Node*, Place> places_;
};

}  // namespace mk
