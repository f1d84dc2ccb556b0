#pragma once
// The standard streams of a command-line program.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mk {

enum class Stream { out, err };

// Once at start: consoles speak UTF-8, and a reader that has gone is an outcome of a write instead of a signal.
void prepare_streams();

// The arguments after the program's name, in UTF-8.
std::vector<std::string> command_line(int argc, char** argv);

bool is_terminal(Stream stream);
// A line may be drawn again and again: a terminal, CI is not set (or 0 or false), TERM is not dumb.
bool redrawing_allowed(Stream stream);
// Colour may be used: as for redrawing, and NO_COLOR is not set to any value.
bool color_allowed(Stream stream);
// Symbols beyond ASCII show: the terminal's text is UTF-8.
bool symbols_allowed();
// Columns of the terminal; COLUMNS where the stream is no terminal, else 0.
int terminal_columns(Stream stream);

// Writes all of it, unbuffered. A reader that has gone (`| head`) is no error: the rest is dropped. failed otherwise
// (a full disk behind a redirection).
Status write_stream(Stream stream, std::string_view text);

}  // namespace mk
