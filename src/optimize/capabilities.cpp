#include "optimize/capabilities.h"

#include <algorithm>

#include "base/spelling.h"
#include "optimize/passes.h"

namespace mk {

std::vector<Capability> all_capabilities() {
  std::vector<Capability> list;
  for (const Pass* pass : all_passes()) {
    if (pass->category.empty()) continue;
    list.push_back({pass->name, pass->category, pass->summary, pass->by_default, pass->depends});
  }
  return list;
}

std::string capability_name(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

CapabilitySet CapabilitySet::defaults() {
  CapabilitySet set;
  for (const Capability& capability : all_capabilities()) {
    if (capability.by_default) set.names_.emplace(capability.name);
  }
  return set;
}

Status CapabilitySet::set(std::string_view key, bool on) {
  const std::string name = capability_name(key);
  std::vector<std::string_view> known;
  for (const Capability& capability : all_capabilities()) known.push_back(capability.name);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const auto close = nearest(name, known);
    return fail(
        ErrorCode::usage, "Unknown capability '" + name + "'", {},
        close ? "Did you mean '" + std::string(*close) + "'?" : "`winml optimize --list-capabilities` lists them");
  }
  on ? static_cast<void>(names_.insert(name)) : static_cast<void>(names_.erase(name));
  return {};
}

Status CapabilitySet::set(const std::map<std::string, bool>& values) {
  for (const auto& [name, on] : values) MK_CHECK(set(name, on));
  return {};
}

std::vector<std::string> CapabilitySet::close() {
  std::vector<std::string> added;
  const std::vector<Capability> list = all_capabilities();
  for (bool again = true; again;) {
    again = false;
    for (const Capability& capability : list) {
      if (!has(capability.name) || capability.depends.empty() || has(capability.depends)) continue;
      names_.emplace(capability.depends);
      added.emplace_back(capability.depends);
      again = true;
    }
  }
  return added;
}

}  // namespace mk
