// winml docs (hidden): the option table of a command as Markdown, as it stands in docs/commands; "architectures" is the
// table of model types.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <vector>

#include "base/json.h"
#include "models/registry.h"
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

// A row per model type: its tasks, the pairs and towers that it is exported as, and the class of the first task.
Table architectures() {
  Table table{"| model type | tasks | several graphs for | default class |\n|---|---|---|---|\n"};
  for (const ModelTypeInfo& type : model_types()) {
    std::vector<std::string_view> tasks;
    for (const HeadInfo& head : type.heads)
      if (std::ranges::find(tasks, head.task) == tasks.end()) tasks.push_back(head.task);
    std::vector<std::string> pairs;
    for (const CompositeChoice& composite : composites(type.model_type)) {
      std::vector<std::string> parts;
      for (const ComponentChoice& part : composite.components) parts.push_back(part.name);
      pairs.push_back(fmt::format("{} ({})", fmt::join(composite.tasks, ", "), fmt::join(parts, ", ")));
    }
    table.text += fmt::format("| {} | {} | {} | {} |\n", type.model_type, fmt::join(tasks, ", "),
                              fmt::join(pairs, "; "), type.heads.empty() ? "" : type.heads.front().class_name);
  }
  return table;
}

Result<Table> run(const DocsOptions& o, Context&) {
  if (o.command == "architectures") return architectures();
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
