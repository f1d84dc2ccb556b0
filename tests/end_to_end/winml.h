#pragma once
// Runs the built command.

#include <string>
#include <vector>

#include "base/process.h"
#include "testing/testing.h"

namespace mk::testing {

inline Result<ProcessOutcome> winml(std::vector<std::string> arguments, ProcessOptions options = {}) {
  options.arguments = std::move(arguments);
  return run_process(path_from_utf8(MODELKIT_WINML), options);
}

}  // namespace mk::testing
