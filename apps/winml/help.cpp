#include "winml/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace mk::cli {
namespace {

// Rows of block letters; '#' is a filled cell.
constexpr std::array<std::string_view, 5> letters{
    "#   #  #        #   #  #         ###  #     ###", "#   #     ###   ## ##  #        #     #      # ",
    "# # #  #  #  #  # # #  #        #     #      # ", "## ##  #  #  #  #   #  #        #     #      # ",
    "#   #  #  #  #  #   #  ####      ###  ####  ###",
};

struct Color {
  double red, green, blue;
};
constexpr std::array gradient{Color{0, 230, 255}, Color{0, 100, 255}, Color{130, 0, 255}, Color{255, 0, 180},
                              Color{255, 80, 80}};

std::string gradient_escape(double position) {
  const double scaled = position * (gradient.size() - 1);
  const auto left = std::min(static_cast<std::size_t>(scaled), gradient.size() - 2);
  const double t = scaled - static_cast<double>(left);
  const auto mix = [t](double a, double b) { return static_cast<int>(a + (b - a) * t); };
  const Color &a = gradient[left], &b = gradient[left + 1];
  return fmt::format("\x1b[38;2;{};{};{}m", mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue));
}

// A row of cells left to right through the gradient.
std::string painted(std::string_view cells, std::string_view filled, bool color) {
  std::string line = "  ";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] == ' ') {
      line += ' ';
      continue;
    }
    if (color) line += gradient_escape(static_cast<double>(i) / static_cast<double>(cells.size() - 1));
    line += filled;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + (color ? "\x1b[0m\n" : "\n");
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view indent) {
  std::string result;
  for (const std::string& line : wrap(text, width - indent.size())) result += fmt::format("{}{}\n", indent, line);
  return result;
}

// "  -o, --output FILE   Where to write" with the sentence wrapped beside its flag.
std::string option_lines(const OptionTable& table, bool positional, const Style& style) {
  constexpr std::size_t widest = 34;
  std::size_t left = 0;
  for (const OptionRow& row : table.rows())
    if (!row.is_hidden && row.is_positional == positional && display_width(signature(row)) <= widest)
      left = std::max(left, display_width(signature(row)));
  std::string text;
  for (const OptionRow& row : table.rows()) {
    if (row.is_hidden || row.is_positional != positional) continue;
    const std::string flags = signature(row);
    const std::string extra = qualifiers(row);
    const std::size_t room = static_cast<std::size_t>(std::max(style.width, 60)) - left - 4;
    std::string pad(left + 4, ' ');
    bool first = true;
    if (display_width(flags) > left) {
      text += fmt::format("  {}\n", style.cyan(flags));
      first = false;
    }
    for (const std::string& line : wrap(row.help_text + (extra.empty() ? "" : " " + extra), room)) {
      text += first
                  ? fmt::format("  {}{}  {}\n", style.cyan(flags), std::string(left - display_width(flags), ' '), line)
                  : fmt::format("{}{}\n", pad, line);
      first = false;
    }
  }
  return text;
}

}  // namespace

std::string banner(std::string_view version, const Style& style) {
  std::string text = "\n";
  for (const std::string_view row : letters) text += painted(row, style.symbols ? "█" : "#", style.color);
  text += painted(std::string(letters[0].size(), '-'), style.symbols ? "─" : "-", style.color);
  const std::string_view dot = style.symbols ? "·" : "|";
  text += fmt::format("  Windows ML {} Model Conversion & Optimization\n", dot);
  text += fmt::format("  {}\n\n", style.dim(fmt::format("v{0} {1} CPU {1} GPU {1} NPU", version, dot)));
  return text;
}

std::string signature(const OptionRow& row) {
  std::string text = fmt::format("{}", fmt::join(row.names, ", "));
  if (row.is_positional) return text;
  if (row.takes_value()) text += " " + row.placeholder;
  if (!row.negations.empty()) text += fmt::format(" / {}", fmt::join(row.negations, ", "));
  return text;
}

std::string qualifiers(const OptionRow& row) {
  std::vector<std::string> parts;
  if (!row.choice_list.empty()) parts.push_back(fmt::format("{}", fmt::join(row.choice_list, "|")));
  if (row.is_required) parts.push_back("required");
  if (row.is_repeatable && row.takes_value()) parts.push_back("repeatable");
  if (!row.default_text.empty()) parts.push_back("default " + row.default_text);
  return parts.empty() ? "" : fmt::format("[{}]", fmt::join(parts, "; "));
}

std::string root_help(const std::vector<Command>& commands, const OptionTable& options, const Style& style) {
  std::string text = "Usage: winml [OPTIONS] COMMAND [ARGS]...\n\n";
  text += "From a Hugging Face checkpoint or an ONNX file to a small, fast, checked ONNX model.\n";
  std::size_t left = 0;
  std::vector<std::string_view> groups;
  for (const Command& command : commands) {
    if (command.hidden) continue;
    left = std::max(left, command.name.size());
    if (std::ranges::find(groups, command.group) == groups.end()) groups.push_back(command.group);
  }
  for (const std::string_view group : groups) {
    text += fmt::format("\n{}\n", style.bold(fmt::format("{}:", group)));
    for (const Command& command : commands) {
      if (command.hidden || command.group != group) continue;
      const std::size_t room = static_cast<std::size_t>(std::max(style.width, 40)) - left - 4;
      text += fmt::format("  {}{}  {}\n", style.cyan(command.name), std::string(left - command.name.size(), ' '),
                          shorten(command.summary, room));
    }
  }
  text += fmt::format("\n{}\n{}", style.bold("Options:"), option_lines(options, false, style));
  text += "\n`winml COMMAND --help` says what a command does and takes.\n";
  return text;
}

std::string command_help(const Command& command, const OptionTable& table, const Style& style) {
  const auto width = static_cast<std::size_t>(std::max(style.width, 60));
  std::string arguments;
  for (const OptionRow& row : table.rows()) {
    if (!row.is_positional) continue;
    const std::string shown_name = row.name() + (row.is_repeatable ? "..." : "");
    arguments += row.is_required ? " " + shown_name : " [" + shown_name + "]";
  }
  std::string text = fmt::format("Usage: winml {} [OPTIONS]{}\n\n", command.name, arguments);
  text += wrapped(fmt::format("{}.", command.summary), width, "");
  for (std::string_view rest = command.details; !rest.empty();) {
    const auto end = rest.find("\n\n");
    text += "\n" + wrapped(rest.substr(0, end), width, "");
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 2);
  }
  if (!arguments.empty()) text += fmt::format("\n{}\n{}", style.bold("Arguments:"), option_lines(table, true, style));
  text += fmt::format("\n{}\n{}", style.bold("Options:"), option_lines(table, false, style));
  if (!command.examples.empty()) text += fmt::format("\n{}\n", style.bold("Examples:"));
  for (const Example& example : command.examples)
    text += fmt::format("  {}\n      {}\n", style.cyan(example.command), example.about);
  return text;
}

}  // namespace mk::cli
