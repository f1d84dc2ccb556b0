#pragma once
// The options of a command, described once. A command's options are a plain struct; its describe function binds flags
// to the members. Parsing, help, completion and the tables in docs/commands come from the rows made here.
//
//   void describe(SysOptions& o, OptionTable& options) {
//     options.flag("--list-device", o.list_device, "Only the devices");
//     options.value("-o, --output", "FILE", o.output, "Where to write").accepts(Accepts::file);
//   }
//
// Whether an option was typed is whether its std::optional member has a value: use one wherever a default must be told
// from a choice (a typed flag wins over a config file).

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/result.h"

namespace mk::cli {

// NAME=VALUE pairs in the order typed; the last of a name wins.
using KeyValues = std::vector<std::pair<std::string, std::string>>;

enum class Accepts { text, file, folder };  // what completion offers for a value

struct OptionRow {
  std::vector<std::string> names;      // "-q", "--quant", "--quantize"; of a positional argument, its one name
  std::vector<std::string> negations;  // "--no-quant", "--no-quantize"
  std::string placeholder;             // "FILE"; empty for flags
  std::string help_text;
  std::string default_text;  // as shown; empty where there is nothing to show
  std::vector<std::string> choice_list;
  Accepts kind = Accepts::text;
  bool is_positional = false;
  bool is_repeatable = false;
  bool is_required = false;
  bool is_hidden = false;
  std::function<Status(std::string_view value)> set;  // for flags the value is "true" or "false"
  bool was_typed = false;

  bool takes_value() const { return !placeholder.empty(); }
  const std::string& name() const;  // the canonical one: the first long name, else the first

  OptionRow& choices(std::vector<std::string> list);  // compared without case, handed on as written here
  OptionRow& accepts(Accepts what);
  OptionRow& preset(std::string text);  // the default that help shows, where the member cannot tell
  OptionRow& required();
  OptionRow& hidden();
  OptionRow& at_least(std::int64_t minimum);  // of an integer
  OptionRow& between(std::int64_t minimum, std::int64_t maximum);
  OptionRow& also_negated_by(std::string name);  // "-N"
};

// How a typed value becomes a member. usage, with what was expected.
Status assign(bool& target, std::string_view text);
Status assign(std::string& target, std::string_view text);
Status assign(Path& target, std::string_view text);
Status assign(std::int64_t& target, std::string_view text);
Status assign(std::uint64_t& target, std::string_view text);
Status assign(double& target, std::string_view text);
Status assign(KeyValues& target, std::string_view text);
Status assign(std::vector<std::string>& target, std::string_view text);
template <typename T>
Status assign(std::optional<T>& target, std::string_view text) {
  T value{};
  if (auto done = assign(value, text); !done) return done;
  target = std::move(value);
  return {};
}

// The default that help shows for a member: its initial value, nothing where that is empty.
std::string shown(const std::string& value);
std::string shown(std::int64_t value);
std::string shown(std::uint64_t value);
std::string shown(double value);
template <typename T>
std::string shown(const T&) {
  return {};
}

template <typename T>
inline constexpr bool is_list = false;
template <typename T>
inline constexpr bool is_list<std::vector<T>> = true;

class OptionTable {
 public:
  // `names` are separated by ", ", short ones first: "-o, --output". The target must outlive the table.
  template <typename T>
  OptionRow& value(std::string_view names, std::string_view placeholder, T& target, std::string_view help) {
    OptionRow& row = add(names, placeholder, help, [&target](std::string_view text) { return assign(target, text); });
    row.default_text = shown(target);
    row.is_repeatable = is_list<T>;
    return row;
  }
  OptionRow& flag(std::string_view names, bool& target, std::string_view help);
  // "--quant, --quantize" and, made from them, "--no-quant, --no-quantize".
  OptionRow& toggle(std::string_view names, bool& target, std::string_view help);
  OptionRow& toggle(std::string_view names, std::optional<bool>& target, std::string_view help);
  OptionRow& count(std::string_view names, int& target, std::string_view help);
  template <typename T>
  OptionRow& positional(std::string_view name, T& target, std::string_view help) {
    OptionRow& row = value(name, name, target, help);
    row.is_positional = true;
    return row;
  }

  const std::vector<OptionRow>& rows() const { return rows_; }
  std::vector<OptionRow>& rows() { return rows_; }

 private:
  OptionRow& add(std::string_view names, std::string_view placeholder, std::string_view help,
                 std::function<Status(std::string_view)> set);
  std::vector<OptionRow> rows_;
};

}  // namespace mk::cli
