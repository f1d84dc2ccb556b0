#pragma once
// How operators act on a value that is held in another order: for y = Transpose(z, perm), which node on z gives the
// same as a node on y, and in which order its results are then.

#include <cstdint>
#include <optional>
#include <vector>

#include "optimize/patch.h"

namespace mk {

using Permutation = std::vector<std::int64_t>;

Permutation inverse(const Permutation& perm);
bool is_identity(const Permutation& perm);
// Transpose(Transpose(z, first), second) = Transpose(z, composed).
Permutation composed(const Permutation& first, const Permutation& second);
// That of a Transpose node; nothing where its rank is not known.
std::optional<Permutation> permutation_of(const Node& transpose);

// How a node would be written for inputs that are in another order.
struct ReorderedNode {
  std::vector<std::size_t> moved;     // inputs that must be in the other order
  std::vector<std::size_t> constant;  // inputs that are constants, to be reordered with the values
  std::vector<std::pair<std::size_t, std::vector<std::int64_t>>> integers;  // inputs that become these integers
  std::vector<std::pair<std::string, std::int64_t>> axis;                   // attributes that change
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> axes;
  Permutation results;  // the order of its outputs: output = Transpose(new output, results)
};

// The node, where its input `at` (and all others that must be) is in the order `perm`. Nothing where the operator
// cannot take it.
std::optional<ReorderedNode> reordered(const Node& node, std::size_t at, const Permutation& perm, std::int64_t opset);

}  // namespace mk
