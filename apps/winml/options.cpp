#include "winml/options.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text.h"

namespace mk::cli {
namespace {

std::vector<std::string> split_names(std::string_view names) {
  std::vector<std::string> parts;
  while (!names.empty()) {
    const auto comma = names.find(", ");
    parts.emplace_back(names.substr(0, comma));
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 2);
  }
  return parts;
}

template <typename Number>
Status parse_number(Number& target, std::string_view text, std::string_view kind) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size())
    return fail(ErrorCode::usage, "", "", fmt::format("Expected {}", kind));
  target = number;
  return {};
}

std::string join(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ", ")); }

}  // namespace

Status assign(bool& target, std::string_view text) {
  target = text == "true";
  return {};
}

Status assign(std::string& target, std::string_view text) {
  target = text;
  return {};
}

Status assign(Path& target, std::string_view text) {
  if (text.empty()) return fail(ErrorCode::usage, "", "", "Expected a path");
  target = path_from_utf8(text);
  return {};
}

Status assign(std::int64_t& target, std::string_view text) { return parse_number(target, text, "an integer"); }

Status assign(std::uint64_t& target, std::string_view text) {
  return parse_number(target, text, "an integer of zero or more");
}

Status assign(double& target, std::string_view text) { return parse_number(target, text, "a number"); }

Status assign(KeyValues& target, std::string_view text) {
  const auto trim = [](std::string_view part) {
    const auto first = part.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view{}
                                           : part.substr(first, part.find_last_not_of(" \t") - first + 1);
  };
  const auto equals = text.find('=');
  const std::string_view key = trim(text.substr(0, equals));
  if (equals == std::string_view::npos || key.empty()) return fail(ErrorCode::usage, "", "", "Expected NAME=VALUE");
  const std::string_view value = trim(text.substr(equals + 1));
  for (auto& [known, old] : target) {
    if (known == key) {
      old = value;
      return {};
    }
  }
  target.emplace_back(key, value);
  return {};
}

Status assign(std::vector<std::string>& target, std::string_view text) {
  target.emplace_back(text);
  return {};
}

std::string shown(const std::string& value) { return value; }
std::string shown(std::int64_t value) { return fmt::format("{}", value); }
std::string shown(std::uint64_t value) { return fmt::format("{}", value); }
std::string shown(double value) { return fmt::format("{}", value); }

const std::string& OptionRow::name() const {
  for (const std::string& name : names)
    if (name.starts_with("--")) return name;
  return names.front();
}

OptionRow& OptionRow::choices(std::vector<std::string> list) {
  choice_list = std::move(list);
  set = [allowed = choice_list, inner = std::move(set)](std::string_view text) -> Status {
    for (const std::string& choice : allowed)
      if (equal_ignoring_case(choice, text)) return inner(choice);
    return fail(ErrorCode::usage, "", "", fmt::format("Choose one of {}", join(allowed)));
  };
  return *this;
}

OptionRow& OptionRow::accepts(Accepts what) {
  kind = what;
  return *this;
}

OptionRow& OptionRow::preset(std::string text) {
  default_text = std::move(text);
  return *this;
}

OptionRow& OptionRow::required() {
  is_required = true;
  return *this;
}

OptionRow& OptionRow::hidden() {
  is_hidden = true;
  return *this;
}

OptionRow& OptionRow::at_least(std::int64_t minimum) {
  set = [minimum, inner = std::move(set)](std::string_view text) -> Status {
    std::int64_t number = 0;
    if (!assign(number, text) || number < minimum)
      return fail(ErrorCode::usage, "", "", fmt::format("Expected an integer of at least {}", minimum));
    return inner(text);
  };
  return *this;
}

OptionRow& OptionRow::between(std::int64_t minimum, std::int64_t maximum) {
  set = [minimum, maximum, inner = std::move(set)](std::string_view text) -> Status {
    std::int64_t number = 0;
    if (!assign(number, text) || number < minimum || number > maximum)
      return fail(ErrorCode::usage, "", "", fmt::format("Expected an integer from {} to {}", minimum, maximum));
    return inner(text);
  };
  return *this;
}

OptionRow& OptionRow::also_negated_by(std::string name) {
  negations.push_back(std::move(name));
  return *this;
}

OptionRow& OptionTable::add(std::string_view names, std::string_view placeholder, std::string_view help,
                            std::function<Status(std::string_view)> set) {
  OptionRow row;
  row.names = split_names(names);
  row.placeholder = placeholder;
  row.help_text = help;
  row.set = std::move(set);
  return rows_.emplace_back(std::move(row));
}

OptionRow& OptionTable::flag(std::string_view names, bool& target, std::string_view help) {
  return add(names, {}, help, [&target](std::string_view text) { return assign(target, text); });
}

namespace {
OptionRow& negate(OptionRow& row) {
  for (const std::string& name : row.names)
    if (name.starts_with("--")) row.negations.push_back("--no-" + name.substr(2));
  return row;
}
}  // namespace

OptionRow& OptionTable::toggle(std::string_view names, bool& target, std::string_view help) {
  OptionRow& row = negate(flag(names, target, help));
  row.default_text = target ? "on" : "off";
  return row;
}

OptionRow& OptionTable::toggle(std::string_view names, std::optional<bool>& target, std::string_view help) {
  return negate(add(names, {}, help, [&target](std::string_view text) { return assign(target, text); }));
}

OptionRow& OptionTable::count(std::string_view names, int& target, std::string_view help) {
  OptionRow& row = add(names, {}, help, [&target](std::string_view) -> Status {
    ++target;
    return {};
  });
  row.is_repeatable = true;
  return row;
}

}  // namespace mk::cli
