#pragma once
// Which nodes a quantizer leaves as they are, as users name them.

#include <string>
#include <string_view>
#include <vector>

#include "graph/ir.h"

namespace mk {

// `names`: a node's name, or that of one of its outputs where it has none; * stands for any text and ? for a letter.
struct NodeFilter {
  std::vector<std::string> names;
  std::vector<std::string> op_types;
  bool matches(const Node& node) const;
};

bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace mk
