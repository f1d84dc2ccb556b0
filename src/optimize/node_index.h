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
  // `stem`, or with a number behind it where a node has that name.
  std::string unique_name(const std::string& stem);
  void rename(Node* node, std::string name);

  std::size_t size() const { return places_.size(); }

 private:
  struct Place {
    std::vector<Node*>* list;
    std::size_t index;
  };
  std::unordered_map<std::string, std::vector<Node*>> lists_;
  void forget_name(const std::string& name);
  std::unordered_map<const Node*, Place> places_;
  std::unordered_map<std::string, std::uint32_t> names_;          // how many nodes have it
  std::unordered_map<std::string, std::uint64_t> next_suffixes_;  // by stem
};

}  // namespace mk
