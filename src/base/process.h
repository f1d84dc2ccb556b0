#pragma once
// Sub-processes. Both output streams are drained while the process runs, so that it never blocks on a full pipe.

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/result.h"

namespace mk {

struct ProcessOptions {
  std::vector<std::string> arguments;              // UTF-8, without the program
  std::map<std::string, std::string> environment;  // added to ours
  std::optional<Path> working_folder;
  std::optional<std::chrono::milliseconds> timeout;  // then it is killed
  std::string input;                                 // its stdin
};

struct ProcessOutcome {
  int exit_code = 0;  // 128 + signal when a signal ended it
  bool timed_out = false;
  std::string out;
  std::string err;
};

// not_found when the program cannot be started; a non-zero exit is an outcome, not an error.
Result<ProcessOutcome> run_process(const Path& program, const ProcessOptions& options);

}  // namespace mk
