#include "datasets/cell.h"

#include <array>
#include <cmath>

namespace mk {

std::optional<std::int64_t> Cell::integer() const {
  if (const auto* value = get<std::int64_t>()) return *value;
  if (const auto* value = get<bool>()) return *value ? 1 : 0;
  if (const auto* value = get<double>())
    if (std::trunc(*value) == *value && std::abs(*value) < 9.2e18) return static_cast<std::int64_t>(*value);
  return std::nullopt;
}

const Cell* Cell::field(std::string_view name) const {
  if (const auto* fields = get<Struct>())
    for (std::size_t i = 0; i < fields->names.size(); ++i)
      if (fields->names[i] == name) return &fields->values[i];
  return nullptr;
}

std::string_view Cell::kind() const {
  constexpr std::array<std::string_view, 9> names{"null",   "a boolean", "an integer", "an integer", "a number",
                                                  "a text", "bytes",     "a list",     "a struct"};
  static_assert(names.size() == std::variant_size_v<Any>);
  return names[any_.index()];
}

}  // namespace mk
