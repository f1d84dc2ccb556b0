#include "winml/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/spelling.h"
#include "base/text.h"

namespace mk::cli {
namespace {

struct Match {
  OptionRow* row = nullptr;
  bool negated = false;
};

Match find_option(OptionTable& table, std::string_view name) {
  for (OptionRow& row : table.rows()) {
    if (row.is_positional) continue;
    if (std::ranges::find(row.names, name) != row.names.end()) return {&row, false};
    if (std::ranges::find(row.negations, name) != row.negations.end()) return {&row, true};
  }
  return {};
}

tl::unexpected<Error> unknown_option(const OptionTable& table, std::string_view name) {
  std::vector<std::string_view> known;
  for (const OptionRow& row : table.rows()) {
    if (row.is_positional || row.is_hidden) continue;
    known.insert(known.end(), row.names.begin(), row.names.end());
    known.insert(known.end(), row.negations.begin(), row.negations.end());
  }
  std::erase_if(known, [](std::string_view candidate) { return candidate.size() <= 2; });
  const auto near = nearest(name, known);
  return fail(ErrorCode::usage, fmt::format("No such option '{}'", name), {},
              near ? fmt::format("Did you mean '{}'?", *near) : "");
}

// What help calls an option in messages: "'-m' / '--model'".
std::string title(const OptionRow& row) {
  if (row.is_positional) return fmt::format("'{}'", row.name());
  std::string text;
  for (const std::string& name : row.names) text += fmt::format("{}'{}'", text.empty() ? "" : " / ", name);
  return text;
}

Status set_option(OptionRow& row, std::string_view typed_as, std::string_view value) {
  if (auto done = row.set(value); !done) {
    Error error = std::move(done).error();
    error.message = fmt::format("Invalid value for '{}': '{}'", typed_as, value) +
                    (error.message.empty() ? "" : ": " + error.message);
    return tl::make_unexpected(std::move(error));
  }
  row.was_typed = true;
  return {};
}

class Parser {
 public:
  Parser(std::span<const std::string> arguments, OptionTable& table) : arguments_(arguments), table_(table) {
    for (OptionRow& row : table.rows())
      if (row.is_positional) positionals_.push_back(&row);
  }

  Status run() {
    bool options_ended = false;
    while (next_ < arguments_.size()) {
      const std::string_view argument = arguments_[next_++];
      if (options_ended || argument.size() < 2 || argument[0] != '-') {
        MK_CHECK(positional(argument));
      } else if (argument == "--") {
        options_ended = true;
      } else if (argument.starts_with("--")) {
        MK_CHECK(long_option(argument));
      } else {
        MK_CHECK(short_options(argument));
      }
    }
    for (const OptionRow& row : table_.rows())
      if (row.is_required && !row.was_typed)
        return fail(ErrorCode::usage,
                    fmt::format("Missing {} {}", row.is_positional ? "argument" : "option", title(row)), {},
                    row.choice_list.empty() ? "" : fmt::format("Choose one of {}", fmt::join(row.choice_list, ", ")));
    return {};
  }

 private:
  Status positional(std::string_view argument) {
    if (next_positional_ == positionals_.size())
      return fail(ErrorCode::usage, fmt::format("Unexpected argument '{}'", argument));
    OptionRow& row = *positionals_[next_positional_];
    if (!row.is_repeatable) ++next_positional_;
    return set_option(row, row.name(), argument);
  }

  Status long_option(std::string_view argument) {
    const auto equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    const Match match = find_option(table_, name);
    if (match.row == nullptr) return unknown_option(table_, name);
    if (match.row->takes_value()) {
      if (equals != std::string_view::npos) return set_option(*match.row, name, argument.substr(equals + 1));
      return value_from_next(*match.row, name);
    }
    if (equals != std::string_view::npos)
      return fail(ErrorCode::usage, fmt::format("Option '{}' does not take a value", name));
    return set_option(*match.row, name, match.negated ? "false" : "true");
  }

  Status short_options(std::string_view argument) {
    for (std::size_t i = 1; i < argument.size(); ++i) {
      const std::string name{'-', argument[i]};
      const Match match = find_option(table_, name);
      if (match.row == nullptr) return unknown_option(table_, argument.size() == 2 || i > 1 ? name : argument);
      if (match.row->takes_value()) {
        std::string_view rest = argument.substr(i + 1);
        if (rest.empty()) return value_from_next(*match.row, name);
        return set_option(*match.row, name, rest.starts_with("=") ? rest.substr(1) : rest);
      }
      MK_CHECK(set_option(*match.row, name, match.negated ? "false" : "true"));
    }
    return {};
  }

  // A value may begin with a dash (a negative number), but not be another option of the command.
  Status value_from_next(OptionRow& row, std::string_view name) {
    const bool there = next_ < arguments_.size();
    const std::string_view value = there ? std::string_view(arguments_[next_]) : std::string_view{};
    if (!there || (value.size() > 1 && find_option(table_, value.substr(0, value.find('='))).row != nullptr))
      return fail(ErrorCode::usage, fmt::format("Option '{}' needs a value ({})", name, row.placeholder));
    ++next_;
    return set_option(row, name, value);
  }

  std::span<const std::string> arguments_;
  OptionTable& table_;
  std::vector<OptionRow*> positionals_;
  std::size_t next_ = 0;
  std::size_t next_positional_ = 0;
};

}  // namespace

Status parse_arguments(std::span<const std::string> arguments, OptionTable& table) {
  return Parser(arguments, table).run();
}

bool asks_for_help(std::span<const std::string> arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") return false;
    if (argument == "-h" || argument == "--help") return true;
  }
  return false;
}

bool asks_for_json(std::span<const std::string> arguments) {
  const auto is_json = [](std::string_view text) { return equal_ignoring_case(text, "json"); };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--") return false;
    if (argument == "-f" || argument == "--format") {
      if (i + 1 < arguments.size() && is_json(arguments[i + 1])) return true;
      continue;
    }
    for (const std::string_view prefix : {"--format=", "-f=", "-f"}) {
      if (argument.starts_with(prefix) && is_json(argument.substr(prefix.size()))) return true;
    }
  }
  return false;
}

}  // namespace mk::cli
