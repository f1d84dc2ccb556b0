#include "optimize/passes.h"

#include <algorithm>
#include <array>

namespace mk {

extern const Pass constants_to_initializers, eliminate_no_ops, gelu_fusion, dead_code;

namespace {

constexpr std::array order{
    // What others need first: constants in one form, nothing in between that does nothing.
    &constants_to_initializers,
    &eliminate_no_ops,
    // Operators from their parts.
    &gelu_fusion,
    // Last.
    &dead_code,
};

}  // namespace

std::span<const Pass* const> all_passes() { return order; }

const Pass* pass_named(std::string_view name) {
  const auto found = std::find_if(order.begin(), order.end(), [&](const Pass* pass) { return pass->name == name; });
  return found == order.end() ? nullptr : *found;
}

}  // namespace mk
