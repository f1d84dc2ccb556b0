#include "quantize/node_filter.h"

#include <algorithm>

namespace mk {

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // the last one seen, and how far its text goes
  std::size_t resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool NodeFilter::matches(const Node& node) const {
  if (std::find(op_types.begin(), op_types.end(), node.op_type) != op_types.end()) return true;
  const auto named = [&](std::string_view text) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches_glob(name, text); });
  };
  if (!node.name.empty()) return named(node.name);
  return std::any_of(node.outputs().begin(), node.outputs().end(),
                     [&](const Value* output) { return output && named(output->name()); });
}

}  // namespace mk
