#pragma once
// A graph as text that does not depend on names between its interface, or on the order of nodes that may be swapped:
// two graphs with one text compute the same in the same way.

#include <string>

#include "graph/ir.h"

namespace mk::testing {

std::string canonical_text(const Model& model);

}  // namespace mk::testing
