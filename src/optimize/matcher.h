#pragma once
// Finds a pattern in a graph, from a node that may be its root. Operands of commutative operators match in either
// order; alternatives are tried until the whole pattern holds.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir.h"
#include "optimize/constants.h"
#include "optimize/pattern.h"

namespace mk {

// What the names of a pattern stand for. Valid while the graph stays as it is.
class Match {
 public:
  Match(const Pattern& pattern, Graph& graph) : pattern_(&pattern), graph_(&graph) {}

  Graph& graph() const { return *graph_; }
  // Null for an input that is absent, and for a name whose alternative was not taken.
  Value* operator[](std::string_view name) const;
  Node* node(std::string_view name) const;  // that makes the named value; null where its line was skipped
  Node& root() const { return *nodes_[pattern_->root]; }
  const std::vector<Node*>& nodes() const { return nodes_; }  // by line; null where skipped

  std::optional<Tensor> constant(std::string_view name) const { return constant_of((*this)[name]); }
  std::optional<double> scalar(std::string_view name) const { return scalar_of((*this)[name]); }
  std::optional<std::vector<std::int64_t>> integers(std::string_view name) const { return integers_of((*this)[name]); }
  std::optional<std::vector<std::int64_t>> dims(std::string_view name) const { return static_dims((*this)[name]); }
  int rank(std::string_view name) const { return rank_of((*this)[name]); }
  Dim dim(std::string_view name, int axis) const { return dim_of((*this)[name], axis); }

 private:
  friend class Matcher;
  const Pattern* pattern_;
  Graph* graph_;
  std::vector<Value*> values_;  // by name
  std::vector<Node*> nodes_;    // by line
};

// How far a pattern came that did not match.
struct NearMatch {
  std::size_t nodes = 0;  // that matched
  std::string reason;     // "std: Sqrt expected, found Exp (node /layer/Exp)"
};

// The match with `root` as the pattern's last line. `near` (may be null) is filled where there is none.
std::optional<Match> match(const Pattern& pattern, Node& root, NearMatch* near = nullptr);

// Operators a pattern's root may be, "domain.OpType" or "OpType".
std::vector<std::string> root_operators(const Pattern& pattern);

bool is_commutative(const Node& node);

}  // namespace mk
