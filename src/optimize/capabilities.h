#pragma once
// The switches of the optimizer (spec: optimize, capability catalogue): "gelu-fusion" on the command line, or
// "gelu_fusion" in a config. They follow from the list of passes.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mk {

struct Capability {
  std::string_view name;
  std::string_view category;
  std::string_view summary;
  bool by_default = false;
  std::string_view depends;
};

// In the order of the passes.
std::vector<Capability> all_capabilities();

// "gelu_fusion" -> "gelu-fusion".
std::string capability_name(std::string_view key);

// The names that are on.
class CapabilitySet {
 public:
  static CapabilitySet defaults();
  static CapabilitySet none() { return {}; }
  // usage for an unknown name, with the nearest.
  Status set(std::string_view name, bool on);
  // Those of a config. A name of the catalogue that has no pass here is left out, with a sentence about it.
  Result<std::vector<std::string>> set_all(const std::map<std::string, bool>& values);
  // Switches on what others depend on; the names that were switched on so.
  std::vector<std::string> close();
  bool has(std::string_view name) const { return names_.contains(name); }
  const std::set<std::string, std::less<>>& names() const { return names_; }

 private:
  std::set<std::string, std::less<>> names_;
};

}  // namespace mk
