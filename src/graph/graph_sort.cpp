// Topological order of a graph's nodes, captured values included.

#include <algorithm>

#include "graph/ir.h"

namespace mk {
namespace {

// Producers in `graph` of what the node and the nodes of its sub-graphs take.
void collect_dependencies(const Node& node, const Graph& graph, std::vector<Node*>& into) {
  for (const Value* value : node.inputs()) {
    if (value && value->graph() == &graph && value->producer()) into.push_back(value->producer());
  }
  for (const Graph* inner : node.subgraphs()) {
    for (const Node* nested : inner->nodes()) collect_dependencies(*nested, graph, into);
    for (const Value* value : inner->outputs()) {
      if (value->graph() == &graph && value->producer()) into.push_back(value->producer());
    }
  }
}

enum class Mark : std::uint8_t { fresh, open, done };

struct Frame {
  Node* node;
  std::vector<Node*> dependencies;
  std::size_t next = 0;
};

}  // namespace

// Depth first, from the nodes in their present order: each is placed right after the last of what it needs.
Status Graph::sort() {
  std::vector<Mark> marks(nodes_.size(), Mark::fresh);
  std::vector<Node*> sorted;
  sorted.reserve(nodes_.size());
  std::vector<Frame> stack;
  const auto open = [&](Node* node) {
    marks[node->slot_] = Mark::open;
    stack.push_back({node, {}, 0});
    collect_dependencies(*node, *this, stack.back().dependencies);
  };
  for (Node* start : order_) {
    if (marks[start->slot_] != Mark::fresh) continue;
    open(start);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.dependencies.size()) {
        marks[frame.node->slot_] = Mark::done;
        sorted.push_back(frame.node);
        stack.pop_back();
        continue;
      }
      Node* needed = frame.dependencies[frame.next++];
      if (marks[needed->slot_] == Mark::open) {
        return fail(ErrorCode::malformed, "the graph has a cycle", "node " + needed->label(),
                    "A node cannot take what comes from its own output");
      }
      if (marks[needed->slot_] == Mark::fresh) open(needed);
    }
  }
  for (Node* node : sorted) order_.splice(order_.end(), order_, node->position_);
  for (Graph* child : children_) MK_CHECK(child->sort());
  return {};
}

}  // namespace mk
