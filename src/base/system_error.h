#pragma once
// What the operating system says, in our words: the reason, and what to do about it.

#include <string_view>
#include <system_error>

#include "base/path.h"
#include "base/result.h"

namespace mk {

// "ACTION: REASON (PATH). TRY". `action` is "cannot open", "cannot write", ...
// A name that leads nowhere is not_found, a name that is taken is exists, everything else failed.
Error system_error(std::error_code code, std::string_view action, const Path& path);

// The error that the last system call of this thread left.
std::error_code last_system_error();

}  // namespace mk
