#pragma once
// Which values of two models are the same thing: what comparing them node by node begins with.

#include <string>
#include <vector>

#include "graph/ir.h"

namespace mk {

struct MatchedValue {
  const Value* candidate = nullptr;
  const Value* reference = nullptr;
  enum class By { name, node, tag } by = By::name;
};

// Float values that nodes of the main graphs compute, in the candidate's order: of the same name; else output i of
// nodes of one name; else the last value of the same module (metadata winml.hierarchy.tag) where both models compute it
// by one chain of nodes. A value is matched at most once, one that is scaled on purpose (node_marks.h) not at all.
std::vector<MatchedValue> match_values(const Model& candidate, const Model& reference);

// The precision that a value is computed in, or put into: "float32", "float16", "uint8" where it goes into or comes out
// of a quantization to that type.
std::string value_precision(const Value& value);

}  // namespace mk
