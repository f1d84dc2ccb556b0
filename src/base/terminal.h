#pragma once
// The standard streams: whether a person looks at them, how wide they are, whether colour is welcome.

#include <string_view>

namespace mk {

enum class Stream { out, err };

bool is_terminal(Stream stream);
int terminal_width(Stream stream);  // in characters; 80 where it is not known

// A terminal, TERM is not dumb, NO_COLOR is not set (to any value), CI is not true.
bool color_welcome(Stream stream);

// A terminal that a line can be drawn on again and again: as for colour, whatever NO_COLOR says.
bool redrawing_welcome(Stream stream);

// The locale has UTF-8, so that symbols beyond ASCII show.
bool symbols_welcome();

// Writes at once and whole. Errors are ignored: there is nobody to tell.
void write_stream(Stream stream, std::string_view text);

}  // namespace mk
