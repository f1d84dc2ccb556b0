#include "base/system.h"

#include <algorithm>
#include <cstdlib>

namespace mk {

std::optional<std::string> environment(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

bool environment_flag(std::string_view name) {
  std::string value = environment(name).value_or("");
  const auto blank = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  value.erase(value.begin(), std::find_if_not(value.begin(), value.end(), blank));
  value.erase(std::find_if_not(value.rbegin(), value.rend(), blank).base(), value.end());
  for (char& c : value) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return value == "1" || value == "true" || value == "yes" || value == "on";
}

}  // namespace mk
