#pragma once
// The file of `winml optimize -c`: capabilities and whether they are on, in YAML or JSON.

#include <map>
#include <string>

#include "base/path.h"
#include "base/result.h"

namespace mk::cli {

// A flat mapping, or one under "capabilities", or the `optim` section of a build config. usage for anything else; the
// names are not checked here.
Result<std::map<std::string, bool>> read_capability_file(const Path& path);

}  // namespace mk::cli
