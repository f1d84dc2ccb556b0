// The command: root options, dispatch, and how a run ends (docs/exit-codes.md).

#include <fmt/format.h>

#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "base/system.h"
#include "base/terminal.h"
#include "hub/hub.h"
#include "winml/arguments.h"
#include "winml/commands.h"
#include "winml/help.h"

namespace mk::cli {

namespace {

Style style_of(Stream stream, bool no_color) {
  const int columns = terminal_columns(stream);
  return {
      .color = !no_color && color_allowed(stream), .symbols = symbols_allowed(), .width = columns > 0 ? columns : 100};
}

Json error_document(const Error& error) {
  return {{"error",
           {{"code", name_of(error.code)}, {"message", error.message}, {"where", error.where}, {"hint", error.hint}}}};
}

// One line for people; in JSON mode also the one document that stdout promises.
int report_error(const Error& error, bool as_json, bool no_color) {
  const Style style = style_of(Stream::err, no_color);
  std::string line = error.to_string();
  for (char& c : line)
    if (c == '\n' || c == '\r') c = ' ';
  (void)write_stream(Stream::err, fmt::format("{} {}\n", style.red("error:"), line));
  if (as_json) (void)write_stream(Stream::out, json_text(error_document(error)));
  return exit_code(error.code);
}

int print(std::string_view text, int code) {
  if (auto written = write_stream(Stream::out, text); !written) return report_error(written.error(), false, false);
  return code;
}

struct RootOptions {
  CommonOptions common;
  bool version = false;
};

void describe_root(RootOptions& root, OptionTable& options) {
  options.flag("--version", root.version, "Print the version and exit");
  describe_common(root.common, Command{}, options);
}

// What the standard library throws becomes an error like any other.
Result<Output> contained(const Invocation& invocation, const Command& command, Context& context) {
  try {
    return invocation.run(context);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::failed, "out of memory", fmt::format("winml {}", command.name),
                "Use smaller shapes or a smaller batch, or a machine with more memory");
  } catch (const std::exception& error) {
    return fail(ErrorCode::failed, fmt::format("internal error: {}", error.what()),
                fmt::format("winml {}", command.name), "Please report it, with the command line");
  }
}

int run_command(const RootOptions& root, Command command, std::span<const std::string> arguments) {
  Invocation invocation = command.prepare();
  CommonOptions common;
  describe_common(common, command, invocation.table);
  const bool json_asked = !command.formats.empty() && asks_for_json(arguments);
  if (!asks_for_help(arguments)) {
    if (auto parsed = parse_arguments(arguments, invocation.table); !parsed) {
      Error error = std::move(parsed).error();
      if (error.hint.empty()) error.hint = fmt::format("`winml {} --help` lists its options", command.name);
      return report_error(error, json_asked, root.common.no_color || common.no_color);
    }
  } else {
    common.help = true;
  }
  const bool no_color = root.common.no_color || common.no_color;
  if (common.help) return print(command_help(command, invocation.table, style_of(Stream::out, no_color)), 0);

  int verbosity = std::max(root.common.verbose, common.verbose);
  if (root.common.debug || common.debug) verbosity = 2;
  if (root.common.quiet || common.quiet) verbosity = -1;
  catch_interrupts();
  const auto progress = make_console_progress({.verbosity = verbosity, .color = !no_color});
  HubSettings settings = HubSettings::from_environment();
  settings.user_agent = fmt::format("winml/{}", MODELKIT_VERSION);
  if (root.common.offline || common.offline) settings.offline = "--offline";
  Hub hub(std::move(settings), *progress);
  Context context{.progress = *progress,
                  .hub = hub,
                  .verbosity = verbosity,
                  .format = common.format,
                  .style = style_of(Stream::out, no_color)};
  auto output = contained(invocation, command, context);
  if (!output) return report_error(output.error(), context.json(), no_color);
  if (verbosity < 0 && !output->is_answer) output->text.clear();
  return print(output->text, output->yes ? 0 : exit_code(ErrorCode::negative));
}

int run(const std::vector<std::string>& arguments) {
  std::size_t split = 0;
  while (split < arguments.size() && arguments[split].size() > 1 && arguments[split][0] == '-') ++split;
  const std::span all(arguments);
  const auto root_arguments = all.first(split);

  RootOptions root;
  OptionTable table;
  describe_root(root, table);
  if (auto parsed = parse_arguments(root_arguments, table); !parsed) {
    Error error = std::move(parsed).error();
    if (error.hint.empty()) error.hint = "`winml --help` lists options and commands";
    return report_error(error, false, root.common.no_color);
  }
  if (root.version) return print(fmt::format("winml, version {}\n", MODELKIT_VERSION), 0);
  if (root.common.help || split == arguments.size()) {
    (void)write_stream(Stream::err, banner(MODELKIT_VERSION, style_of(Stream::err, root.common.no_color)));
    return print(root_help(all_commands(), table, style_of(Stream::out, root.common.no_color)), 0);
  }
  auto command = find_command(arguments[split]);
  if (!command) return report_error(command.error(), asks_for_json(all.subspan(split)), root.common.no_color);
  return run_command(root, std::move(*command), all.subspan(split + 1));
}

}  // namespace
}  // namespace mk::cli

int main(int argc, char** argv) {
  mk::prepare_streams();
  try {
    return mk::cli::run(mk::command_line(argc, argv));
  } catch (const std::bad_alloc&) {
    (void)mk::write_stream(mk::Stream::err, "error: out of memory\n");
  } catch (const std::exception& error) {
    (void)mk::write_stream(mk::Stream::err, fmt::format("error: internal error: {}\n", error.what()));
  }
  return mk::exit_code(mk::ErrorCode::failed);
}
