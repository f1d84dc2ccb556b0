#pragma once
// What a run of a graph costs, from its shapes: multiply-accumulates and the memory of activations. Types must be
// inferred (shape_inference.h).

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/ir.h"

namespace mk {

struct GraphCost {
  // Of convolutions, matrix products, attention and recurrent layers; what is element-wise does not count. Of an If the
  // dearer branch counts, of a Loop one turn, of a Scan one step.
  std::uint64_t macs = 0;
  // The most bytes of values that are alive at once when nodes run in the graph's order and each value is freed after
  // its last use: inputs and outputs count, weights do not.
  std::uint64_t peak_activation_bytes = 0;
  // Symbols that `sizes` did not name, taken as 1; "?" for unnamed ones.
  std::vector<std::string> assumed;
  // Nodes with a cost that could not be told, because a shape is unknown.
  std::size_t unknown_nodes = 0;
};

// Sizes of the symbols; linear in nodes.
GraphCost cost_of(const Graph& graph, const std::map<std::string, std::int64_t, std::less<>>& sizes = {});

}  // namespace mk
