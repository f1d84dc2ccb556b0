#include "base/terminal.h"

#include <cstdlib>

#include "base/system.h"

namespace mk {

bool redrawing_welcome(Stream stream) {
  return is_terminal(stream) && environment("TERM") != "dumb" && !environment_flag("CI");
}

bool color_welcome(Stream stream) { return redrawing_welcome(stream) && std::getenv("NO_COLOR") == nullptr; }

}  // namespace mk
