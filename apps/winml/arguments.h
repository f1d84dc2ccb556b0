#pragma once
// Arguments to options, the GNU way: --name value, --name=value, -n value, -nvalue, -vvq, and -- before arguments that
// begin with a dash.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "winml/options.h"

namespace mk::cli {

// Sets what the table's rows are bound to, in the order typed, and marks rows as typed. usage, naming the option and
// what was expected; an unknown option suggests the nearest one.
Status parse_arguments(std::span<const std::string> arguments, OptionTable& table);

// Whether an argument list asks for help or for JSON, told without parsing it (it may be wrong).
bool asks_for_help(std::span<const std::string> arguments);
bool asks_for_json(std::span<const std::string> arguments);

}  // namespace mk::cli
