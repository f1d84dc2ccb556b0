#include "base/terminal.h"

#include <cstdlib>

#include "base/system.h"
#include "base/text.h"

namespace mk {

bool redrawing_allowed(Stream stream) {
  const std::string ci = lower_case(environment("CI").value_or("0"));
  return (ci == "0" || ci == "false") && environment("TERM") != "dumb" && is_terminal(stream);
}

bool color_allowed(Stream stream) { return std::getenv("NO_COLOR") == nullptr && redrawing_allowed(stream); }

}  // namespace mk
