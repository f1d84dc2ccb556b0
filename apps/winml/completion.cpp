// winml completion: a script for a shell, made from the option rows.

#include <fmt/format.h>

#include <array>

#include "base/json.h"
#include "winml/commands.h"

namespace mk::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

struct CommandRows {
  Command command;
  Invocation invocation;
  CommonOptions common;
  const std::vector<OptionRow>& rows() const { return invocation.table.rows(); }
};

struct Script {
  std::string text;
};

std::vector<std::unique_ptr<CommandRows>> visible_commands() {
  std::vector<std::unique_ptr<CommandRows>> list;
  for (Command& command : all_commands()) {
    if (command.hidden) continue;
    auto rows = std::make_unique<CommandRows>();
    rows->command = std::move(command);
    rows->invocation = rows->command.prepare();
    describe_common(rows->common, rows->command, rows->invocation.table);
    list.push_back(std::move(rows));
  }
  return list;
}

std::string join(const std::vector<std::string>& words, std::string_view separator = " ") {
  return fmt::format("{}", fmt::join(words, separator));
}

std::vector<std::string> flags_of(const OptionRow& row) {
  std::vector<std::string> flags = row.names;
  flags.insert(flags.end(), row.negations.begin(), row.negations.end());
  return flags;
}

// `text` with each of `special` behind a backslash.
std::string escaped(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

// Inside single quotes of a POSIX shell or of PowerShell.
std::string quoted(std::string_view text, std::string_view quote) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'') {
      result += quote;
    } else {
      result += c;
    }
  }
  return result + "'";
}

// A script with its @PLACES@ filled in.
std::string filled(std::string_view script, std::initializer_list<std::pair<std::string_view, std::string>> places) {
  std::string text(script);
  for (const auto& [place, content] : places) text.replace(text.find(place), place.size(), content);
  return text;
}

constexpr std::string_view root_flags = "--help --version --verbose --quiet --no-color";

std::string bash_script(const std::vector<std::unique_ptr<CommandRows>>& commands) {
  std::string words, values, names;
  for (const auto& entry : commands) {
    const std::string_view command = entry->command.name;
    names += fmt::format("{} ", command);
    std::vector<std::string> offered;
    for (const OptionRow& row : entry->rows()) {
      if (row.is_hidden) continue;
      if (row.is_positional) {
        offered.insert(offered.begin(), row.choice_list.begin(), row.choice_list.end());
        continue;
      }
      for (const std::string& flag : flags_of(row))
        if (flag.size() > 2) offered.push_back(flag);
      if (!row.takes_value()) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : row.names) patterns.push_back(fmt::format("{}:{}", command, name));
      const std::string reply = row.choice_list.empty()
                                    ? std::string("COMPREPLY=()")
                                    : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$cur\"))", join(row.choice_list));
      values += fmt::format("    {}) {}; return ;;\n", join(patterns, "|"), reply);
    }
    words += fmt::format("    {}) words='{}' ;;\n", command, join(offered));
  }
  return filled(R"script(# bash completion for winml. Load it with: source <(winml completion bash)
_winml() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" word words=""
  if [[ "$cur" == "=" ]]; then cur=""; elif [[ "$prev" == "=" ]]; then prev="${COMP_WORDS[COMP_CWORD-2]}"; fi
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) command="$word"; break ;; esac
  done
  case "$command:$prev" in
@VALUES@  esac
  case "$command" in
    "") words='@COMMANDS@' ;;
@WORDS@  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _winml winml
)script",
                {{"@VALUES@", values}, {"@COMMANDS@", names + std::string(root_flags)}, {"@WORDS@", words}});
}

std::string zsh_action(const OptionRow& row) {
  if (!row.choice_list.empty()) return fmt::format("({})", join(row.choice_list));
  if (row.kind == Accepts::folder) return "_files -/";
  return row.kind == Accepts::file ? "_files" : " ";
}

std::string zsh_argument(const OptionRow& row) {
  const std::string help = escaped(row.help_text, "[]:\\");
  if (row.is_positional) {
    return quoted(fmt::format("{}:{}:{}", row.is_repeatable ? "*" : "", row.name(), zsh_action(row)), "'\\''");
  }
  std::string lines;
  for (const std::string& flag : flags_of(row)) {
    const std::string value = row.takes_value() ? fmt::format(":{}:{}", row.placeholder, zsh_action(row)) : "";
    lines += (lines.empty() ? "" : " \\\n        ") +
             quoted(fmt::format("{}{}[{}]{}", row.is_repeatable ? "*" : "", flag, help, value), "'\\''");
  }
  return lines;
}

std::string zsh_script(const std::vector<std::unique_ptr<CommandRows>>& commands) {
  std::string list, cases;
  for (const auto& entry : commands) {
    list += fmt::format(
        "    {}\n", quoted(fmt::format("{}:{}", entry->command.name, escaped(entry->command.summary, ":")), "'\\''"));
    cases += fmt::format("    {})\n      _arguments", entry->command.name);
    for (const OptionRow& row : entry->rows())
      if (!row.is_hidden) cases += " \\\n        " + zsh_argument(row);
    cases += "\n      ;;\n";
  }
  return filled(R"script(#compdef winml
# zsh completion for winml. Load it with: source <(winml completion zsh)
_winml() {
  local context state state_descr line
  typeset -A opt_args
  local -a commands
  commands=(
@COMMANDS@  )
  _arguments -C '--help[Show help]' '--version[Print the version]' '--no-color[No colour]' \
    '1:command:->command' '*::argument:->argument'
  case $state in
  command) _describe -t commands 'winml command' commands ;;
  argument)
    case $words[1] in
@CASES@    esac
    ;;
  esac
}
compdef _winml winml
)script",
                {{"@COMMANDS@", list}, {"@CASES@", cases}});
}

std::string fish_script(const std::vector<std::unique_ptr<CommandRows>>& commands) {
  std::string text =
      "# fish completion for winml. Load it with: winml completion fish | source\ncomplete -c winml -f\n";
  for (const auto& entry : commands)
    text += fmt::format("complete -c winml -n __fish_use_subcommand -a {} -d {}\n", entry->command.name,
                        quoted(entry->command.summary, "\\'"));
  for (const auto& entry : commands) {
    const std::string condition = fmt::format("'__fish_seen_subcommand_from {}'", entry->command.name);
    for (const OptionRow& row : entry->rows()) {
      if (row.is_hidden) continue;
      if (row.is_positional) {
        if (!row.choice_list.empty())
          text += fmt::format("complete -c winml -n {} -a '{}'\n", condition, join(row.choice_list));
        continue;
      }
      std::string flags;
      for (const std::string& flag : flags_of(row))
        flags += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
      std::string value;
      if (!row.choice_list.empty()) {
        value = fmt::format(" -x -a '{}'", join(row.choice_list));
      } else if (row.takes_value()) {
        value = row.kind == Accepts::text ? " -x" : " -r -F";
      }
      text += fmt::format("complete -c winml -n {}{}{} -d {}\n", condition, flags, value, quoted(row.help_text, "\\'"));
    }
  }
  return text;
}

std::string powershell_list(const std::vector<std::string>& words) {
  std::vector<std::string> items;
  items.reserve(words.size());
  for (const std::string& word : words) items.push_back(quoted(word, "''"));
  return fmt::format("@({})", join(items, ", "));
}

std::string powershell_script(const std::vector<std::unique_ptr<CommandRows>>& commands) {
  std::string summaries, options, values;
  for (const auto& entry : commands) {
    const std::string_view command = entry->command.name;
    summaries += fmt::format("    '{}' = {}\n", command, quoted(entry->command.summary, "''"));
    std::vector<std::string> offered;
    for (const OptionRow& row : entry->rows()) {
      if (row.is_hidden) continue;
      if (row.is_positional) {
        offered.insert(offered.begin(), row.choice_list.begin(), row.choice_list.end());
        continue;
      }
      for (const std::string& flag : flags_of(row)) {
        offered.push_back(flag);
        if (!row.choice_list.empty())
          values += fmt::format("    '{} {}' = {}\n", command, flag, powershell_list(row.choice_list));
      }
    }
    options += fmt::format("    '{}' = {}\n", command, powershell_list(offered));
  }
  return filled(R"script(# PowerShell completion for winml.
# Load it with: winml completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName winml -ScriptBlock {
  param($wordToComplete, $commandAst, $cursorPosition)
  $commands = [ordered]@{
@SUMMARIES@  }
  $options = @{
@OPTIONS@  }
  $values = @{
@VALUES@  }
  $words = @($commandAst.CommandElements |
    Where-Object { $_.Extent.EndOffset -lt $cursorPosition } | ForEach-Object { $_.ToString() })
  $command = @($words | Select-Object -Skip 1 | Where-Object { $_ -notlike '-*' })[0]
  if (-not $command -or -not $commands.Contains($command)) {
    foreach ($name in $commands.Keys) {
      if ($name -like "$wordToComplete*") {
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $commands[$name])
      }
    }
    return
  }
  $candidates = $values["$command $($words[-1])"]
  if (-not $candidates) { $candidates = $options[$command] }
  foreach ($candidate in $candidates) {
    if ($candidate -like "$wordToComplete*") {
      [System.Management.Automation.CompletionResult]::new($candidate, $candidate, 'ParameterValue', $candidate)
    }
  }
}
)script",
                {{"@SUMMARIES@", summaries}, {"@OPTIONS@", options}, {"@VALUES@", values}});
}

struct Shell {
  std::string_view name;
  std::string (*script)(const std::vector<std::unique_ptr<CommandRows>>&);
};
constexpr std::array shells{
    Shell{"bash", bash_script},
    Shell{"zsh", zsh_script},
    Shell{"fish", fish_script},
    Shell{"powershell", powershell_script},
};

void describe(CompletionOptions& o, OptionTable& options) {
  std::vector<std::string> names;
  names.reserve(shells.size());
  for (const Shell& shell : shells) names.emplace_back(shell.name);
  options.positional("SHELL", o.shell, "The shell to print a script for").choices(names).required();
}

Result<Script> run(const CompletionOptions& o, Context&) {
  for (const Shell& shell : shells)
    if (shell.name == o.shell) return Script{shell.script(visible_commands())};
  return fail(ErrorCode::usage, fmt::format("no completion for '{}'", o.shell));
}

std::string text(const Script& script, const Context&) { return script.text; }

}  // namespace

Command completion_command() {
  return define<CompletionOptions, Script>({
      .name = "completion",
      .group = "Discover",
      .summary = "Print a script that completes commands, options and their values in a shell",
      .examples = {{"source <(winml completion bash)", "In this bash; in ~/.bashrc for every one"},
                   {"winml completion zsh > ~/.zfunc/_winml", "A folder of zsh's fpath"},
                   {"winml completion fish > ~/.config/fish/completions/winml.fish", "For fish"},
                   {"winml completion powershell | Out-String | Invoke-Expression", "In $PROFILE"}},
      .options = describe,
      .run = run,
      .text = text,
  });
}

}  // namespace mk::cli
