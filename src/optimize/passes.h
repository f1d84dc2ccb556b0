#pragma once
// The passes, in the order they run.

#include <span>
#include <string_view>

#include "optimize/pass.h"

namespace mk {

std::span<const Pass* const> all_passes();
const Pass* pass_named(std::string_view name);  // null where there is none

}  // namespace mk
