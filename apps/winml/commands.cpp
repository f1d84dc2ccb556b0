#include "winml/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/spelling.h"

namespace mk::cli {

// One line per command, each defined in the file of its name.
Command build_command();
Command catalog_command();
Command compare_command();
Command completion_command();
Command config_command();
Command docs_command();
Command eval_command();
Command export_command();
Command inspect_command();
Command optimize_command();
Command perf_command();
Command quantize_command();
Command recipes_command();
Command sys_command();

namespace {

// In the order of the root help; groups come in the order of their first command.
// clang-format off
constexpr std::array commands{
    &build_command,
    &config_command,
    &export_command,
    &optimize_command,
    &quantize_command,
    &perf_command,
    &eval_command,
    &compare_command,
    &inspect_command,
    &catalog_command,
    &recipes_command,
    &sys_command,
    &completion_command,
    &docs_command,
};
// clang-format on

// Commands that scripts know from the Python tool.
struct Absent {
  std::string_view name;
  std::string_view hint;
};
constexpr std::array absent{
    Absent{"analyze", ""},
    Absent{"compile", ""},
    Absent{"run", "Use `winml eval` to run a model on a data set"},
    Absent{"serve", "Use `winml eval` to run a model on a data set"},
};

}  // namespace

std::vector<Command> all_commands() {
  std::vector<Command> list;
  list.reserve(commands.size());
  for (const auto make : commands) list.push_back(make());
  return list;
}

Result<Command> find_command(std::string_view name) {
  std::vector<Command> list = all_commands();
  std::vector<std::string_view> names;
  for (Command& command : list) {
    if (command.name == name) return std::move(command);
    if (!command.hidden) names.push_back(command.name);
  }
  for (const Absent& row : absent)
    if (row.name == name)
      return fail(ErrorCode::usage, fmt::format("Command '{}' is not available in this version", name), {},
                  row.hint.empty() ? "`winml --help` lists the commands" : std::string(row.hint));
  const auto near = nearest(name, names);
  return fail(ErrorCode::usage, fmt::format("No such command '{}'", name), {},
              near ? fmt::format("Did you mean '{}'?", *near) : "`winml --help` lists the commands");
}

void describe_common(CommonOptions& common, const Command& command, OptionTable& options) {
  if (!command.formats.empty()) {
    common.format = command.formats.front();
    options.value("-f, --format", "FORMAT", common.format, "What to print on stdout")
        .choices({command.formats.begin(), command.formats.end()});
  }
  options.count("-v, --verbose", common.verbose, "Say more; -vv for everything");
  options.flag("-q, --quiet", common.quiet, "Say nothing but errors and what was asked for");
  options.flag("--no-color", common.no_color,
               "No colour; NO_COLOR=1, CI=true and a stream that is no terminal do the same");
  options.flag("--offline", common.offline,
               "Open no connection: local files and the Hub's cache only; as HF_HUB_OFFLINE=1");
  options.flag("--debug", common.debug, "The same as -vv").hidden();
  options.flag("-h, --help", common.help, "Show this and exit");
}

}  // namespace mk::cli
