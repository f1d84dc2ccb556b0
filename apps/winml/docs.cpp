// winml docs (hidden): the option table of a command as Markdown, as it stands in docs/commands.

#include <fmt/format.h>

#include "base/json.h"
#include "winml/commands.h"
#include "winml/help.h"

namespace mk::cli {
namespace {

struct DocsOptions {
  std::string command;
};

struct Table {
  std::string text;
};

std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

void describe(DocsOptions& o, OptionTable& options) {
  options.positional("COMMAND", o.command, "The command").required();
}

Result<Table> run(const DocsOptions& o, Context&) {
  MK_TRY(const Command command, find_command(o.command));
  Invocation invocation = command.prepare();
  CommonOptions common;
  describe_common(common, command, invocation.table);
  Table table{"| option | meaning | default |\n|---|---|---|\n"};
  for (const OptionRow& row : invocation.table.rows()) {
    if (row.is_hidden) continue;
    std::string meaning = row.help_text;
    if (!row.choice_list.empty()) meaning += fmt::format(": {}", fmt::join(row.choice_list, ", "));
    if (row.is_repeatable && row.takes_value()) meaning += "; repeatable";
    table.text += fmt::format("| `{}` | {} | {} |\n", cell(signature(row)), cell(meaning),
                              row.is_required ? "required" : cell(row.default_text));
  }
  return table;
}

std::string text(const Table& table, const Context&) { return table.text; }

}  // namespace

Command docs_command() {
  return define<DocsOptions, Table>({
      .name = "docs",
      .group = "Discover",
      .summary = "Print the option table of a command as Markdown",
      .hidden = true,
      .options = describe,
      .run = run,
      .text = text,
  });
}

}  // namespace mk::cli
