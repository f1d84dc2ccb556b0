#pragma once
// Help, made from the command table and the option rows.

#include <string>
#include <vector>

#include "winml/command.h"

namespace mk::cli {

// Letters with a gradient and the version, for stderr.
std::string banner(std::string_view version, const Style& style);

std::string root_help(const std::vector<Command>& commands, const OptionTable& options, const Style& style);
// `table` holds the command's rows and the common ones.
std::string command_help(const Command& command, const OptionTable& table, const Style& style);

// "-o, --output FILE"
std::string signature(const OptionRow& row);
// "[auto|npu|gpu|cpu] (default auto)": what a reader must know besides the sentence.
std::string qualifiers(const OptionRow& row);

}  // namespace mk::cli
