#pragma once
// The table of commands.

#include <optional>
#include <string_view>
#include <vector>

#include "winml/command.h"

namespace mk::cli {

// In the order of the root help: by group, then as listed.
std::vector<Command> all_commands();

// usage with the nearest name; a command of the Python tool that this version lacks says so.
Result<Command> find_command(std::string_view name);

// The rows that every command has: -v, -q, --no-color, --offline, -h, and --format where the command has formats.
struct CommonOptions {
  int verbose = 0;
  bool quiet = false;
  bool no_color = false;
  bool offline = false;
  bool debug = false;
  bool help = false;
  std::string format = "text";
};
void describe_common(CommonOptions& common, const Command& command, OptionTable& options);

}  // namespace mk::cli
